"""Connections of workers, gateways and operators to the coordinator, and what each last said of itself. Bookkeeping."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass, field
from typing import Final

from styx.cluster.wire import Busy, Heartbeat
from styx.transport import Connection

BUSY_TOLD_SECONDS: Final = 1.0
"""What holds up a worker for longer is told; again after twice as long each time."""

_log = logging.getLogger("styx.coordinator")


@dataclass(slots=True)
class WorkerLink:
    """A registered worker. `joined` once the protocol knows it.

    `taken` are the versions of the app that it can run, `refused` says of others why it cannot. `leaving`: it is to
    have no slots any more, and has none once it is `released`. `spare` is what it was told last of standing by.
    `busy_at_s`: when a function was last said to hold it up.
    """

    number: int
    connection: Connection
    joined: bool = False
    leaving: bool = False
    released: bool = False
    spare: bool | None = None
    heartbeat: Heartbeat | None = None
    heard_at_s: float = 0.0
    busy_told_s: float = 0.0
    busy_at_s: float = -math.inf
    taken: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


class Links:
    """All of them; numbers are given once in the life of a coordinator, from `first` on."""

    def __init__(self, first: int) -> None:
        self.workers: dict[int, WorkerLink] = {}
        self.gateways: list[Connection] = []
        self.operators: list[Connection] = []
        self.lifelines: list[Connection] = []
        self._next = first

    def register(self, connection: Connection) -> WorkerLink:
        """A worker has connected."""
        link = WorkerLink(self._next, connection)
        self.workers[link.number] = link
        self._next += 1
        return link

    def busy(self, message: Busy) -> bool:
        """A function holds up a worker; whether that is one of ours."""
        link = self.workers.get(message.worker)
        if link is None:
            return False
        link.busy_at_s = time.monotonic()
        if message.seconds < link.busy_told_s:
            link.busy_told_s = 0.0
        if message.seconds >= max(BUSY_TOLD_SECONDS, 2 * link.busy_told_s):
            link.busy_told_s = message.seconds
            name = link.connection.peer.name
            _log.warning("worker %s is held up by %s, for %.1f s: others wait", name, message.what, message.seconds)
        return True

    def close(self) -> None:
        """Cuts all of them; nobody is told."""
        workers = [link.connection for link in self.workers.values()]
        for connection in [*workers, *self.gateways, *self.operators, *self.lifelines]:
            connection.abort("the coordinator begins anew")
        self.workers.clear()
        self.gateways.clear()
        self.operators.clear()
        self.lifelines.clear()
