"""Who is told what when workers leave: the worker, the operator who asked for it, and those that stand by."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from styx.coordinator import departures
from styx.coordinator.control_events import Answer, DrainAsked, Said, StandBy
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.departures import Departures
from styx.coordinator.events import ReleaseWorker, WorkerLeaving
from styx.coordinator.generation import Phase
from styx.coordinator.roster import Registration, Roster


class Office:
    """`said` is all that followed, in order; operator 7 asks."""

    def __init__(self, *names: str) -> None:
        self.roster = Roster()
        self.said: list[Said] = []
        self.core = Coordinator(2, 2)
        self.departures = Departures(self.core, self.roster)
        for name in names:
            self.register(name).joined = True

    def register(self, name: str) -> Registration:
        number = max(self.roster.workers, default=0) + 1
        worker = self.roster.workers[number] = Registration(number, name, f"process {name}")
        return worker

    def do(self, said: Iterable[Said]) -> None:
        self.said += said

    def look(self) -> None:
        """What each step of the control plane has it look at, and each tick."""
        self.do(self.departures.answers())
        self.do(self.departures.stand_by())

    def drain(self, name: str) -> None:
        self.do(self.departures.drain(DrainAsked(7, name)))
        self.do(self.departures.answers())

    @property
    def events(self) -> list[Said]:
        return [each for each in self.said if isinstance(each, WorkerLeaving)]

    @property
    def answers(self) -> list[tuple[bool, str]]:
        return [(each.done, each.text) for each in self.said if isinstance(each, Answer) and each.to == 7]

    def told(self, number: int) -> list[Said]:
        return [each for each in self.said if isinstance(each, ReleaseWorker | StandBy) and each.worker == number]


def test_a_drain_is_answered_when_the_worker_has_no_slots() -> None:
    office = Office("a", "b")
    office.drain("b")
    assert office.events == [WorkerLeaving(2)]
    office.look()
    assert office.answers == []
    office.departures.released(2)
    office.look()
    office.look()
    assert office.answers == [(True, "worker 'b' has no slots any more")]
    assert (office.told(1), office.told(2)) == ([], []), "the protocol lets it go"


def test_who_asks_again_is_answered_at_once() -> None:
    office = Office("a")
    office.drain("a")
    office.departures.released(1)
    office.drain("a")
    assert len(office.answers) == 2
    office.do(office.departures.leave(office.roster.workers[1]))
    assert office.events == [WorkerLeaving(1)]
    assert office.told(1) == [ReleaseWorker(1)] * 2


def test_there_is_nothing_to_drain() -> None:
    office = Office("a")
    office.drain("x")
    assert office.answers == [(True, "no worker 'x' is registered: there is nothing to drain")]
    office.drain("a")
    del office.roster.workers[1]
    office.look()
    assert office.answers[1:] == [(True, "worker 'a' is gone")]


def test_one_that_lost_its_connection_amid_a_drain_leaves_under_its_next_registration_too() -> None:
    office = Office("a")
    office.drain("a")
    for name, told in (("a", [ReleaseWorker(2)]), ("b", [])):
        worker = office.register(name)
        office.do(office.departures.registered(worker))
        assert office.told(worker.number) == told
        assert worker.leaving == worker.released == bool(told)


def test_all_workers_of_a_name_leave() -> None:
    office = Office("a", "a")
    office.drain("a")
    assert office.events == [WorkerLeaving(1), WorkerLeaving(2)]
    office.departures.released(1)
    office.look()
    assert office.answers == []
    del office.roster.workers[2]
    office.look()
    assert office.answers == [(True, "worker 'a' has no slots any more")]


def test_one_that_the_protocol_does_not_know_yet_is_let_go() -> None:
    office = Office()
    worker = office.register("a")
    office.do(office.departures.leave(worker))
    assert office.events == []
    assert office.told(1) == [ReleaseWorker(1)]
    assert worker.leaving


def test_those_without_slots_hear_whether_they_are_needed() -> None:
    office = Office("member", "other", "leaving")
    office.core.phase = Phase.RUNNING
    office.core.membership.wanted = 1
    for number in (1, 2, 3):
        office.core.membership.join(number, "", 0.0)
    office.core.membership.convene()
    office.roster.workers[3].leaving = True
    for _ in range(2):
        office.look()
    assert office.told(2) == [StandBy(2, True)]
    office.core.membership.wanted = 2
    office.look()
    assert office.told(2) == [StandBy(2, True), StandBy(2, False)]
    assert (office.told(1), office.told(3)) == ([], [])


def test_who_takes_part_for_a_while_is_told_again_that_it_stands_by() -> None:
    office = Office("a", "b")
    membership = office.core.membership
    office.core.phase = Phase.RUNNING
    membership.wanted = 1
    for number in (1, 2):
        membership.join(number, "", 0.0)
    for members in ({1}, {2}, {1}):
        membership.members = frozenset(members)
        office.look()
    assert office.told(2) == [StandBy(2, True), StandBy(2, True)]


def test_one_that_cannot_run_the_app_does_not_stand_by() -> None:
    office = Office("a")
    office.core.phase = Phase.RUNNING
    office.register("b")
    office.core.membership.join(1, "", 0.0)
    office.core.membership.convene()
    office.look()
    assert office.told(2) == []


def test_a_drained_process_that_registers_again_leaves_on_unless_many_were_drained_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(departures, "DRAINED_MAX", 2)
    office = Office("a", "b", "c")
    for name in "abc":
        office.drain(name)
    for name, leaves in (("a", False), ("b", True), ("c", True)):
        worker = office.register(name)
        office.do(office.departures.registered(worker))
        assert worker.leaving is leaves
