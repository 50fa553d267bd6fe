"""Registrations, scaling and setting aside, as the control plane decides them."""

from __future__ import annotations

import pytest

from styx.coordinator.control_events import (
    A_WORKER,
    Admit,
    Answer,
    AsidePut,
    CodeTaken,
    Disconnect,
    DrainAsked,
    Event,
    HandOut,
    LeaveAsked,
    PackageOffered,
    PackageStored,
    PutAside,
    RollbackAsked,
    RolloutEnded,
    RuntimeStored,
    ScaleAsked,
    SetAsideAsked,
    StandBy,
    StoreRuntime,
    TurnAway,
    WorkerBeat,
    WorkerBusy,
)
from styx.coordinator.control_plane import ControlPlane
from styx.coordinator.events import Expel, ReleaseWorker, Started, StopWanted, Tick, WorkerLost
from styx.coordinator.snapshot_course import STOP_S_MAX
from tests.coordinator.control_office import OPERATOR, ControlOffice, package
from tests.coordinator.office import Office, snapshot

PLACE = "3:17"


def test_a_worker_takes_part_once_it_has_taken_what_runs() -> None:
    office = ControlOffice().runs("a")
    second = office.arrives("b")
    assert office.did == [Admit(second), HandOut(second, 1, package("one", "cart"))]
    assert second not in office.core.live
    office.takes(second, 1, "No module named 'shop'")
    assert second not in office.core.live
    office.takes(second, 1)
    assert (second in office.core.live, office.core.membership.addresses[second]) == (True, "host/b")


def test_nobody_is_admitted_before_the_store_has_the_runtime() -> None:
    office = ControlOffice(recorded_runtime="")
    office.step(Started(0, []))
    first, second = office.arrives("a", "one"), office.arrives("b", "one")
    assert office.did == [StoreRuntime("one")]
    assert office.step(RuntimeStored("away")) == [TurnAway(first, "away"), TurnAway(second, "away")]
    third = office.arrives("a", "two")
    assert office.step(RuntimeStored()) == [Admit(third)]
    assert isinstance(office.step_arrival("c", "one")[0], TurnAway)
    assert set(office.plane.roster.workers) == {third}


def test_what_an_unregistered_worker_says_is_nobodys() -> None:
    office = ControlOffice().runs("a")
    for event in (CodeTaken(9, 1), WorkerBeat(9, 1, True), WorkerBusy(9), LeaveAsked(9), WorkerLost(9)):
        assert office.step(event) == []


def test_one_that_is_expelled_is_registered_no_more() -> None:
    office = ControlOffice().runs("a")
    office.core.membership._silence_max_s = 1.0
    office.step(Tick(1.0))
    assert Expel(1, "it has not been heard of for too long") in office.step(Tick(9.0))
    assert office.plane.roster.workers == {}


def test_one_that_leaves_joins_no_more_and_is_released_once_others_have_its_slots() -> None:
    office = ControlOffice().runs("a")
    second = office.arrives("b")
    assert ReleaseWorker(second) in office.step(LeaveAsked(second)), "it has no slots yet"
    assert second not in office.core.live
    office.takes(second, 1)
    assert second not in office.core.live
    effects = office.step(LeaveAsked(1))
    assert ReleaseWorker(1) not in effects
    assert not office.plane.roster.workers[1].released


def test_a_drained_worker_that_stands_by_is_released_at_once() -> None:
    office = ControlOffice(1).runs("a")
    second = office.arrives("b")
    office.takes(second, 1)
    assert office.step(Tick(1.0)) == [StandBy(second, True)]
    assert office.step(DrainAsked(OPERATOR, "b")) == [
        ReleaseWorker(second),
        Answer(OPERATOR, True, "worker 'b' has no slots any more"),
    ]
    assert office.step(Tick(2.0)) == []


def test_who_stands_by_is_told_when_it_is_needed() -> None:
    office = ControlOffice(1).runs("a")
    second = office.arrives("b")
    office.takes(second, 1)
    office.step(Tick(1.0))
    office.step(ScaleAsked(OPERATOR, 2))
    assert office.answers == [(True, "workers wanted: 2; slots move once they are there")]
    assert office.core.changing
    assert office.step(Tick(1.05)) == [StandBy(second, False)]


@pytest.mark.parametrize(
    ("wanted", "workers", "text"),
    [
        (1, 0, "2 slots can be shared by 1 to 2 workers, not by 0"),
        (1, 3, "2 slots can be shared by 1 to 2 workers, not by 3"),
        (None, 1, "the coordinator was started with --workers auto"),
    ],
)
def test_a_number_of_workers_that_cannot_be_is_refused(wanted: int | None, workers: int, text: str) -> None:
    office = ControlOffice(wanted)
    office.step(Started(0, []))
    (answer,) = office.step(ScaleAsked(OPERATOR, workers))
    assert isinstance(answer, Answer)
    assert (answer.done, answer.text.startswith(text), office.core.membership.wanted) == (False, True, wanted)


