"""Ports for processes that talk to each other on this machine, and keep theirs when they are started again."""

from __future__ import annotations

import random
import socket
from typing import Final

from styx.cli.exit_codes import CommandFailed, usage_error

PORTS: Final = range(20_000, 30_000)
"""Below those that connections leave from, one of which could take a dead process's place."""
TRIES_MAX: Final = 100


def free_port() -> int:
    """A port of this machine that nobody listens on; raises `CommandFailed`."""
    for port in random.sample(PORTS, TRIES_MAX):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise CommandFailed(f"no free port among {TRIES_MAX} tried from {PORTS.start} to {PORTS.stop}; try again")


def check_port(option: str, host: str, port: int) -> None:
    """Raises `CommandFailed`, which names the option, if `port` cannot be listened on now."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise usage_error(
            f"cannot listen on {host}, port {port}: {error.strerror or error}.\n"
            f"Choose another {option}; 0 takes a free one."
        ) from None
