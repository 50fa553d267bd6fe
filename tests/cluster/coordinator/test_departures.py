"""Who is told what when workers leave: the worker, the operator who asked for it, and those that stand by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.cluster.coordinator import departures
from styx.cluster.coordinator.departures import Departures
from styx.cluster.coordinator.links import Links, WorkerLink
from styx.cluster.wire import Released, StandBy, worker_hears
from styx.coordinator.coordinator import Coordinator, Phase
from styx.coordinator.events import Event, WorkerLeaving


class FakeConnection:
    """To a worker: what it was told."""

    def __init__(self, name: str) -> None:
        self.peer = SimpleNamespace(name=name, incarnation=f"process {name}")
        self.told: list[object] = []

    def send(self, payload: bytes) -> None:
        self.told.append(worker_hears.decode(payload))


class Office:
    def __init__(self, *names: str) -> None:
        self.links = Links(1)
        self.events: list[Event] = []
        self.answers: list[tuple[bool, str]] = []
        self.core = Coordinator(2, 2)
        self.departures = Departures(self.links, self.core, self.events.append)
        for name in names:
            self.register(name).joined = True

    def register(self, name: str) -> WorkerLink:
        return self.links.register(cast(Any, FakeConnection(name)))

    def told(self, number: int) -> list[object]:
        return cast(FakeConnection, self.links.workers[number].connection).told

    def drain(self, name: str) -> None:
        self.departures.drain(name, lambda *answer: self.answers.append(answer))


def test_a_drain_is_answered_when_the_worker_has_no_slots() -> None:
    office = Office("a", "b")
    office.drain("b")
    assert office.events == [WorkerLeaving(2)]
    office.departures.look()
    assert office.answers == []
    office.departures.released(2)
    office.departures.look()
    office.departures.look()
    assert office.answers == [(True, "worker 'b' has no slots any more")]
    assert office.told(2) == [Released()]
    assert office.told(1) == []


def test_who_asks_again_is_answered_at_once() -> None:
    office = Office("a")
    office.drain("a")
    office.departures.released(1)
    office.drain("a")
    assert len(office.answers) == 2
    office.departures.leave(office.links.workers[1])
    assert office.events == [WorkerLeaving(1)]
    assert office.told(1) == [Released()] * 3


def test_there_is_nothing_to_drain() -> None:
    office = Office("a")
    office.drain("x")
    assert office.answers == [(True, "no worker 'x' is registered: there is nothing to drain")]
    office.drain("a")
    del office.links.workers[1]
    office.departures.look()
    assert office.answers[1:] == [(True, "worker 'a' is gone")]


def test_one_that_lost_its_connection_amid_a_drain_leaves_under_its_next_registration_too() -> None:
    office = Office("a")
    office.drain("a")
    del office.links.workers[1]
    for name, told in (("a", [Released()]), ("b", [])):
        link = office.register(name)
        office.departures.registered(link)
        assert office.told(link.number) == told
        assert link.leaving == link.released == bool(told)


def test_all_workers_of_a_name_leave() -> None:
    office = Office("a", "a")
    office.drain("a")
    assert office.events == [WorkerLeaving(1), WorkerLeaving(2)]
    office.departures.released(1)
    office.departures.look()
    assert office.answers == []
    del office.links.workers[2]
    office.departures.look()
    assert office.answers == [(True, "worker 'a' has no slots any more")]


def test_one_that_the_protocol_does_not_know_yet_is_let_go() -> None:
    office = Office()
    link = office.register("a")
    office.departures.leave(link)
    assert office.events == []
    assert office.told(1) == [Released()]
    assert link.leaving


def test_those_without_slots_hear_whether_they_are_needed() -> None:
    office = Office("member", "other", "leaving")
    office.core.phase = Phase.RUNNING
    office.core.membership.wanted = 1
    for number in (1, 2, 3):
        office.core.membership.join(number, "", 0.0)
    office.core.membership.convene()
    office.links.workers[3].leaving = True
    for _ in range(2):
        office.departures.look()
    assert office.told(2) == [StandBy(True)]
    office.core.membership.wanted = 2
    office.departures.look()
    assert office.told(2) == [StandBy(True), StandBy(False)]
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
        office.departures.look()
    assert office.told(2) == [StandBy(True), StandBy(True)]


def test_one_that_cannot_run_the_app_does_not_stand_by() -> None:
    office = Office("a")
    office.core.phase = Phase.RUNNING
    office.register("b")
    office.core.membership.join(1, "", 0.0)
    office.core.membership.convene()
    office.departures.look()
    assert office.told(2) == []


def test_a_drained_process_that_registers_again_leaves_on_unless_many_were_drained_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(departures, "DRAINED_MAX", 2)
    office = Office("a", "b", "c")
    for name in "abc":
        office.drain(name)
    for name, leaves in (("a", False), ("b", True), ("c", True)):
        link = office.register(name)
        office.departures.registered(link)
        assert link.leaving is leaves