def test_a_coordinator_that_has_stopped_does_not_promise_to_scale() -> None:
    office = Office().running()
    office.step(StopWanted())
    snapshot(office, 0)
    text = "the coordinator has stopped: scale again once there is another one"
    assert ControlPlane(office.core, "shop").step(ScaleAsked(OPERATOR, 1)) == [Answer(OPERATOR, False, text)]
    assert office.core.membership.wanted == 2


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        (PackageOffered(OPERATOR, package("two")), "deploy"),
        (PackageOffered(OPERATOR, package("two"), only_check=True), "deploy"),
        (RollbackAsked(OPERATOR), "roll back"),
        (DrainAsked(OPERATOR, "a"), "drain"),
        (ScaleAsked(OPERATOR, 2), "scale"),
    ],
    ids=["deploy", "check", "roll back", "drain", "scale"],
)
def test_a_coordinator_that_stops_takes_no_command(command: Event, verb: str) -> None:
    office = ControlOffice(1).runs("a")
    office.step(StopWanted())
    office.step(command)
    office.step(WorkerLost(office.number("a")))
    assert office.core.ended
    office.step(command)
    again = f"{verb} again once there is another one"
    assert office.answers == [
        (False, f"the coordinator is stopping: {again}"),
        (False, f"the coordinator has stopped: {again}"),
    ]


def test_a_coordinator_that_stops_begins_nothing_that_a_worker_offers() -> None:
    office = ControlOffice(1)
    office.step(Started(0, []))
    office.step(StopWanted())
    assert office.offered("one", by=A_WORKER) == []
    assert office.stage is None


def test_what_was_asked_before_a_stop_is_answered_when_it_is_over() -> None:
    office = ControlOffice(2).runs("a", "b")
    office.step(DrainAsked(OPERATOR, "a"))
    office.offered("two", "cart")
    assert office.stage == "STORING"
    office.step(StopWanted())
    assert office.answers == []
    for name in ("a", "b"):
        office.step(WorkerLost(office.number(name)))
    assert office.core.ended
    assert [done for done, _ in office.answers] == [True, False]
    assert office.answers[1][1].startswith("the coordinator has stopped before the version ran: deploy it again")


def test_a_drain_that_a_stop_overtakes_is_answered() -> None:
    office = ControlOffice(2).runs("a", "b")
    office.step(DrainAsked(OPERATOR, "a"))
    office.step(StopWanted())
    office.step(Tick(STOP_S_MAX))
    assert office.core.ended
    text = "the coordinator has stopped before worker 'a' was let go: drain again once there is another one"
    assert office.answers == [(False, text)]


def test_a_first_version_whose_note_is_on_its_way_at_a_stop_may_run() -> None:
    office = ControlOffice(1)
    office.step(Started(0, []))
    office.offered("one")
    office.step(PackageStored(1))
    assert office.stage == "NOTING"
    office.step(StopWanted())
    text = "the coordinator has stopped before the version ran; it may run all the same once there is another one"
    assert office.answers == [(False, text)]
    assert not [each for each in office.did if isinstance(each, RolloutEnded)]


def test_a_request_set_aside_ends_the_registration_of_whom_it_holds_up() -> None:
    office = ControlOffice(2).runs("a", "b")
    office.step(Tick(10.0))
    office.step(WorkerBusy(2))
    office.step(Tick(11.0))
    put = PutAside(OPERATOR, PLACE, dry_run=False)
    assert office.step(SetAsideAsked(OPERATOR, PLACE, dry_run=False)) == [put], "nobody is let go before it is stored"
    assert office.step(AsidePut(put, True, "3:17 is set aside"))[0] == Disconnect(
        2, "it is held up, and the request 3:17 is set aside"
    )
    assert "The others go on without b" in office.answers[0][1]
    office.step(Tick(13.0))
    (answer,) = office.step(AsidePut(put, True, "3:17 is set aside"))
    assert isinstance(answer, Answer), "its watchdog says nothing any more"
    assert "takes effect with the next generation" in answer.text


@pytest.mark.parametrize(("place", "dry_run", "done"), [(PLACE, False, False), (PLACE, True, True), ("", False, True)])
def test_what_sets_no_request_aside_ends_no_registration(place: str, dry_run: bool, done: bool) -> None:
    office = ControlOffice(2).runs("a", "b")
    office.step(Tick(10.0))
    office.step(WorkerBusy(2))
    (put,) = office.step(SetAsideAsked(OPERATOR, place, dry_run))
    assert isinstance(put, PutAside)
    assert office.step(AsidePut(put, done, "so it is")) == [Answer(OPERATOR, done, "so it is")]
    failed = AsidePut(put, False, "the store is away", failed=True)
    assert office.step(failed) == [Answer(OPERATOR, False, "the store is away", failed=True)]
