"""The limits of HTTP connections: their number, and the duration and size of what clients send."""

from __future__ import annotations

from typing import Final, NamedTuple

from styx.model.limits import KIB

HEADER_BYTES_MAX: Final = 64 * KIB
"""A request's line and headers together."""
HEADER_SECONDS_MAX: Final = 10.0
"""From a connection's beginning, or the first byte of a later request, to the end of the request's headers."""
BODY_SECONDS_MAX: Final = 20.0
"""For a body to arrive, and more for a longer one: at least so many bytes must come each second."""
BODY_BYTES_PER_SECOND_MIN: Final = 1 * KIB
FRAMING_BYTES_MAX: Final = 64 * KIB
"""What a chunked body may have beyond eight times its content: sizes of chunks, what is beside them, trailers."""
UNREAD_SECONDS_MAX: Final = 30.0
"""How long a client may take nothing of an answer that waits for it."""
LINGER_SECONDS_MAX: Final = 2.0
"""How long what a refused client still sends is thrown away, so that it can read why it was refused."""
TICK_SECONDS: Final = 1.0
"""How often connections are looked at; a limit of time is kept as exactly as this."""
DESCRIPTORS_KEPT: Final = 128
"""File descriptors of the process that are not for connections, where it has few of them."""


class HttpLimits(NamedTuple):
    """Of one listening port. What is not named here is the same for all of them."""

    connections_max: int
    """Open at once. One more takes the place of the one that has waited longest without a request under way."""
    keep_alive_seconds: float
    """How long a connection that has had an answer stays open without a next request."""
    header_seconds_max: float = HEADER_SECONDS_MAX
    body_seconds_max: float = BODY_SECONDS_MAX
    unread_seconds_max: float = UNREAD_SECONDS_MAX
