"""An orderly stop: one held snapshot, and nothing begins behind it."""

from __future__ import annotations

from styx.coordinator.events import (
    AppendMarker,
    DeployWanted,
    SnapshotWanted,
    StopWanted,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLeaving,
    WorkerLost,
)
from styx.coordinator.generation import Phase
from styx.coordinator.snapshot_course import CHANGE_RETRY_S
from styx.protocol.messages import Join, SnapshotUnusable
from tests.coordinator.office import Office, released, snapshot, snapshot_fails


def test_a_stop_is_one_held_snapshot_and_then_nothing_happens() -> None:
    office = Office().running()
    assert office.step(StopWanted()) == [TellWorker(worker, Join(1, 0)) for worker in (0, 1)]
    effects = snapshot(office, 0)
    assert not [effect for effect in effects if isinstance(effect, AppendMarker | TellWorker)]
    assert office.core.phase is Phase.STOPPED
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
    assert released(office.step(StopWanted())) == [1]
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
