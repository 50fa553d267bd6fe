"""The open loop of one client. It sends each request when the request is due, and measures the latency from that time.

A slow client or a slow target does not reduce the number of requests. Late requests are sent as soon as possible, and
their latency counts from the time at which they were due. So the delay of a slow phase is always visible (no
coordinated omission).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.recorder import Recorder
from benchmarks.driver.reports import Progress, RunReport
from benchmarks.driver.schedule import ticks
from benchmarks.driver.target import Outcome, Target, outcome_of
from benchmarks.driver.workload import Generator, Planned
from styx.errors import RequestRejected
from styx.messages import Reply

DRAIN_POLL_SECONDS: Final = 0.02
SENT_AT_ONCE_MAX: Final = 500
"""The number of requests that a late client sends before it reads replies."""
GIVE_UP_SHARE: Final = 0.01
"""A share of the window's requests. A run is given up if more than this share take too long; then its p99 does, too."""

_COMMITTED: Final = Outcome.COMMITTED  # most replies are; an enumeration's members are slow to look up


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


class OpenLoop:
    """One run of one client, number `client` of `plan.clients`."""

    def __init__(
        self,
        target: Target,
        generator: Generator,
        plan: LoadPlan,
        client: int,
        start_s: float,
        tell: Callable[[Progress], None],
    ) -> None:
        self._target = target
        self._generator = generator
        self._plan = plan
        self._client = client
        self._start_s = start_s
        self._tell = tell
        self._recorder = Recorder(plan, start_s)
        self._under_way: set[UnderWay] = set()
        self._gave_up = ""
        self._in_flight_hopeless = hopeless_in_flight(plan)

    def stop(self, why: str) -> None:
        """Sends no more requests. The run's report gives the reason."""
        self._gave_up = self._gave_up or why

    async def run(self) -> RunReport:
        """Sends until the window ends, then waits for replies."""
        await self._send()
        await self._drain()
        return self._recorder.finish(self._gave_up)

    async def _send(self) -> None:
        plan, start_s, monotonic = self._plan, self._start_s, time.monotonic
        window_from_s, window_to_s = plan.warm_up_s - 1e-9, plan.warm_up_s + plan.duration_s - 1e-9
        for offset_s, count in ticks(plan, self._client):
            due_s = start_s + offset_s
            # Pause even when late, because replies must be read.
            await asyncio.sleep(max(due_s - monotonic(), 0))
            self._look(monotonic())
            if self._gave_up:
                return
            counted = window_from_s <= offset_s < window_to_s
            for first in range(0, count, SENT_AT_ONCE_MAX):
                if first:
                    await asyncio.sleep(0)
                self._send_some(min(count - first, SENT_AT_ONCE_MAX), due_s, counted)
        # The window lasts until its end, even if the last request is due long before.
        await asyncio.sleep(max(start_s + plan.warm_up_s + plan.duration_s - monotonic(), 0))

    def _send_some(self, count: int, due_s: float, counted: bool) -> None:
        recorder, under_way, answered, failed = self._recorder, self._under_way, self._answered, self._failed
        next_planned, submit, add = self._generator.next, self._target.submit, under_way.add
        taken = min(count, max(self._plan.in_flight_max - len(under_way), 0))
        now_s = time.monotonic()
        # A timer may end a fraction of a millisecond early.
        due_s = min(due_s, now_s)
        recorder.sent += taken
        recorder.shed += count - taken
        if counted:
            recorder.window_sent += taken
            recorder.window_shed += count - taken
            recorder.late += [int((now_s - due_s) * 1e6)] * taken
        for _ in range(taken):
            planned = next_planned()
            request = UnderWay(answered, failed, planned, due_s, counted)
            add(request)
            submit(planned, request)

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
        if recorder.window_from_s <= now_s < recorder.window_to_s:
            recorder.replied[outcome] += 1
        key = planned.kind, outcome, request.counted
        latency_us = int((now_s - request.due_s) * 1e6)
        try:
            recorder.latencies[key].append(latency_us)
        except KeyError:
            recorder.latencies[key] = [latency_us]
        self._generator.answered(planned, reply)

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
        self._recorder.latencies.setdefault(key, []).append(latency_us)
        self._generator.unknown(planned)

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
    bound, at most the requests of `give_up_s` seconds are under way. Further requests are late already.
    """
    if plan.give_up_s is None:
        return float("inf")
    rate = plan.rate / plan.clients
    return rate * plan.give_up_s + max(GIVE_UP_SHARE * rate * plan.duration_s, rate * plan.give_up_s)
