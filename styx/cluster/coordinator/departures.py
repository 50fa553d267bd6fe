"""Workers that leave: what a worker or an operator asked for, and who is told when it is done.

Whose slots move when is the protocol core's to say. Also tells workers without slots whether they stand by. Never acts
by itself: the session asks it with each of its ticks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from styx.cluster.coordinator.links import Links, WorkerLink
from styx.cluster.wire import Released, StandBy, encode
from styx.coordinator.coordinator import Coordinator, Phase
from styx.coordinator.events import Event, WorkerLeaving

DRAINED_MAX: Final = 1_000
"""Processes that an operator drained and that are remembered, should they register again; the oldest are forgotten."""

Answering = Callable[[bool, str], None]


class Departures:
    """`give` takes the event for the core."""

    def __init__(self, links: Links, core: Coordinator, give: Callable[[Event], None]) -> None:
        self._links = links
        self._core = core
        self._give = give
        self._drains: list[tuple[str, list[WorkerLink], Answering]] = []
        self._drained: dict[str, None] = {}

    def registered(self, link: WorkerLink) -> None:
        """A worker has registered; one that was to leave, and lost its connection before it heard so, leaves on."""
        if link.connection.peer.incarnation in self._drained:
            self.leave(link)

    def leave(self, link: WorkerLink) -> None:
        """The worker is to have no slots any more."""
        link.leaving = True
        if link.joined and not link.released:
            self._give(WorkerLeaving(link.number))
        else:
            self._release(link)

    def released(self, number: int) -> None:
        """The core has let a worker go."""
        link = self._links.workers.get(number)
        if link is not None:
            self._release(link)

    def _release(self, link: WorkerLink) -> None:
        link.released = True
        link.connection.send(encode(Released()))

    def drain(self, name: str, answer: Answering) -> None:
        """Every worker of this name leaves; `answer` is called when none of them has slots."""
        links = [link for link in self._links.workers.values() if link.connection.peer.name == name]
        if not links:
            answer(True, f"no worker {name!r} is registered: there is nothing to drain")
            return
        for link in links:
            self._remember(link.connection.peer.incarnation)
            self.leave(link)
        self._drains.append((name, links, answer))
        self._answer()

    def _remember(self, incarnation: str) -> None:
        self._drained[incarnation] = None
        if len(self._drained) > DRAINED_MAX:
            del self._drained[next(iter(self._drained))]

    def look(self) -> None:
        """Tells who is to be told by now."""
        self._answer()
        core = self._core
        if core.phase is Phase.RUNNING:
            settled, members = core.membership.settled, core.membership.members
            for link in self._links.workers.values():
                if not link.joined or link.number in members:
                    link.spare = None
                elif link.spare is not settled and not link.leaving:
                    link.spare = settled
                    link.connection.send(encode(StandBy(settled)))

    def _answer(self) -> None:
        workers = self._links.workers
        for drain in list(self._drains):
            name, links, answer = drain
            there = [link for link in links if workers.get(link.number) is link]
            if all(link.released for link in there):
                self._drains.remove(drain)
                answer(True, f"worker {name!r} has no slots any more" if there else f"worker {name!r} is gone")
