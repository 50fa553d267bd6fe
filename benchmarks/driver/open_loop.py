"""The open loop of one client. It sends each request when the request is due, and measures the latency from that time.

A slow client or a slow target does not reduce the number of requests. Late requests are sent as soon as possible, and
their latency counts from the time at which they were due. So the delay of a slow phase is always visible (no
coordinated omission). A request that follows another one is due as soon as that one is answered.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from benchmarks.driver.schedule import ticks
from benchmarks.driver.sending import Sending, UnderWay
from benchmarks.driver.workload import NobodyIsFree

SENT_AT_ONCE_MAX: Final = 500
"""The number of requests that a late client sends before it reads replies."""


class OpenLoop(Sending):
    """See `Sending`."""

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
        sent = 0
        try:
            for sent in range(taken):  # noqa: B007 - how many there were when nobody was free
                planned = next_planned()
                request = UnderWay(answered, failed, planned, due_s, counted)
                add(request)
                submit(planned, request)
        except NobodyIsFree:
            taken = sent
        recorder.sent += taken
        recorder.shed += count - taken
        if counted:
            recorder.window_sent += taken
            recorder.window_shed += count - taken
            recorder.late += [int((now_s - due_s) * 1e6)] * taken
