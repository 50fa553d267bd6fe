"""Connections of workers, gateways and operators to the coordinator, and what each last said of itself. Bookkeeping."""

from __future__ import annotations

from dataclasses import dataclass, field

from styx.cluster.wire import Heartbeat
from styx.transport import Connection


@dataclass(slots=True)
class WorkerLink:
    """A registered worker. `joined` once the protocol knows it.

    `taken` are the versions of the app that it can run, `refused` says of others why it cannot. `leaving`: it is to
    have no slots any more, and has none once it is `released`. `spare` is what it was told last of standing by.
    """

    number: int
    connection: Connection
    joined: bool = False
    leaving: bool = False
    released: bool = False
    spare: bool | None = None
    heartbeat: Heartbeat | None = None
    heard_at_s: float = 0.0
    taken: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


class Links:
    """All of them; numbers are given once in the life of a coordinator, from `first` on."""

    def __init__(self, first: int) -> None:
        self.workers: dict[int, WorkerLink] = {}
        self.gateways: list[Connection] = []
        self.operators: list[Connection] = []
        self._next = first

    def register(self, connection: Connection) -> WorkerLink:
        """A worker has connected."""
        link = WorkerLink(self._next, connection)
        self.workers[link.number] = link
        self._next += 1
        return link

    def close(self) -> None:
        """Cuts all of them; nobody is told."""
        workers = [link.connection for link in self.workers.values()]
        for connection in [*workers, *self.gateways, *self.operators]:
            connection.abort("the coordinator begins anew")
        self.workers.clear()
        self.gateways.clear()
        self.operators.clear()
