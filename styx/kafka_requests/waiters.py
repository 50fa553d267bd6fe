"""Requests under way in one requester: who waits for which reply, how many, and whose patience ends when.

Bounded in number and bytes. It never sends anything; a timeout ends the waiting, not the transaction. A request nobody
waits for any more is forgotten: unlike an embedded engine, Kafka may never answer it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

from styx.errors import StyxError
from styx.messages import ReplyRecord, reply_of

IN_FLIGHT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Encoded requests under way at once; one is always let in."""
TIMEOUT_RESOLUTION_SECONDS: Final = 0.01
"""A timeout may be noticed so much late; looking more often would cost more than it gives."""
SWEEP_SECONDS_MAX: Final = 0.5
"""How long a request that its caller has cancelled may still count as under way."""


class Waiter:
    """One request: its future gives the `Reply`, or with `raw` the `ReplyRecord`. `payload` is the encoded request.

    `repeatable`: it has an idempotency key, so sending it twice runs it once. `misrouted_tid`: the TID under which
    another slot has sent it back, 0 for none.
    """

    __slots__ = (
        "deadline_s",
        "future",
        "misrouted_tid",
        "payload",
        "raw",
        "repeatable",
        "request_id",
        "since_s",
        "slot",
    )

    def __init__(
        self,
        request_id: str,
        slot: int,
        payload: bytes,
        future: asyncio.Future[Any],
        raw: bool,
        repeatable: bool,
        since_s: float,
        deadline_s: float,
    ) -> None:
        self.request_id = request_id
        self.slot = slot
        self.payload = payload
        self.future = future
        self.raw = raw
        self.repeatable = repeatable
        self.since_s = since_s
        self.deadline_s = deadline_s
        self.misrouted_tid = 0


class Waiters:
    """All requests of a requester that wait for their reply, by request id; times are the loop's.

    `late` makes the error of those that waited in vain.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, count_max: int, late: Callable[[], Exception]) -> None:
        self.by_id: dict[str, Waiter] = {}
        self._loop = loop
        self._count_max = count_max
        self._late = late
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = math.inf

    @property
    def full(self) -> bool:
        """There is no place for another one."""
        return len(self.by_id) >= self._count_max or self._bytes >= IN_FLIGHT_BYTES_MAX

    def add(self, waiter: Waiter) -> None:
        """From now on its reply is waited for."""
        self.by_id[waiter.request_id] = waiter
        self._bytes += len(waiter.payload)
        at_s = min(waiter.deadline_s, waiter.since_s + SWEEP_SECONDS_MAX)
        if at_s < self._timer_at_s:
            self._arm(at_s)

    def answer(self, waiter: Waiter, reply: ReplyRecord) -> None:
        """Gives it its reply, unless it is cancelled or late."""
        self._forget(waiter)
        future = waiter.future
        if future.done():
            return
        if waiter.raw:
            future.set_result(reply)
            return
        try:
            public = reply_of(reply)
        except Exception as error:  # noqa: BLE001 - bytes that only their writer can read must not stop the others
            fail(future, StyxError(f"the request committed, but its result cannot be read: {error}"))
        else:
            future.set_result(public)

    def end(self, error: Callable[[], Exception]) -> None:
        """Nobody will be answered any more; the exception is made for each waiter anew."""
        if self._timer is not None:
            self._timer.cancel()
        for waiter in self.by_id.values():
            fail(waiter.future, error())
        self.by_id.clear()
        self._bytes = 0

    def _forget(self, waiter: Waiter) -> None:
        del self.by_id[waiter.request_id]
        self._bytes -= len(waiter.payload)

    def _arm(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_s = at_s
        self._timer = self._loop.call_at(at_s, self._sweep)

    def _sweep(self) -> None:
        now_s = self._loop.time()
        next_s = now_s + SWEEP_SECONDS_MAX
        for waiter in list(self.by_id.values()):
            if waiter.deadline_s <= now_s:
                fail(waiter.future, self._late())
            if waiter.future.done():
                self._forget(waiter)
            elif waiter.deadline_s < next_s:
                next_s = waiter.deadline_s
        self._timer, self._timer_at_s = None, math.inf
        if self.by_id:
            self._arm(max(next_s, now_s + TIMEOUT_RESOLUTION_SECONDS))


def fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Ends a future that may be done already, or that nobody may ever look at."""
    if not future.done():
        future.set_exception(error)
        # Looked at here, so that asyncio does not report a caller who sends and forgets.
        future.exception()
