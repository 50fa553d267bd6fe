"""The connections of one listening port and their limits: how many there are, which of them wait, and for how long.

A connection waits while it has no request under way. When there is no room for another connection, the one that has
waited longest is closed, first among those that never sent a whole request. So silent connections never keep clients
out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from styx.model.limits import KIB

if TYPE_CHECKING:
    from styx.http.direct import Direct

HEADER_BYTES_MAX: Final = 64 * KIB
"""Limit on a request's line and headers together."""
HEADER_SECONDS_MAX: Final = 10.0
"""Limit from a connection's beginning, or the first byte of a later request, to the end of the request's headers."""
BODY_SECONDS_MAX: Final = 20.0
"""Limit on the arrival of a body. It grows by a second for each `BODY_BYTES_PER_SECOND_MIN` bytes of the body."""
BODY_BYTES_PER_SECOND_MIN: Final = 1 * KIB
FRAMING_BYTES_MAX: Final = 64 * KIB
"""Bytes that a chunked body may have beyond eight times its content: sizes of chunks, their extensions, trailers."""
UNREAD_SECONDS_MAX: Final = 30.0
"""How long a client may read nothing of an answer that waits for it."""
LINGER_SECONDS_MAX: Final = 2.0
"""How long a refused client's further bytes are thrown away, so that it can read the reason."""
TICK_SECONDS: Final = 1.0
"""The time between two checks of the connections, which is the precision of all limits of time."""
DESCRIPTORS_KEPT: Final = 128
"""File descriptors that a process with few of them keeps for other uses than connections."""

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
    """A connection, from the room's view."""

    served: bool
    """Whether the connection ever sent a whole request."""

    def look(self, now: float) -> None:
        """Ends the connection if one of its limits of time is over."""

    def make_room(self) -> None:
        """Ends the waiting connection, because another one needs its place."""


class Room:
    """The connections of one port, within `limits`. `on_refusal` gets the reason of each refused connection or request,
    in one word.
    """

    def __init__(self, limits: HttpLimits, on_refusal: Callable[[str], None] = lambda _: None) -> None:
        self.limits = limits
        self.connections_max = min(limits.connections_max, descriptors_max())
        self._on_refusal = on_refusal
        self._guests: set[Guest] = set()
        # The connection that has waited longest comes first.
        self._new: OrderedDict[Guest, None] = OrderedDict()
        self._idle: OrderedDict[Guest, None] = OrderedDict()
        self._tick: asyncio.TimerHandle | None = None
        self._told: set[str] = set()

    def __len__(self) -> int:
        return len(self._guests)

    def enter(self, guest: Guest) -> bool:
        """Admits a connection, which waits. Returns False if there is no room and all other connections are busy."""
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
        """Notes that a connection has no request under way any more."""
        self.busy(guest)
        if guest in self._guests:
            (self._idle if guest.served else self._new)[guest] = None

    def busy(self, guest: Guest) -> None:
        """Notes that a request of a connection is under way."""
        self._new.pop(guest, None)
        self._idle.pop(guest, None)

    def leave(self, guest: Guest) -> None:
        """Forgets a connection that is closed, or being closed."""
        self._guests.discard(guest)
        self.busy(guest)

    def refused(self, reason: str, text: str) -> None:
        """Counts a refusal, and logs the first one with this reason."""
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
    """How many connections the limit on file descriptors allows this process, at least one."""
    try:
        import resource
    except ImportError:  # no such limit on this platform
        return 1_000_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1_000_000
    return max(1, soft // 2, soft - DESCRIPTORS_KEPT)


def allow_descriptors(wanted: int) -> None:
    """Raises this process's limit on file descriptors to `wanted`, at most to its hard limit."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def serving(room: Room, direct: Direct | None = None) -> Any:
    """The value of uvicorn's option `http`, which makes the connections of a port in `room`; `direct` is the direct way
    of the application, if it has one.
    """
    from styx.http.connection import HttpConnection

    return partial(HttpConnection, room=room, direct=direct)
