"""Requests under way: who waits for which reply, which requests are held back, and when each timeout ends.

Bounded in number and bytes; requests over the bound wait outside of the engine, first come, first served. A timeout
ends the waiting, not the transaction.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from styx.errors import StyxError
from styx.messages import Reply, ReplyRecord, reply_of

IN_FLIGHT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Encoded requests under way at once; one is always let in."""
TIMEOUT_RESOLUTION_SECONDS: Final = 0.01
"""A timeout may be noticed so much late; looking more often would cost more than it gives."""


class Waiter:
    """One request: its future gives the `Reply`, or with `raw` the `ReplyRecord`. `payload` is the encoded request."""

    __slots__ = ("deadline_s", "future", "payload", "raw", "slot")

    def __init__(self, slot: int, payload: bytes, future: asyncio.Future[Any], raw: bool, deadline_s: float) -> None:
        self.slot = slot
        self.payload = payload
        self.future = future
        self.raw = raw
        self.deadline_s = deadline_s


class InFlight:
    """`taken` are in the engine, `held` wait for a place; both by request id, in the order they came."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count_max: int) -> None:
        self.taken: dict[str, Waiter] = {}
        self.held: deque[tuple[str, Waiter]] = deque()
        self._loop = loop
        self._count_max = count_max
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = math.inf

    @property
    def full(self) -> bool:
        """There is no place for another one."""
        return len(self.taken) >= self._count_max or self._bytes >= IN_FLIGHT_BYTES_MAX

    def take(self, request_id: str, waiter: Waiter) -> None:
        """The request enters the engine."""
        self.taken[request_id] = waiter
        self._bytes += len(waiter.payload)

    def watch(self, deadline_s: float) -> None:
        """A waiter with this deadline (loop time) came in."""
        if deadline_s < self._timer_at_s:
            self._arm(deadline_s)

    def answer(self, reply: ReplyRecord) -> None:
        """Gives a reply to who waits for it, if anybody does."""
        waiter = self.taken.pop(reply.request_id, None)
        if waiter is None:
            return
        self._bytes -= len(waiter.payload)
        future = waiter.future
        if future.done():
            return
        if waiter.raw:
            future.set_result(reply)
            return
        try:
            public: Reply = reply_of(reply)
        except Exception as error:  # noqa: BLE001 - bytes that only their writer can read must not stop the engine
            fail(future, StyxError(f"the request committed, but its result cannot be read: {error}"))
        else:
            future.set_result(public)

    def end(self, unknown: Callable[[], Exception], not_taken: Callable[[], Exception]) -> None:
        """Nobody will be answered any more; the exceptions are made for each waiter anew."""
        if self._timer is not None:
            self._timer.cancel()
        for waiter in self.taken.values():
            fail(waiter.future, unknown())
        for _, waiter in self.held:
            fail(waiter.future, not_taken())
        self.taken.clear()
        self.held.clear()
        self._bytes = 0

    def _arm(self, deadline_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_s = deadline_s
        self._timer = self._loop.call_at(deadline_s, self._expire)

    def _expire(self) -> None:
        now_s = self._loop.time()
        next_s = math.inf
        for waiters, why in (
            (list(self.taken.values()), "no reply in time; the request may still commit"),
            ([waiter for _, waiter in self.held], "too many requests were under way for too long; nothing was run"),
        ):
            for waiter in waiters:
                if waiter.deadline_s <= now_s:
                    fail(waiter.future, TimeoutError(why))
                elif waiter.deadline_s < next_s:
                    next_s = waiter.deadline_s
        self._timer, self._timer_at_s = None, math.inf
        if next_s < math.inf:
            self._arm(max(next_s, now_s + TIMEOUT_RESOLUTION_SECONDS))


def fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Ends a future that may be done already, or that nobody may ever look at."""
    if not future.done():
        future.set_exception(error)
        # Looked at here, so that asyncio does not report a caller who sends and forgets.
        future.exception()
