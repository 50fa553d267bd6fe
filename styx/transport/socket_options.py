"""Options of a connection's socket: bytes are sent without delay, and a vanished peer is noticed."""

from __future__ import annotations

import socket
from typing import Any, Final

HALF_OPEN_SECONDS: Final = 5
"""How long a peer's kernel may answer nothing before the connection counts as lost."""

_KEEPALIVE_IDLE_SECONDS: Final = 2
_KEEPALIVE_INTERVAL_SECONDS: Final = 1
# Other systems than Linux lack some of these; there, an application ping notices what the kernel does not.
_TCP_OPTIONS: Final = (
    ("TCP_NODELAY", 1),
    ("TCP_KEEPIDLE", _KEEPALIVE_IDLE_SECONDS),
    ("TCP_KEEPINTVL", _KEEPALIVE_INTERVAL_SECONDS),
    ("TCP_KEEPCNT", (HALF_OPEN_SECONDS - _KEEPALIVE_IDLE_SECONDS) // _KEEPALIVE_INTERVAL_SECONDS),
    ("TCP_USER_TIMEOUT", HALF_OPEN_SECONDS * 1000),
)


def set_socket_options(connected: Any) -> None:
    """Sets them on a socket, or on what a transport gives as one."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TCP_OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
