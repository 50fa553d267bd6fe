"""Workers that leave: who asked for it, who is told when it is done, and which workers stand by.

A drain is answered when none of its workers has slots. The protocol moves the slots, by a planned change. A worker that
the protocol does not know has no slots, and is released at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from styx.coordinator.control_events import Answer, DrainAsked, Said, StandBy
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import ReleaseWorker, WorkerLeaving
from styx.coordinator.generation import Phase
from styx.coordinator.roster import Registration, Roster

DRAINED_MAX: Final = 1_000
"""Processes that an operator drained and that are remembered, should they register again; the oldest are forgotten."""


class Drain(NamedTuple):
    """A command to drain. Operator `by` gets its answer when these workers, all of this name, have no slots."""

    by: int
    name: str
    workers: list[int]


class Departures:
    """Departures change `leaving`, `released` and `spare` of the workers in `roster`; nothing else does."""

    def __init__(self, core: Coordinator, roster: Roster) -> None:
        self._core = core
        self._roster = roster
        self._drains: list[Drain] = []
        self._drained: dict[str, None] = {}

    def registered(self, worker: Registration) -> list[Said]:
        """A worker has registered; one that was to leave, and lost its connection before it heard so, leaves on."""
        return self.leave(worker) if worker.incarnation in self._drained else []

    def leave(self, worker: Registration) -> list[Said]:
        """The worker is to have no slots any more."""
        worker.leaving = True
        if worker.joined and not worker.released:
            return [WorkerLeaving(worker.number)]
        worker.released = True
        return [ReleaseWorker(worker.number)]

    def released(self, number: int) -> None:
        """The protocol has let a worker go."""
        worker = self._roster.workers.get(number)
        if worker is not None:
            worker.released = True

    def drain(self, event: DrainAsked) -> list[Said]:
        """Every worker of this name leaves; it is answered when none of them has slots."""
        workers = self._roster.named(event.name)
        if not workers:
            return [Answer(event.by, True, f"no worker {event.name!r} is registered: there is nothing to drain")]
        said: list[Said] = []
        for worker in workers:
            self._remember(worker.incarnation)
            said += self.leave(worker)
        self._drains.append(Drain(event.by, event.name, [worker.number for worker in workers]))
        return said

    def _remember(self, incarnation: str) -> None:
        self._drained[incarnation] = None
        if len(self._drained) > DRAINED_MAX:
            del self._drained[next(iter(self._drained))]

    def answers(self) -> list[Said]:
        """To drains that are done by now, and to those that will never be, since the coordinator has stopped."""
        said: list[Said] = []
        for drain in list(self._drains):
            there = self._roster.members(drain.workers)
            if all(worker.released for worker in there):
                self._drains.remove(drain)
                text = f"worker {drain.name!r} has no slots any more" if there else f"worker {drain.name!r} is gone"
                said.append(Answer(drain.by, True, text))
            elif self._core.ended:
                self._drains.remove(drain)
                stopped = f"the coordinator has stopped before worker {drain.name!r} was let go"
                said.append(Answer(drain.by, False, f"{stopped}: drain again once there is another one"))
        return said

    def stand_by(self) -> list[Said]:
        """What workers without slots are told: whether any are kept from them. A change of it, once."""
        core, said = self._core, list[Said]()
        if core.phase is not Phase.RUNNING:
            return said
        settled, members = core.membership.settled, core.membership.members
        for worker in self._roster.workers.values():
            if not worker.joined or worker.number in members:
                worker.spare = None
            elif worker.spare is not settled and not worker.leaving:
                worker.spare = settled
                said.append(StandBy(worker.number, settled))
        return said
