"""Ports for processes that talk to each other on this machine, and keep theirs when they are started again."""

from __future__ import annotations

import random
import socket
from typing import Final

from styx.cli.exit_codes import CommandFailed

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
