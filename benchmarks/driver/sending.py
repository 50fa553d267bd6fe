"""One client's run: sends what a generator gives, follows each request to its end, and counts. When the next request is
sent, the open loop and the closed loop decide.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import msgspec

from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.recorder import Recorder
from benchmarks.driver.reports import Progress, RunReport
from benchmarks.driver.target import Outcome, Target, outcome_of
from benchmarks.driver.workload import Generator, Planned
from styx.errors import RequestRejected
from styx.messages import Reply

DRAIN_POLL_SECONDS: Final = 0.02
GIVE_UP_SHARE: Final = 0.01
"""A share of the window's requests. A run is given up if more than this share take too long; then its p99 does, too."""

GaveUp = Callable[[str], None]
"""Gets the reason at once when a run is given up. Replies to what is under way are still waited for."""

_COMMITTED: Final = Outcome.COMMITTED  # most replies are; an enumeration's members are slow to look up


def told_nobody(_: str) -> None:
    """The `GaveUp` of a run that nobody waits beside."""


class UnderWay(msgspec.Struct, eq=False):
    """A sent request, due at `due_s`. `counted` says that it belongs to the window. It reports its outcome once."""

    # A Struct, because one is made for every request: that takes a third of the time of a class.
    answered: Callable[[UnderWay, Reply], None]
    failed: Callable[[UnderWay, BaseException], None]
    planned: Planned
    due_s: float
    counted: bool
    settled: bool = False

    def done(self) -> bool:
        """See `Receiver.done`."""
        return self.settled

    def set_result(self, reply: Reply, /) -> None:
        """See `Receiver.set_result`."""
        self.settled = True
        self.answered(self, reply)

    def set_exception(self, error: BaseException, /) -> None:
        """See `Receiver.set_exception`."""
        self.settled = True
        self.failed(self, error)


class Sending(ABC):
    """One run of one client, number `client` of `plan.clients`."""

    def __init__(
        self,
        target: Target,
        generator: Generator,
        plan: LoadPlan,
        client: int,
        start_s: float,
        tell: Callable[[Progress], None],
        gave_up: GaveUp = told_nobody,
    ) -> None:
        self._target = target
        self._generator = generator
        self._plan = plan
        self._client = client
        self._start_s = start_s
        self._tell = tell
        self._tell_gave_up = gave_up
        self._recorder = Recorder(plan, start_s)
        self._under_way: set[UnderWay] = set()
        self._gave_up = ""
        self._in_flight_hopeless = hopeless_in_flight(plan)

    def stop(self, why: str) -> None:
        """Sends no more requests: the window ends now. The run's report gives the reason."""
        if not self._gave_up:
            self._gave_up = why
            self._recorder.end_window(time.monotonic())
            self._tell_gave_up(why)

    async def run(self) -> RunReport:
        """Sends until the window ends, then waits for replies."""
        await self._send()
        await self._drain()
        return self._recorder.finish(self._gave_up)

    @abstractmethod
    async def _send(self) -> None:
        """Sends until the window ends."""

    def _start(self, planned: Planned, due_s: float, counted: bool) -> None:
        request = UnderWay(self._answered, self._failed, planned, due_s, counted)
        self._under_way.add(request)
        self._target.submit(planned, request)

    def _answered(self, request: UnderWay, reply: Reply) -> None:
        now_s = time.monotonic()
        recorder = self._recorder
        if now_s >= recorder.rolls_s:
            self._look(now_s)
        self._under_way.discard(request)
        planned, error = request.planned, reply.error
        if error is None:
            outcome = _COMMITTED
        else:
            outcome = outcome_of(reply)
            what = error.type if outcome is Outcome.ABORTED else error.code
            recorder.errors[f"{outcome}:{what}"] += 1
        latency_us = int((now_s - request.due_s) * 1e6)
        if planned.step:
            self._step_ended(request, outcome, latency_us)
        if not planned.step or error is not None:
            if recorder.window_from_s <= now_s < recorder.window_to_s:
                recorder.replied[outcome] += 1
            key = planned.kind, outcome, request.counted
            try:
                recorder.latencies[key].append(latency_us)
            except KeyError:
                recorder.latencies[key] = [latency_us]
        following = self._generator.answered(planned, reply)
        if following is not None:
            for each in following:
                self._start(each, now_s, request.counted)

    def _failed(self, request: UnderWay, error: BaseException) -> None:
        now_s = time.monotonic()
        if now_s >= self._recorder.rolls_s:
            self._look(now_s)
        self._under_way.discard(request)
        planned = request.planned
        if isinstance(error, TimeoutError):
            outcome, what = Outcome.MISSED, "timeout"
        elif isinstance(error, RequestRejected):
            outcome, what = Outcome.REJECTED, error.code
        else:
            outcome, what = Outcome.UNKNOWN, type(error).__name__
        self._recorder.errors[f"{outcome}:{what}"] += 1
        key, latency_us = (planned.kind, outcome, request.counted), int((now_s - request.due_s) * 1e6)
        if planned.step:
            self._step_ended(request, outcome, latency_us)
        self._recorder.latencies.setdefault(key, []).append(latency_us)
        self._generator.unknown(planned)

    def _step_ended(self, request: UnderWay, outcome: Outcome, latency_us: int) -> None:
        if request.counted:
            self._recorder.steps.setdefault((request.planned.kind, outcome), []).append(latency_us)

    def _look(self, now_s: float) -> None:
        """Updates the time line and the progress from time to time, and checks whether the run can still succeed."""
        recorder = self._recorder
        if now_s >= recorder.rolls_s:
            recorder.roll(now_s)
            progress = recorder.progress(now_s, len(self._under_way))
            if progress is not None:
                self._tell(progress)
        if len(self._under_way) > self._in_flight_hopeless or (recorder.shed and self._plan.give_up_s is not None):
            self.stop(f"{len(self._under_way)} requests of a client were under way, {recorder.shed} shed")

    async def _drain(self) -> None:
        until_s = time.monotonic() + self._plan.drain_s
        while self._under_way and time.monotonic() < until_s:
            await asyncio.sleep(DRAIN_POLL_SECONDS)
            self._look(time.monotonic())
        for request in [*self._under_way]:
            request.set_exception(TimeoutError())


def hopeless_in_flight(plan: LoadPlan) -> float:
    """The number of a client's requests under way above which the run's p99 certainly exceeds `give_up_s`. Within the
    bound, at most the requests of `give_up_s` seconds are under way. Further requests are late already. A closed loop
    has no more under way than it is told to.
    """
    if plan.give_up_s is None or plan.concurrency is not None:
        return float("inf")
    rate = plan.rate / plan.clients
    return rate * plan.give_up_s + max(GIVE_UP_SHARE * rate * plan.duration_s, rate * plan.give_up_s)
