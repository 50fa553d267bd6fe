"""Connections of workers, gateways and operators to the coordinator, and the workers' last reports of themselves."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from styx.cluster.wire import INGEST_FACT, REPLICA_FACT, Busy, Heartbeat
from styx.transport import Connection

BUSY_TOLD_SECONDS: Final = 1.0
"""What holds up a worker for longer is told; again after twice as long each time."""
TURNED_AWAY_TOLD_MAX: Final = 1_000
"""Workers that were turned away, by name and reason, of which the log is told; others are only told themselves."""

_LISTENERS: Final = frozenset((INGEST_FACT, REPLICA_FACT))

_log = logging.getLogger("styx.coordinator")


@dataclass(slots=True)
class WorkerLink:
    """A worker's connection, and its last sign of life; `heard_at_s` on the monotonic clock."""

    number: int
    connection: Connection
    heartbeat: Heartbeat | None = None
    heard_at_s: float = 0.0
    busy_told_s: float = 0.0


class Links:
    """All of them by number; numbers are given once in the life of a coordinator, from `first` on."""

    def __init__(self, first: int) -> None:
        self.workers: dict[int, WorkerLink] = {}
        self.gateways: dict[int, Connection] = {}
        """Those of ingest processes and replicas are among them."""
        self.operators: dict[int, Connection] = {}
        self.lifelines: dict[int, Connection] = {}
        self._next = first
        self._told: set[tuple[str, str]] = set()

    def number(self) -> int:
        """One that nobody had."""
        self._next += 1
        return self._next - 1

    @property
    def gateway_names(self) -> list[str]:
        """The gateways, without the processes that only hear what gateways hear."""
        return sorted(each.peer.name for each in self.gateways.values() if not _LISTENERS & each.peer.facts.keys())

    def register(self, connection: Connection) -> WorkerLink:
        """A worker has connected."""
        link = WorkerLink(self.number(), connection)
        self.workers[link.number] = link
        return link

    def turned_away(self, worker: int, reason: str) -> Connection | None:
        """A worker that may not register; None if it is gone."""
        link = self.workers.pop(worker, None)
        if link is None:
            return None
        about = (link.connection.peer.name, reason)
        if about not in self._told and len(self._told) < TURNED_AWAY_TOLD_MAX:
            self._told.add(about)
            _log.error("worker %s is turned away: %s", *about)
        return link.connection

    def busy(self, message: Busy) -> None:
        """A function holds up a worker."""
        link = self.workers.get(message.worker)
        if link is None:
            return
        if message.seconds < link.busy_told_s:
            link.busy_told_s = 0.0
        if message.seconds >= max(BUSY_TOLD_SECONDS, 2 * link.busy_told_s):
            link.busy_told_s = message.seconds
            name = link.connection.peer.name
            _log.warning("worker %s is held up by %s, for %.1f s: others wait", name, message.what, message.seconds)

    def close(self) -> None:
        """Cuts all of them; nobody is told."""
        workers = [link.connection for link in self.workers.values()]
        others = [*self.gateways.values(), *self.operators.values(), *self.lifelines.values()]
        for among in (self.workers, self.gateways, self.operators, self.lifelines):
            among.clear()
        for connection in [*workers, *others]:
            connection.abort("the coordinator begins anew")
