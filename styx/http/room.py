"""The connections of one listening port and their limits: how many there are, which of them wait, and for how long.

A connection waits while it has no request under way. When there is no room for another connection, the one that has
waited longest is closed, first among those that never sent a whole request. So peers that connect and stay silent keep
nobody out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from styx.model.limits import KIB

HEADER_BYTES_MAX: Final = 64 * KIB
"""A request's line and headers together."""
HEADER_SECONDS_MAX: Final = 10.0
"""From a connection's beginning, or the first byte of a later request, to the end of the request's headers."""
BODY_SECONDS_MAX: Final = 20.0
"""For a body to arrive; a longer one has a second more for each `BODY_BYTES_PER_SECOND_MIN` bytes."""
BODY_BYTES_PER_SECOND_MIN: Final = 1 * KIB
FRAMING_BYTES_MAX: Final = 64 * KIB
"""Bytes that a chunked body may have beyond eight times its content: sizes of chunks, their extensions, trailers."""
UNREAD_SECONDS_MAX: Final = 30.0
"""How long a client may take nothing of an answer that waits for it."""
LINGER_SECONDS_MAX: Final = 2.0
"""How long a refused client's further bytes are thrown away, so that it can read the reason."""
TICK_SECONDS: Final = 1.0
"""How often connections are looked at; a limit of time is kept as exactly as this."""
DESCRIPTORS_KEPT: Final = 128
"""File descriptors of the process that are not for connections, where it has few of them."""

_log = logging.getLogger("styx.http")


class HttpLimits(NamedTuple):
    """The limits of one listening port. All others are the same for every port."""

    connections_max: int
    """Open at once. One more takes the place of the one that has waited longest without a request under way."""
    keep_alive_seconds: float
    """How long a connection that has had an answer stays open without a next request."""
    header_seconds_max: float = HEADER_SECONDS_MAX
    body_seconds_max: float = BODY_SECONDS_MAX
    unread_seconds_max: float = UNREAD_SECONDS_MAX


class Guest(Protocol):
    """A connection, as the room sees it."""

    served: bool
    """Whether it ever sent a whole request."""

    def look(self, now: float) -> None:
        """Ends it if its time is over."""

    def make_room(self) -> None:
        """Ends it: it waits, and others are there."""


class Room:
    """Connections within `limits`; `on_refusal` hears why a connection or a request was refused, in one word."""

    def __init__(self, limits: HttpLimits, on_refusal: Callable[[str], None] = lambda _: None) -> None:
        self.limits = limits
        self.connections_max = min(limits.connections_max, descriptors_max())
        self._on_refusal = on_refusal
        self._guests: set[Guest] = set()
        # The one that has waited longest first.
        self._new: OrderedDict[Guest, None] = OrderedDict()
        self._idle: OrderedDict[Guest, None] = OrderedDict()
        self._tick: asyncio.TimerHandle | None = None
        self._told: set[str] = set()

    def __len__(self) -> int:
        return len(self._guests)

    def enter(self, guest: Guest) -> bool:
        """Takes in a connection, which waits; False if all the others are busy and there is no room for it."""
        if len(self._guests) >= self.connections_max:
            longest = next(iter(self._new), None) or next(iter(self._idle), None)
            if longest is None:
                return False
            self.leave(longest)
            longest.make_room()
        self._guests.add(guest)
        self._new[guest] = None
        if self._tick is None:
            self._schedule()
        return True

    def waits(self, guest: Guest) -> None:
        """It has no request under way any more."""
        self.busy(guest)
        if guest in self._guests:
            (self._idle if guest.served else self._new)[guest] = None

    def busy(self, guest: Guest) -> None:
        """A request of it is under way."""
        self._new.pop(guest, None)
        self._idle.pop(guest, None)

    def leave(self, guest: Guest) -> None:
        """It is closed, or being closed."""
        self._guests.discard(guest)
        self.busy(guest)

    def refused(self, reason: str, text: str) -> None:
        """Counts it, and tells the log of the first one with this reason."""
        self._on_refusal(reason)
        if reason not in self._told:
            self._told.add(reason)
            _log.warning("refused an HTTP client: %s (logged once, counted from now on)", text)

    def _schedule(self) -> None:
        self._tick = asyncio.get_running_loop().call_later(TICK_SECONDS, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for guest in list(self._guests):
            guest.look(now)
        self._tick = None
        if self._guests:
            self._schedule()


def descriptors_max() -> int:
    """How many connections this process can have for the sake of its file descriptors, at least one."""
    try:
        import resource
    except ImportError:  # no such limit on this platform
        return 1_000_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1_000_000
    return max(1, soft // 2, soft - DESCRIPTORS_KEPT)


def allow_descriptors(wanted: int) -> None:
    """Lets this process have as many file descriptors as `wanted`, as far as its hard limit goes."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def serving(room: Room) -> Any:
    """The value of uvicorn's option `http`: makes the connections of a port, in this room."""
    from styx.http.connection import HttpConnection

    return partial(HttpConnection, room=room)
