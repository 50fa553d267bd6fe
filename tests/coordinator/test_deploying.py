"""A deployment as the coordinator decides it: the check of the state before it, and at its held snapshot."""

from __future__ import annotations

from styx.coordinator.events import (
    AppendMarker,
    DeployWanted,
    Effect,
    SnapshotWanted,
    StateFound,
    StoreManifest,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLost,
    WorkersWanted,
)
from styx.protocol.messages import CheckState, Join, Loaded, SnapshotEnded, StateChecked
from styx.schema.state_findings import StateFindings
from tests.coordinator.office import Office, manifest, snapshot, snapshot_fails, stored, uploaded

MISFIT = StateFindings(10, 1, ["acc['a']: missing required field 'cents'"])


def told(effects: list[Effect]) -> list[object]:
    return [effect.message for effect in effects if isinstance(effect, TellWorker) and effect.worker == 0]


def deploying() -> Office:
    """Version 5 is being deployed: all state fits, and the ordinary snapshot is there."""
    office = Office().running()
    assert told(office.step(DeployWanted(5))) == [CheckState(1, 5)]
    found, *rest = office.checked(5)
    assert found == StateFound(5, StateFindings(20))
    assert told(rest) == [Join(1, 0)]
    assert snapshot(office, 0)[-1] == TellWorker(1, Join(1, 1)), "the first one was an ordinary one"
    assert office.core.app_version == 0
    return office


def test_a_version_takes_effect_with_the_generation_behind_the_held_snapshot() -> None:
    office = deploying()
    assert uploaded(office, 1) == [], "what was changed since the check is not looked at yet"
    assert [type(effect) for effect in office.checked(5, epoch=1)] == [StoreManifest]
    assert office.core.app_version == 0
    assert stored(office, 1)[-1] == AppendMarker(2, 1, 5)
    assert office.core.app_version == 5
    assert told(office.loaded().step(DeployWanted(6))) == [CheckState(2, 6)]


def test_a_version_takes_effect_behind_the_first_snapshot_if_nobody_is_served() -> None:
    office = Office().running()
    assert told(office.step(DeployWanted(5, at_once=True))) == [Join(1, 0)], "whoever wants it has checked the state"
    assert snapshot(office, 0)[-1] == AppendMarker(2, 0, 5)
    assert office.core.app_version == 5


def test_state_that_does_not_fit_is_refused_before_anything_changes() -> None:
    office = Office().running()
    office.step(DeployWanted(5))
    found, *rest = office.checked(5, MISFIT)
    assert isinstance(found, StateFound)
    assert (found.findings.offenders, found.findings.first) == (2, 2 * MISFIT.first)
    assert told(rest) == [CheckState(1, None)]
    assert not office.core.changing


def test_a_check_alone_changes_nothing() -> None:
    office = Office().running()
    office.step(DeployWanted(5, only_check=True))
    found, *rest = office.checked(5)
    assert found == StateFound(5, StateFindings(20))
    assert told(rest) == [CheckState(1, None)]
    assert not office.core.changing


def test_a_check_that_nobody_waits_for_ends() -> None:
    office = Office().running()
    office.step(DeployWanted(-1, only_check=True))
    assert told(office.step(DeployWanted(0))) == [CheckState(1, None)]
    assert office.checked(-1) == [], "a worker may have been at its end"
    assert told(office.step(DeployWanted(0))) == []
    assert told(office.step(DeployWanted(5))) == [CheckState(1, 5)], "the next one begins"


def test_a_check_that_nobody_waits_for_ends_before_workers_have_heard_of_it() -> None:
    office = Office()
    office.step(DeployWanted(-1, only_check=True))
    assert told(office.step(DeployWanted(0))) == []
    assert not any(isinstance(message, CheckState) for message in told(office.running().step(Tick(1.0))))


def test_what_was_changed_since_the_check_abandons_the_change() -> None:
    office = deploying()
    uploaded(office, 1)
    found, *rest = office.checked(5, MISFIT, epoch=1)
    assert isinstance(found, StateFound)
    assert found.findings.offenders == 2
    assert told(rest) == [CheckState(1, None), SnapshotEnded(1, 1, complete=False)]
    assert (office.core.app_version, office.core.generation, office.core.changing) == (0, 1, False)


def test_a_report_may_come_before_all_parts_are_stored() -> None:
    office = deploying()
    office.checked(5, epoch=1)  # of a snapshot that nobody has asked for yet: it counts for nothing
    assert uploaded(office, 1) == []


def test_a_loss_in_between_begins_the_check_anew() -> None:
    office = deploying()
    office.step(WorkerLost(1))
    office.marked()
    assert CheckState(2, 5) in told(office.said(0, Loaded(2, -1)))
    assert not office.core.changing
    assert office.said(0, StateChecked(1, 5, -1, StateFindings())) == [], "an older generation's report"
    assert isinstance(office.checked(5)[0], StateFound)
    assert office.core.changing


def test_a_held_snapshot_for_other_workers_begins_no_version() -> None:
    """The check ends while a snapshot is held that is for something else: nobody has looked at it."""
    office = Office(workers=1).running()
    office.step(WorkerJoined(1))
    office.step(WorkersWanted(2))
    snapshot(office, 0)
    office.step(DeployWanted(5))
    assert [type(effect) for effect in uploaded(office, 1)] == [StoreManifest], "this one is held, and nobody reports"
    office.checked(5)
    assert office.core.changing
    assert stored(office, 1)[-1] == AppendMarker(2, 1, 0)
    office.marked()
    office.said(0, Loaded(2, -1))
    assert CheckState(2, 5) in told(office.said(1, Loaded(2, -1)))


def test_a_version_that_is_taken_back_is_not_switched_to() -> None:
    office = deploying()
    uploaded(office, 1)
    effects = office.step(DeployWanted(0))
    assert told(effects) == [CheckState(1, None)]
    assert isinstance(effects[-1], StoreManifest), "it is for nothing any more"
    assert not office.core.changing
    assert office.core.app_version == 0


def test_a_failed_snapshot_is_held_again() -> None:
    office = deploying()
    snapshot_fails(office, 1)
    assert office.checked(5, epoch=1) == [], "what was found then is no longer of use"
    office.step(SnapshotWanted())
    snapshot(office, 2)
    uploaded(office, 3)
    assert [type(effect) for effect in office.checked(5, epoch=3)] == [StoreManifest]


def test_what_was_converted_is_soon_in_a_snapshot() -> None:
    office = Office(manifests=[manifest(3)])
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.marked()
    office.said(0, Loaded(1, -1, converted=True))
    assert Join(1, 4) in told(office.said(1, Loaded(1, -1)))


def test_the_first_version_has_no_state_to_check() -> None:
    office = Office()
    assert office.step(DeployWanted(5)) == [StateFound(5, StateFindings())]
    assert office.core.app_version == 5
