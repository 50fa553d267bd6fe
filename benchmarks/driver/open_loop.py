"""The open loop of one client: sends what is due when it is due, and stamps replies against the time they were due.

A client or a target that falls behind does not send less: what is due meanwhile is sent as soon as possible, and its
latency begins when it was due. So no slow phase can hide the requests it delayed (no coordinated omission).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

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
"""Requests that a client which is behind sends before it looks at replies."""
GIVE_UP_SHARE: Final = 0.01
"""Of the window's requests: more than these must take too long before a run is given up; so its p99 is."""


class OpenLoop:
    """One run of one client, which is number `client` of `plan.clients`."""

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
        self._under_way: dict[asyncio.Future[Reply], tuple[Planned, float, bool]] = {}
        self._gave_up = ""
        self._in_flight_hopeless = hopeless_in_flight(plan)

    def stop(self, why: str) -> None:
        """Nothing new is sent; the run's report says why."""
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
            # Also when late: replies must be read in between.
            await asyncio.sleep(max(due_s - monotonic(), 0))
            self._look(monotonic())
            if self._gave_up:
                return
            counted = window_from_s <= offset_s < window_to_s
            for first in range(0, count, SENT_AT_ONCE_MAX):
                if first:
                    await asyncio.sleep(0)
                self._send_some(min(count - first, SENT_AT_ONCE_MAX), due_s, counted)
        # The window lasts until its end, also if the last request is due long before.
        await asyncio.sleep(max(start_s + plan.warm_up_s + plan.duration_s - monotonic(), 0))

    def _send_some(self, count: int, due_s: float, counted: bool) -> None:
        recorder, under_way = self._recorder, self._under_way
        next_planned, submit, answered = self._generator.next, self._target.submit, self._answered
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
            future = submit(planned)
            under_way[future] = planned, due_s, counted
            future.add_done_callback(answered)

    def _answered(self, future: asyncio.Future[Reply]) -> None:
        now_s = time.monotonic()
        recorder = self._recorder
        if now_s >= recorder.rolls_s:
            self._look(now_s)
        known = self._under_way.pop(future, None)
        if known is None:
            return  # after the end of the drain
        planned, due_s, counted = known
        try:
            reply = future.result()
        except Exception as error:  # noqa: BLE001 - whatever it is, it counts as what became of a request
            self._failed(planned, counted, error, due_s, now_s)
            return
        outcome = outcome_of(reply)
        if recorder.window_from_s <= now_s < recorder.window_to_s:
            recorder.replied[outcome] += 1
        if reply.error is not None:
            what = reply.error.type if outcome is Outcome.ABORTED else reply.error.code
            recorder.errors[f"{outcome}:{what}"] += 1
        key = planned.kind, outcome, counted
        latency_us = int((now_s - due_s) * 1e6)
        try:
            recorder.latencies[key].append(latency_us)
        except KeyError:
            recorder.latencies[key] = [latency_us]
        self._generator.answered(planned, reply)

    def _failed(self, planned: Planned, counted: bool, error: Exception, due_s: float, now_s: float) -> None:
        if isinstance(error, TimeoutError):
            outcome, what = Outcome.MISSED, "timeout"
        elif isinstance(error, RequestRejected):
            outcome, what = Outcome.REJECTED, error.code
        else:
            outcome, what = Outcome.UNKNOWN, type(error).__name__
        self._recorder.errors[f"{outcome}:{what}"] += 1
        self._recorder.latencies.setdefault((planned.kind, outcome, counted), []).append(int((now_s - due_s) * 1e6))
        self._generator.unknown(planned)

    def _look(self, now_s: float) -> None:
        """What is looked at now and then: the time line, the progress, and whether there is any hope."""
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
        missed, self._under_way = self._under_way, {}
        now_s = time.monotonic()
        for planned, due_s, counted in missed.values():
            self._failed(planned, counted, TimeoutError(), due_s, now_s)


def hopeless_in_flight(plan: LoadPlan) -> float:
    """With more requests of one client under way than these, the run's p99 is certain to be over `give_up_s`.

    At any time, `give_up_s` seconds' worth of requests may be under way within the bound. What is more is late already.
    """
    if plan.give_up_s is None:
        return float("inf")
    rate = plan.rate / plan.clients
    return rate * plan.give_up_s + max(GIVE_UP_SHARE * rate * plan.duration_s, rate * plan.give_up_s)
