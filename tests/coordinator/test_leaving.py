"""Workers that leave: who serves until when, and who is let go behind what. With workers it is in the transcripts."""

from __future__ import annotations

from styx.coordinator.events import (
    AppendMarker,
    ReleaseWorker,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLeaving,
    WorkerLost,
)
from styx.coordinator.generation import Phase
from styx.coordinator.membership import SETTLE_S
from styx.protocol.messages import Join, Loaded
from tests.coordinator.office import Office, released, snapshot


def test_who_leaves_is_let_go_behind_the_next_generation_s_marker() -> None:
    office = Office().running()
    assert office.step(WorkerLeaving(1)) == [TellWorker(worker, Join(1, 0)) for worker in (0, 1)]
    assert released(snapshot(office, 0)) == []
    assert snapshot(office, 1)[-1] == AppendMarker(2, 1)
    assert office.marked()[1:] == [ReleaseWorker(1)]
    assert office.core.owners == {0: 0, 1: 0}
    assert not office.core.changing
    assert office.step(WorkerLost(1)) == [], "it had nothing"


def test_who_leaves_waits_for_nobody_who_joins() -> None:
    office = Office(workers=None)
    office.step(WorkerJoined(0))
    office.step(Tick(SETTLE_S))
    office.loaded()
    assert office.step(WorkerJoined(1)) == [], "others may join together with it"
    assert office.step(WorkerLeaving(0)) == [TellWorker(0, Join(1, 0))]


def test_a_number_that_is_given_again_can_leave_again() -> None:
    office = Office().running()
    office.step(WorkerJoined(2))
    for _ in range(2):
        assert released(office.step(WorkerLeaving(2))) == [2]
        office.step(WorkerJoined(2))


def test_one_that_was_expelled_is_there_when_the_others_leave() -> None:
    office = Office()
    office.step(WorkerJoined(0, "a"))
    office.step(WorkerJoined(1, "b"))
    office.loaded().core.membership.shun(1, 0.0)
    office.step(WorkerLost(1))
    office.loaded()
    office.step(WorkerJoined(2, "b"))
    assert not office.core.changing
    office.step(WorkerLeaving(0))
    assert office.core.membership.eligible == [2]
    snapshot(office, 0)
    assert snapshot(office, 1)[-1] == AppendMarker(3, 1)
    assert office.core.membership.members == {2}


def test_the_longest_wait_begins_anew_when_all_had_gone() -> None:
    office = Office(workers=None, grace_s=10.0)
    office.step(WorkerJoined(0))
    office.step(WorkerLeaving(0))
    office.step(Tick(100.0))
    assert office.step(WorkerJoined(1)) == [], "others may join together with it"
    assert office.step(Tick(100.0 + SETTLE_S)) == [AppendMarker(1, -1)]


def test_who_has_left_never_takes_part_again() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    for epoch in (0, 1):
        snapshot(office, epoch)
    office.loaded()
    assert office.step(WorkerLeaving(1)) == [], "it was let go already"
    office.step(WorkerLost(0))
    assert office.core.phase is Phase.WAITING
    assert office.step(WorkerJoined(2)) == [AppendMarker(3, 1)]
    assert office.core.membership.members == {2}


def test_a_worker_without_slots_is_let_go_at_once() -> None:
    office = Office()
    office.step(WorkerJoined(0))
    assert office.step(WorkerLeaving(0)) == [ReleaseWorker(0)], "nothing runs yet"
    assert office.step(WorkerJoined(1)) == [], "two are wanted, and one does not count"
    assert office.step(WorkerJoined(2)) == [AppendMarker(1, -1)]
    office.loaded()
    office.step(WorkerJoined(3))
    assert office.step(WorkerLeaving(3)) == [ReleaseWorker(3)], "it stands by"
    assert office.step(WorkerLeaving(9)) == [], "nobody knows it"


def test_when_all_leave_they_are_let_go_behind_the_held_snapshot_and_nothing_begins() -> None:
    office = Office().running()
    for worker in (0, 1):
        office.step(WorkerLeaving(worker))
    snapshot(office, 0)
    effects = snapshot(office, 1)
    assert released(effects) == [0, 1]
    assert office.core.all_stored
    assert not [effect for effect in effects if isinstance(effect, AppendMarker)]
    assert office.core.phase is Phase.WAITING
    assert office.step(Tick(1.0)) == []
    assert office.step(WorkerJoined(2)) == [AppendMarker(2, 1)]
    assert office.loaded().core.all_stored is False


def test_one_that_leaves_while_it_is_fenced_in_loads_first() -> None:
    office = Office()
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    assert office.step(WorkerLeaving(1)) == []
    office.marked()
    office.said(0, Loaded(1, -1))
    assert office.said(1, Loaded(1, -1))[-1] == TellWorker(1, Join(1, 0)), "a snapshot is begun at once"


def test_until_the_marker_is_written_one_that_leaves_can_still_be_the_only_one() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    for epoch in (0, 1):
        snapshot(office, epoch)
    assert office.core.phase is Phase.FENCING
    assert office.step(WorkerLost(0)) == [AppendMarker(3, 1)]
    assert office.core.membership.members == {1}


def test_a_recovery_is_without_who_leaves_if_others_are_there() -> None:
    office = Office(workers=3).running()
    office.step(WorkerLeaving(1))
    assert office.step(WorkerLost(2)) == [AppendMarker(2, -1)]
    assert released(office.marked()) == [1]
    assert office.core.membership.members == {0}


def test_one_that_leaves_and_joins_anew_is_another_worker() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    office.step(WorkerJoined(1))
    office.loaded()
    assert office.core.membership.members == {0, 1}
    assert not office.core.changing
