"""An orderly stop: one held snapshot, and nothing begins behind it."""

from __future__ import annotations

from styx.coordinator.events import (
    AppendMarker,
    DeployWanted,
    SnapshotWanted,
    StopEnded,
    StopWanted,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLeaving,
    WorkerLost,
)
from styx.coordinator.generation import Phase
from styx.coordinator.snapshot_course import CHANGE_RETRY_S, STOP_S_MAX
from styx.protocol.messages import Join, SnapshotUnusable
from tests.coordinator.office import Office, released, snapshot, snapshot_fails


def test_a_stop_is_one_held_snapshot_and_then_nothing_happens() -> None:
    office = Office().running()
    assert office.step(StopWanted()) == [TellWorker(worker, Join(1, 0)) for worker in (0, 1)]
    effects = snapshot(office, 0)
    assert not [effect for effect in effects if isinstance(effect, AppendMarker | TellWorker)]
    assert office.core.phase is Phase.STOPPED
    assert effects[-1] == StopEnded(stored=True)
    for event in (WorkerLost(0), WorkerJoined(5), Tick(99.0), SnapshotWanted()):
        assert office.step(event) == []


def test_a_stop_holds_behind_a_loss_too_and_lets_go_who_leaves() -> None:
    office = Office().running()
    office.step(StopWanted())
    office.step(WorkerLost(1))
    office.loaded()
    office.step(WorkerLeaving(0))
    effects = snapshot(office, 0)
    assert office.core.phase is Phase.STOPPED
    assert released(effects) == [0]


def test_a_stop_behind_a_planned_change_lets_nothing_begin() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    snapshot(office, 0)
    assert AppendMarker(2, 1) in snapshot(office, 1), "the marker is being written"
    effects = office.step(StopWanted())
    assert released(effects) == [1]
    assert effects[-1] == StopEnded(stored=True)
    assert office.core.phase is Phase.STOPPED
    assert office.core.all_stored
    assert office.marked() == []


def test_behind_a_planned_change_whose_snapshot_is_damaged_not_everything_is_stored() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    snapshot(office, 0)
    snapshot(office, 1)
    office.marked()
    assert office.core.all_stored
    office.said(0, SnapshotUnusable(2, "an object is damaged"))
    assert not office.core.all_stored
    office.step(StopWanted())
    assert office.core.phase is Phase.FENCING


def test_a_stop_whose_snapshot_failed_holds_again_soon() -> None:
    office = Office().running()
    office.step(StopWanted())
    snapshot_fails(office, 0)
    assert office.step(Tick(0.9 * CHANGE_RETRY_S)) == []
    assert office.step(Tick(CHANGE_RETRY_S)) == [TellWorker(worker, Join(1, 1)) for worker in (0, 1)]
    snapshot(office, 1)
    assert office.core.phase is Phase.STOPPED


def test_a_stop_does_not_switch_the_version() -> None:
    office = Office().running()
    office.step(DeployWanted(5))
    office.step(StopWanted())
    snapshot(office, 0)
    assert office.core.phase is Phase.STOPPED
    assert office.core.app_version == 0


def test_a_stop_that_nobody_can_take_a_snapshot_for_ends_at_once() -> None:
    office = Office()
    assert office.step(StopWanted()) == [StopEnded(stored=False)]
    assert office.core.phase is Phase.STOPPED
    assert office.step(WorkerJoined(0)) == []


def test_a_stop_that_loses_all_workers_ends() -> None:
    office = Office().running()
    office.step(StopWanted())
    assert not [each for each in office.step(WorkerLost(0)) if isinstance(each, StopEnded)]
    assert office.step(WorkerLost(1)) == [StopEnded(stored=False)]
    assert office.core.phase is Phase.STOPPED


def test_a_stop_whose_snapshot_is_late_ends_without_it_whoever_asks_again() -> None:
    office = Office().running()
    office.step(Tick(1.0))
    office.step(StopWanted())
    office.step(Tick(5.0))
    assert office.step(StopWanted()) == []
    assert not [each for each in office.step(Tick(0.9 + STOP_S_MAX)) if isinstance(each, StopEnded)]
    assert office.step(Tick(1.0 + STOP_S_MAX))[-1] == StopEnded(stored=False)
    assert office.core.phase is Phase.STOPPED
    assert office.step(StopWanted()) == [StopEnded(stored=False)], "it has stopped: nobody waits for nothing"
