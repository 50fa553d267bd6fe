"""Options of a connection's socket: bytes are sent without delay, and a vanished peer is noticed."""

from __future__ import annotations

import socket
from typing import Any, Final

HALF_OPEN_SECONDS: Final = 5
"""The longest silence of a peer's kernel before the connection counts as lost."""

_KEEPALIVE_IDLE_SECONDS: Final = 2
_KEEPALIVE_INTERVAL_SECONDS: Final = 1
# Other systems than Linux lack some of these; there, an application's pings find a lost peer.
_TCP_OPTIONS: Final = (
    ("TCP_NODELAY", 1),
    ("TCP_KEEPIDLE", _KEEPALIVE_IDLE_SECONDS),
    ("TCP_KEEPINTVL", _KEEPALIVE_INTERVAL_SECONDS),
    ("TCP_KEEPCNT", (HALF_OPEN_SECONDS - _KEEPALIVE_IDLE_SECONDS) // _KEEPALIVE_INTERVAL_SECONDS),
    ("TCP_USER_TIMEOUT", HALF_OPEN_SECONDS * 1000),
)


def set_socket_options(connected: Any) -> None:
    """Sets the options on a socket, or on a transport's substitute for one."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TCP_OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
