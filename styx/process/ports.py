"""Ports of this machine for processes that are told where to listen, and keep their place when they are started again.

A port is chosen here and listened on elsewhere, by a process that starts later. Between the two, and while that process
is dead, no other process may get the port. So the port is held: a socket that never listens is bound to it. A server
that listens sets `SO_REUSEADDR`, as every server does, and may use the port. A program that looks for a free port does
not set it, and goes on to the next port. Only Linux has this behaviour; on other systems a port is only tried once, and
two processes that try at the same time may choose the same one.
"""

from __future__ import annotations

import atexit
import random
import socket
import sys
from typing import Final

PORTS: Final = range(20_000, 30_000)
"""Below those that connections leave from, one of which could take a dead process's place."""
TRIES_MAX: Final = 100
HOST: Final = "127.0.0.1"

_held: Final[list[socket.socket]] = []
"""Sockets that hold ports until this process ends."""


class NoFreePort(OSError):
    """All ports that were tried are taken."""


def free_port(following: int = 0) -> int:
    """A port of 127.0.0.1 that is not listened on or held, like the `following` ones after it; raises `NoFreePort`.

    This process holds them until it ends.
    """
    for port in random.sample(PORTS[: len(PORTS) - following], TRIES_MAX):
        taken = [_take(each) for each in range(port, port + following + 1)]
        free = [each for each in taken if each is not None]
        if len(free) == len(taken):
            if sys.platform == "linux":
                _held.extend(free)
            else:
                _close(free)
            return port
        _close(free)
    raise NoFreePort(f"no free port among {TRIES_MAX} tried from {PORTS.start} to {PORTS.stop}; try again")


def _take(port: int) -> socket.socket | None:
    """A socket bound to it, so that only a server can come after; None if it is taken."""
    taken = socket.socket()
    try:
        taken.bind((HOST, port))
    except OSError:
        taken.close()
        return None
    # Only now: with it, binding would have succeeded beside another one who holds the port.
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return taken


def _close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


atexit.register(_close, _held)  # Python warns of what is left open
