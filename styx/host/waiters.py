"""Requests under way in an engine or in a client: the waiter of each reply, limits, and timeouts.

Their number and bytes are bounded. A timeout ends the waiting, not the transaction.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from styx.errors import RequestRejected, StyxError
from styx.messages import Reply, ReplyRecord, reply_of
from styx.values.codec import decode_plain

IN_FLIGHT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Encoded requests under way at once; one is always let in."""
TIMEOUT_RESOLUTION_SECONDS: Final = 0.01
"""The largest delay of a timeout; looking more often would cost more than it gives."""
SWEEP_SECONDS_MAX: Final = 0.5
"""How long a cancelled request may still count as under way, where it is forgotten then."""

K = TypeVar("K", bytes, str)
"""A request's id, as replies or their log carry it."""
_make_reply: Final[Callable[[tuple[Any, ...]], Reply]] = partial(tuple.__new__, Reply)


class Receiver(Protocol):
    """Takes the reply to a request: an `asyncio.Future`, or an object that acts in the turn in which the reply comes.

    No method may raise.
    """

    def done(self) -> bool:
        """Whether the caller no longer waits."""

    def set_result(self, result: Any, /) -> object:
        """Takes the reply; not called if `done`."""

    def set_exception(self, exception: BaseException, /) -> object:
        """Takes the reason for the lack of a reply; not called if `done`."""


class Waiter(msgspec.Struct, Generic[K], eq=False):
    """One request: `receiver` gets the `Reply`, or with `raw` the `ReplyRecord`. `payload` is the encoded request.

    It was sent at `since_s` of the loop's time. A `repeatable` request has an idempotency key, and may be sent twice.
    `misrouted_tid` is the TID under which another slot has sent it back, 0 for none.
    """

    # A Struct, since each request makes one: that takes a third of the time.
    key: K
    slot: int
    payload: bytes
    receiver: Receiver
    raw: bool
    repeatable: bool
    since_s: float
    deadline_s: float
    misrouted_tid: int = 0


class Waiters(Generic[K]):
    """The requests that wait for their reply, by request id, in the order they came.

    `late` makes the error of a timeout. `forgets`: a request without a waiting caller counts no more, as it may never
    be answered; otherwise it counts until it is answered. `queued`: they leave in the order they came.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        count_max: float,
        late: Callable[[], Exception],
        *,
        forgets: bool = True,
        queued: bool = False,
    ) -> None:
        self.by_id: dict[K, Waiter[K]] = OrderedDict() if queued else {}
        self._loop = loop
        self._count_max = count_max
        self._most = count_max
        self._late = late
        self._sweep_s = SWEEP_SECONDS_MAX if forgets else math.inf
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = math.inf

    def bound(self, most: float) -> None:
        """There is no place for more than so many now, nor ever for more than `count_max`."""
        self._most = min(self._count_max, most)

    @property
    def full(self) -> bool:
        """There is no place for another one."""
        return len(self.by_id) >= self._most or self._bytes >= IN_FLIGHT_BYTES_MAX

    def check(self, key: K, crowded: bool = False) -> None:
        """Raises `RequestRejected`: `bad_request` for an id under way, `overloaded` without a place or if `crowded`."""
        by_id = self.by_id
        if key in by_id:
            name = key if isinstance(key, str) else key.decode()
            raise RequestRejected("bad_request", f"request id {name!r} is under way already")
        if crowded or len(by_id) >= self._most or self._bytes >= IN_FLIGHT_BYTES_MAX:
            raise RequestRejected("overloaded", f"{len(by_id)} requests are in flight; try again soon")

    def add(self, waiter: Waiter[K]) -> None:
        """From now on its reply is waited for; `check` has found a place for it."""
        self.by_id[waiter.key] = waiter
        self._bytes += len(waiter.payload)
        at_s = waiter.since_s + self._sweep_s
        if waiter.deadline_s < at_s:
            at_s = waiter.deadline_s
        if at_s < self._timer_at_s:
            self._arm(at_s)

    def remove(self, waiter: Waiter[K]) -> None:
        """It is not waited for here any more."""
        del self.by_id[waiter.key]
        self._bytes -= len(waiter.payload)

    def answer(self, waiter: Waiter[K], reply: ReplyRecord) -> None:
        """Gives it its reply, unless it is cancelled or late."""
        del self.by_id[waiter.key]
        self._bytes -= len(waiter.payload)
        receiver = waiter.receiver
        if receiver.done():
            return
        if waiter.raw:
            receiver.set_result(reply)
            return
        try:
            if reply.error is None and reply.result:
                # What `reply_of` does, for most replies in half the time: NamedTuples are made by Python code.
                public = _make_reply(
                    (decode_plain(reply.result), None, reply.tid, reply.epoch, reply.phase, reply.request_id)
                )
            else:
                public = reply_of(reply)
        except Exception as error:  # noqa: BLE001 - bytes that only their writer can read must not stop the others
            fail(receiver, StyxError(f"the request committed, but its result cannot be read: {error}"))
        else:
            receiver.set_result(public)

    def pop_oldest(self) -> Waiter[K]:
        """Removes the one that has waited longest; only of those that are `queued`."""
        assert isinstance(self.by_id, OrderedDict), "a plain dictionary looks at all that were removed before"
        waiter: Waiter[K] = self.by_id.popitem(last=False)[1]
        self._bytes -= len(waiter.payload)
        return waiter

    def end(self, error: Callable[[], Exception]) -> None:
        """Fails all waiters, each with a new exception."""
        if self._timer is not None:
            self._timer.cancel()
        waiting, self.by_id = self.by_id, {}
        self._bytes = 0
        for waiter in waiting.values():
            fail(waiter.receiver, error())

    def _arm(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_s = at_s
        self._timer = self._loop.call_at(at_s, self._sweep)

    def _sweep(self) -> None:
        now_s = self._loop.time()
        next_s = now_s + self._sweep_s
        forgets = self._sweep_s < math.inf
        for waiter in list(self.by_id.values()):
            if waiter.deadline_s <= now_s:
                fail(waiter.receiver, self._late())
            elif waiter.deadline_s < next_s:
                next_s = waiter.deadline_s
            if forgets and waiter.receiver.done():
                self.remove(waiter)
        self._timer, self._timer_at_s = None, math.inf
        if self.by_id and next_s < math.inf:
            self._arm(max(next_s, now_s + TIMEOUT_RESOLUTION_SECONDS))


def fail(receiver: Receiver, error: Exception) -> None:
    """Ends the waiting with an error, unless it has ended."""
    if not receiver.done():
        receiver.set_exception(error)
        if isinstance(receiver, asyncio.Future):
            # Looked at here, so that asyncio does not report a caller who sends and forgets.
            receiver.exception()
