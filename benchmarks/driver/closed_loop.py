"""The closed loop of one client: as many requests under way as the plan says, and the next one as soon as one is
answered. A slow target gets fewer requests, so its waits are hidden: latencies are from the sending of each request.

It is how many papers measure. What a user waits for at a given load, only the open loop shows.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from benchmarks.driver.sending import Sending, UnderWay
from benchmarks.driver.workload import NobodyIsFree
from styx.messages import Reply

PAUSE_SECONDS: Final = 0.01
"""Between looks: after a request without an answer, or while nobody is free, the next one waits so long."""


class ClosedLoop(Sending):
    """See `Sending`. The level is shared among the clients."""

    _open = True

    @property
    def level(self) -> int:
        """Requests that this client keeps under way."""
        plan = self._plan
        assert plan.concurrency is not None
        return plan.concurrency // plan.clients + (self._client < plan.concurrency % plan.clients)

    async def _send(self) -> None:
        await asyncio.sleep(max(self._start_s - time.monotonic(), 0))
        while (now_s := time.monotonic()) < self._recorder.window_to_s:
            self._look(now_s)
            if self._gave_up:
                break
            self._refill(now_s)
            await asyncio.sleep(PAUSE_SECONDS)
        self._open = False

    def _answered(self, request: UnderWay, reply: Reply) -> None:
        super()._answered(request, reply)
        # After a rejection the loop's next look sends the next one: else a full target would be asked without a pause.
        if self._open and (reply.error is None or reply.error.code == "aborted"):
            self._refill(time.monotonic())

    def _refill(self, now_s: float) -> None:
        recorder, level = self._recorder, self.level
        if self._gave_up or now_s >= recorder.window_to_s:
            return
        counted = now_s >= recorder.window_from_s
        while len(self._under_way) < level:
            try:
                planned = self._generator.next()
            except NobodyIsFree:
                return
            recorder.sent += 1
            if counted:
                recorder.window_sent += 1
            before = len(self._under_way)
            self._start(planned, now_s, counted)
            if len(self._under_way) <= before:
                return  # it was refused at once, as the next one would be: the loop's next look goes on
