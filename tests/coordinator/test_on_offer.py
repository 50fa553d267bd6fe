"""What processes were started with stays on offer: it begins as soon as it can be a first version, and not later."""

from __future__ import annotations

import pytest

from styx.coordinator.control_events import (
    A_WORKER,
    ITSELF,
    Answer,
    NoteRunning,
    PackageOffered,
    PackageStored,
    RunningNoted,
    StorePackage,
)
from styx.coordinator.events import Started, StopWanted, Tick, WorkerLost
from styx.coordinator.rollout import OFFER_AGAIN_S
from tests.coordinator.control_office import ControlOffice, package

AWAY = "the store is out of reach: away"


def test_what_a_worker_was_started_with_is_a_first_version_and_no_other() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    assert office.offered("one", by=A_WORKER) == [StorePackage(package("one"))]
    assert office.offered("two", by=A_WORKER) == [], "another worker offers what it was started with"
    office.step(PackageStored(1))
    office.step(RunningNoted(1))
    assert office.offered("two", by=A_WORKER) == []


def test_what_a_worker_was_started_with_waits_for_the_end_of_a_deployment_that_comes_to_nothing() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    office.offered("two")
    assert office.offered("one", by=A_WORKER) == []
    assert office.step(PackageStored(0, AWAY))[-1] == StorePackage(package("one"))
    office.step(PackageStored(1))
    office.step(RunningNoted(1))
    assert office.plane.rollout.active == (1, package("one"))


def test_what_a_worker_was_started_with_is_no_version_behind_a_first_one() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    office.offered("two")
    office.offered("one", by=A_WORKER)
    office.step(PackageStored(1))
    office.step(RunningNoted(1))
    assert (office.plane.rollout.active, office.stage) == ((1, package("two")), None)
    assert office.step(Tick(2 * OFFER_AGAIN_S)) == []


@pytest.mark.parametrize("by", [A_WORKER, ITSELF])
@pytest.mark.parametrize("failed", ["STORING", "NOTING"])
def test_what_a_process_was_started_with_begins_again_when_the_store_was_out_of_reach(by: int, failed: str) -> None:
    """It is offered once: the cluster would wait for ever for a first version."""
    office = ControlOffice()
    office.step(Started(0, []))
    assert office.offered("one", by=by) == [StorePackage(package("one"))]
    if failed == "NOTING":
        office.step(PackageStored(1))
    assert office.stage == failed
    office.step(PackageStored(0, AWAY) if failed == "STORING" else RunningNoted(1, AWAY))
    assert office.step(Tick(0.9 * OFFER_AGAIN_S)) == []
    assert office.step(Tick(OFFER_AGAIN_S)) == [StorePackage(package("one"))]
    assert office.step(PackageStored(2)) == [NoteRunning(2)], "whatever the store has noted, this is newer"


def test_what_a_worker_was_started_with_waits_until_nobody_is_there_who_cannot_run_it() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    first, second = office.arrives("a"), office.arrives("b")
    office.offered("one", by=A_WORKER)
    office.step(PackageStored(1))
    office.takes(first, 1)
    office.takes(second, 1, "No module named 'shop'")
    assert office.step(Tick(2 * OFFER_AGAIN_S)) == [], "the answer would be the same"
    assert office.offered("one", by=A_WORKER) == []
    assert office.step(WorkerLost(second)) == [StorePackage(package("one"))]


def test_of_what_processes_were_started_with_the_coordinators_counts_then_the_last() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    for word in ("one", "two", "three"):
        office.offered(word, by=A_WORKER)
    assert office.step(PackageStored(0, AWAY))[-1] == StorePackage(package("three"))
    office = ControlOffice()
    office.step(Started(0, []))
    office.offered("one", by=ITSELF)
    office.offered("two", by=A_WORKER)
    office.step(PackageStored(0, AWAY))
    assert office.stage is None
    assert office.step(Tick(OFFER_AGAIN_S)) == [StorePackage(package("one"))]


def test_what_cannot_be_used_stays_on_no_offer() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    for offer, text in (
        ("its signature is wrong", "its signature is wrong"),
        (package("x", app="bank"), "this deployment is of app 'shop', and the package holds 'bank'"),
    ):
        assert office.step(PackageOffered(A_WORKER, offer)) == [Answer(A_WORKER, False, text)]
        assert office.step(Tick(2 * OFFER_AGAIN_S)) == []


def test_what_a_worker_was_started_with_does_not_begin_behind_a_stop() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    office.offered("two")
    office.offered("one", by=A_WORKER)
    assert not any(isinstance(each, StorePackage) for each in office.step(StopWanted()))
    assert office.step(Tick(2 * OFFER_AGAIN_S)) == []
    assert office.stage is None
