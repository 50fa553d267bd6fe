"""The stages of a rollout, each with what may happen in it: who is told what, in which order, what stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from styx.coordinator.control_events import (
    A_WORKER,
    ITSELF,
    Announce,
    Answer,
    Event,
    GatewayArrived,
    HandOut,
    NoteRunning,
    OperatorGone,
    Package,
    PackageOffered,
    PackageStored,
    ReadVersionBefore,
    RollbackAsked,
    RolloutEnded,
    RunningNoted,
    Serve,
    StorePackage,
    VersionFound,
    VersionRead,
)
from styx.coordinator.events import Started, StateFound, TellWorker, WorkerLost
from styx.coordinator.generation import Phase
from styx.deployment.versions import newest_that_ran, note_running, store_version
from styx.protocol.messages import CheckState
from styx.schema.event_description import EventDescription
from styx.schema.state_findings import StateFindings
from styx.store import MemoryStore
from tests.coordinator.control_office import OPERATOR, ControlOffice, handed, package

MISFIT = StateFindings(10, 1, ["cart['a']: missing required field 'cents'"])
OTHER = OPERATOR + 1


class AnswerIsLost(MemoryStore):
    """A store that writes an object and then reports an error."""

    def put(self, name: str, data: bytes) -> None:
        super().put(name, data)
        raise OSError("no answer")


AWAY = "the store is out of reach: away"
UNDER_WAY = "another deployment is under way; wait for its end"


def office_in(stage: str) -> ControlOffice:
    """Version 2, which operator 7 deploys on workers a and b, is in this stage."""
    office = ControlOffice(2).runs("a", "b")
    if stage == "READING":
        office.step(RollbackAsked(OPERATOR))
    if stage == "CHECKING":
        office.plane.roster.workers[1].beat = None
    if stage != "READING":
        office.offered("two", "cart")
    if stage in ("HANDING_OUT", "SWITCHING"):
        office.step(PackageStored(2))
    if stage == "SWITCHING":
        office.takes(1, 2)
        office.takes(2, 2)
    assert office.stage == stage
    return office


STAGES = ("READING", "CHECKING", "STORING", "HANDING_OUT", "SWITCHING")
"""What a rollout can be in while another version runs."""


def switched(office: ControlOffice) -> None:
    """The planned change comes to its end: all state fits, and the version's marker is durable."""
    office.checked(2)
    office.core.app_version = 2
    office.core.phase = Phase.LOADING
    office.step(OperatorGone(99))


# The first version ---------------------------------------------------------------------------------------------


def test_the_first_version_is_stored_then_noted_then_active() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    first = package("one", "cart")
    assert office.step(PackageOffered(OPERATOR, first)) == [StorePackage(first)]
    assert office.step(PackageStored(1)) == [NoteRunning(1)], "nobody has to take it, and no marker names it yet"
    assert (office.stage, office.answers, office.plane.rollout.version) == ("NOTING", [], 0)
    assert office.step(RunningNoted(1)) == [
        StateFound(1, StateFindings()),
        Announce(1, first),
        RolloutEnded(1, True),
        Answer(OPERATOR, True, "version 1 runs"),
    ]
    assert office.plane.rollout.active == (1, first)


def test_a_first_version_of_which_the_store_has_no_note_does_not_run() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    office.offered("one")
    office.step(PackageStored(1))
    office.step(RunningNoted(1, "the store is out of reach: away"))
    ((done, text),) = office.answers
    assert not done
    assert text.startswith("the store is out of reach: away; it may run all the same once the coordinator is started")
    assert (office.plane.rollout.version, office.core.app_version, office.stage) == (0, 0, None)


def test_a_first_version_whose_note_is_uncertain_makes_room_for_another() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    office.offered("one")
    office.step(PackageStored(1))
    office.step(RunningNoted(1, "the store is out of reach: away"))
    assert office.offered("two") == [StorePackage(package("two"))]
    assert office.step(PackageStored(2)) == [NoteRunning(2)]
    office.step(RunningNoted(2))
    assert office.plane.rollout.version == 2, "also to a coordinator that starts: its note is the newest, whatever else"


def test_a_coordinator_that_starts_runs_a_first_version_whose_note_was_uncertain() -> None:
    store = AnswerIsLost()
    assert store_version(store, b"one") == 1
    with pytest.raises(OSError, match="no answer"):
        note_running(store, 1)
    assert newest_that_ran(store) == 1
    office = ControlOffice()
    assert office.step(VersionFound(1, package("one"))) == [Announce(1, package("one")), NoteRunning(1)]


def test_workers_that_are_there_before_the_first_version_take_it_and_join_when_it_is_active() -> None:
    office = ControlOffice()
    office.step(Started(0, []))
    worker = office.arrives("a")
    office.offered("one")
    assert handed(office.step(PackageStored(1))) == [(worker, 1)]
    assert office.takes(worker, 1) == [NoteRunning(1)]
    assert office.core.live == frozenset()
    office.step(RunningNoted(1))
    assert office.core.live == {worker}


def test_a_coordinator_that_starts_serves_the_version_that_it_finds() -> None:
    office = ControlOffice()
    found = package("one")
    assert office.step(GatewayArrived(4)) == [Serve(4, 0, None)]
    assert office.step(VersionFound(3, found)) == [Announce(3, found), NoteRunning(3)]
    assert office.step(GatewayArrived(5)) == [Serve(5, 3, found)]
    office.step(Started(2, [], 3))
    assert handed(office.step_arrival("a")) == [(1, 3)]


# What is offered -----------------------------------------------------------------------------------------------


def test_what_cannot_be_deployed_is_refused_before_anything_is_done() -> None:
    office = ControlOffice().runs("a")
    for offer, (done, text) in (
        ("its signature is wrong", (False, "its signature is wrong")),
        (package("x", app="bank"), (False, "this deployment is of app 'shop', and the package holds 'bank'")),
        (package("one", "cart"), (True, "version 1 runs already, and is this very code")),
    ):
        assert office.step(PackageOffered(OPERATOR, offer)) == [Answer(OPERATOR, done, text)]
        assert office.stage is None


@pytest.mark.parametrize("stage", STAGES)
def test_one_at_a_time(stage: str) -> None:
    office = office_in(stage)
    assert office.offered("three", by=OTHER) == [Answer(OTHER, False, UNDER_WAY)]
    assert office.step(RollbackAsked(OTHER)) == [Answer(OTHER, False, UNDER_WAY)]
    assert office.offered("three", by=A_WORKER) == []
    assert office.stage == stage


@pytest.mark.parametrize("stage", STAGES)
def test_what_answers_another_stage_changes_nothing(stage: str) -> None:
    answers: dict[str, Event] = {
        "READING": VersionRead(1, None),
        "STORING": PackageStored(9),
        "NOTING": RunningNoted(2),
    }
    office = office_in(stage)
    for of, answer in answers.items():
        if of != stage:
            assert office.step(answer) == []
    assert office.step(VersionRead(0, None)) == [], "of a rollback from another version"
    assert office.stage == stage


@pytest.mark.parametrize("stage", STAGES)
def test_an_order_goes_on_without_the_operator_who_gave_it(stage: str) -> None:
    office = office_in(stage)
    assert office.step(OperatorGone(OPERATOR)) == []
    assert office.stage == stage


# Its stages ----------------------------------------------------------------------------------------------------


def test_a_rollout_from_offer_to_active() -> None:
    office = ControlOffice(2).runs("a", "b")
    second = package("two", "cart")
    assert office.step(PackageOffered(OPERATOR, second)) == [StorePackage(second)]
    assert office.step(PackageStored(2)) == [HandOut(1, 2, second), HandOut(2, 2, second)]
    assert office.takes(1, 2) == [], "one of two has it"
    told = office.takes(2, 2)
    assert told == [TellWorker(1, CheckState(1, 2)), TellWorker(2, CheckState(1, 2))]
    assert office.checked(2)[0] == StateFound(2, StateFindings(20))
    office.core.app_version = 2
    for office.core.phase in (Phase.WAITING, Phase.FENCING):
        assert office.step(OperatorGone(99)) == [], "its marker is not durable yet"
    office.core.phase = Phase.LOADING
    text = "version 2 runs\nstored entities checked: 20; all of them fit"
    assert office.step(OperatorGone(99)) == [
        Announce(2, second),
        NoteRunning(2),
        RolloutEnded(2, True),
        Answer(OPERATOR, True, text),
    ]
    assert (office.stage, office.plane.rollout.active) == (None, (2, second))


def test_operators_with_state_are_asked_for_in_the_present_generation() -> None:
    office = office_in("CHECKING")
    office.core.generation += 1
    assert office.beats(2, "cart") == []
    assert office.beats(1, "cart") == [StorePackage(package("two", "cart"))]


def test_a_version_that_lacks_an_operator_with_state_is_refused_before_it_is_stored() -> None:
    office = ControlOffice().runs("a")
    done, text = office.offered("two", "other")
    assert done == RolloutEnded(0, False)
    assert isinstance(text, Answer)
    assert "operator 'cart' has state, and the new version lacks it" in text.text
    assert office.stage is None


def emitting(word: str, version: int = 0, schema: str = "") -> Package:
    """`word` with an event `paid` whose values have this schema; without one if `version` is 0."""
    made = package(word, "cart")
    paid = {"paid": EventDescription(version=version, schema=schema)} if version else {}
    return made._replace(description=replace(made.description, events=paid))


def test_an_event_that_has_gone_comes_back_as_it_was_or_with_a_higher_version() -> None:
    office = ControlOffice(1).runs("a")
    noted: list[Any] = []
    for number, one in enumerate((emitting("paid", 1, "A"), emitting("gone"), emitting("as it was", 1, "A")), 2):
        told = office.step(PackageOffered(OPERATOR, one))
        assert told == [StorePackage(one)], told
        office.step(PackageStored(number))
        office.takes(1, number)
        office.checked(number)
        office.core.app_version = number
        office.core.phase = Phase.LOADING
        noted += [each.published for each in office.step(OperatorGone(99)) if isinstance(each, NoteRunning)]
        office.core.phase = Phase.RUNNING
    assert noted == [{"paid": {"1": "A"}}] * 3
    found = ControlOffice(1).runs("a")  # a coordinator that starts, on the version without it
    found.plane.rollout.found(VersionFound(3, emitting("gone"), noted[1]))
    for each in (office, found):
        _, refused = each.step(PackageOffered(OPERATOR, emitting("changed", 1, "B")))
        assert isinstance(refused, Answer)
        assert "event 'paid' has another type than the version 1 of it that was deployed" in refused.text
        assert each.step(PackageOffered(OPERATOR, emitting("higher", 2, "B")))[0] == StorePackage(
            emitting("higher", 2, "B")
        )


def test_producers_of_events_are_fenced_as_soon_as_a_version_has_some_and_ever_after() -> None:
    office = ControlOffice(1).runs("a")
    rollout = office.plane.rollout
    assert not rollout.may_emit()
    office.step(PackageOffered(OPERATOR, emitting("no events")))
    office.step(PackageStored(2))
    office.takes(1, 2, "it cannot be run")
    assert not rollout.may_emit()
    office.step(PackageOffered(OPERATOR, emitting("paid", 1, "A")))
    office.step(PackageStored(3))
    office.takes(1, 3)
    assert rollout.may_emit(), "its generation needs them"
    office.checked(3)
    office.core.app_version, office.core.phase = 3, Phase.LOADING
    office.step(OperatorGone(99))
    assert office.stage is None
    assert rollout.may_emit()
    office.core.phase = Phase.RUNNING
    office.step(PackageOffered(OPERATOR, emitting("gone")))
    assert rollout.may_emit(), "workers of the version before it may still append"
    found = ControlOffice(1)
    found.step(VersionFound(4, emitting("gone"), {"paid": {"1": "A"}}))
    assert found.plane.rollout.may_emit()


def test_a_store_that_does_not_take_the_package_ends_it() -> None:
    office = office_in("STORING")
    problem = "the store is out of reach: away"
    assert office.step(PackageStored(0, problem)) == [RolloutEnded(0, False), Answer(OPERATOR, False, problem)]
    assert office.offered("two", "cart") == [StorePackage(package("two", "cart"))], "it can be deployed again"


def test_a_worker_that_cannot_run_it_ends_it_and_nobody_switches() -> None:
    office = office_in("HANDING_OUT")
    office.takes(1, 2)
    office.takes(2, 2, "No module named 'shop'")
    assert office.answers == [(False, "worker b cannot run it: No module named 'shop'")]
    assert (office.stage, office.core.changing, office.plane.rollout.version) == (None, False, 1)


def test_who_is_lost_is_not_waited_for_and_who_comes_is() -> None:
    office = office_in("HANDING_OUT")
    office.takes(1, 2)
    office.step(WorkerLost(2))
    assert office.stage == "SWITCHING", "all that are there have it"
    office = office_in("HANDING_OUT")
    third = office.arrives("c")
    for each in (1, 2):
        office.takes(each, 2)
    assert office.stage == "HANDING_OUT"
    office.takes(third, 1)
    office.takes(third, 2)
    assert office.stage == "SWITCHING"


@pytest.mark.parametrize(("stage", "gets"), [(each, [1, 2] if each in STAGES[3:] else [1]) for each in STAGES])
def test_who_registers_gets_what_it_will_need(stage: str, gets: list[int]) -> None:
    office = office_in(stage)
    assert [version for _, version in handed(office.step_arrival("c"))] == gets


def test_who_registers_amid_a_switch_takes_part_once_it_can_run_both() -> None:
    office = office_in("SWITCHING")
    third = office.arrives("c")
    office.takes(third, 1)
    assert third not in office.core.live
    office.takes(third, 2)
    assert third in office.core.live


def test_one_that_comes_amid_a_switch_and_cannot_run_the_version_ends_it_and_takes_part() -> None:
    """It may be the only one that is left: the cluster would wait for ever."""
    office = office_in("SWITCHING")
    third = office.arrives("c")
    office.takes(third, 1)
    told = office.takes(third, 2, "No module named 'shop'")
    assert told[:2] == [TellWorker(1, CheckState(1, None)), TellWorker(2, CheckState(1, None))]
    assert office.answers == [(False, "worker c cannot run it: No module named 'shop'")]
    assert (office.stage, third in office.core.live) == (None, True)
    assert office.checked(2) == [], "of a version that was given up"


def test_one_that_has_yet_to_take_the_version_takes_part_when_the_switch_has_failed() -> None:
    office = office_in("SWITCHING")
    third = office.arrives("c")
    office.takes(third, 1)
    assert third not in office.core.live
    office.checked(2, MISFIT)
    assert (office.stage, third in office.core.live) == (None, True)


def test_one_that_cannot_run_what_the_held_snapshot_is_for_stays_out() -> None:
    office = office_in("SWITCHING")
    third = office.arrives("c")
    office.takes(third, 1)
    office.checked(2)
    office.core.app_version, office.core.phase = 2, Phase.FENCING
    assert office.takes(third, 2, "No module named 'shop'") == []
    office.core.phase = Phase.LOADING
    office.step(OperatorGone(99))
    assert (office.stage, office.plane.rollout.version, third in office.core.live) == (None, 2, False)
    office.takes(third, 2)
    assert third in office.core.live, "it has been mended"


def test_state_that_does_not_fit_refuses_it() -> None:
    office = office_in("SWITCHING")
    office.checked(2, MISFIT)
    ((done, text),) = office.answers
    assert (done, text.splitlines()[0]) == (False, "2 of 20 stored entities do not fit the new version:")
    assert (office.stage, office.plane.rollout.version, office.core.changing) == (None, 1, False)


def test_state_that_was_changed_meanwhile_refuses_it_too() -> None:
    office = office_in("SWITCHING")
    office.checked(2)
    said = office.plane.rollout.state_found(StateFound(2, MISFIT))
    assert isinstance(said[-1], Answer)
    assert said[-1].text.startswith("state that was changed while it was deployed: 1 of 10")


def test_findings_on_a_version_that_was_given_up_are_nobodys() -> None:
    office = office_in("SWITCHING")
    assert office.plane.rollout.state_found(StateFound(-1, MISFIT)) == []
    assert office.stage == "SWITCHING"


# A check alone -------------------------------------------------------------------------------------------------


def test_a_check_stores_nothing_and_switches_nothing() -> None:
    office = ControlOffice().runs("a")
    assert handed(office.offered("two", "cart", only_check=True)) == [(1, -1)]
    office.takes(1, -1)
    effects = office.checked(-1)
    assert not any(isinstance(each, StorePackage | RolloutEnded) for each in effects)
    assert office.answers == [(True, "it can be deployed\nstored entities checked: 10; all of them fit")]
    assert (office.stage, office.core.changing, office.plane.rollout.version) == (None, False, 1)
    assert handed(office.offered("two", "cart", only_check=True)) == [(1, -2)], "the next one has another number"


def test_a_check_ends_with_the_command_that_waits_for_it() -> None:
    office = ControlOffice().runs("a")
    office.offered("two", "cart", only_check=True)
    assert office.step(OperatorGone(OTHER)) == []
    assert office.step(OperatorGone(OPERATOR)) == [], "the protocol has not heard of it"
    assert office.stage is None
    office.offered("two", "cart", only_check=True)
    office.takes(1, -2)
    assert office.step(OperatorGone(OPERATOR)) == [TellWorker(1, CheckState(1, None))]
    assert (office.stage, office.answers) == (None, [])


def test_a_worker_that_came_amid_a_check_takes_part_when_it_has_ended() -> None:
    office = ControlOffice().runs("a")
    office.offered("two", "cart", only_check=True)
    office.takes(1, -1)
    second = office.arrives("b")
    office.takes(second, 1)
    assert second not in office.core.live
    office.step(OperatorGone(OPERATOR))
    assert second in office.core.live


# A rollback ----------------------------------------------------------------------------------------------------


def test_a_rollback_is_a_rollout_of_what_ran_before() -> None:
    office = ControlOffice().runs("a")
    assert office.step(RollbackAsked(OPERATOR)) == [ReadVersionBefore(1)]
    before = package("zero", "cart")
    assert office.step(VersionRead(1, before)) == [StorePackage(before)]
    office.step(PackageStored(2))
    office.takes(1, 2)
    switched(office)
    ((done, text),) = office.answers
    assert (done, text.splitlines()[0]) == (True, "version 2 runs, with the code from before version 1")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (None, "there is no version before the present one"),
        ("the store is out of reach: away", "the store is out of reach: away"),
    ],
)
def test_a_rollback_to_nothing_is_refused(read: str | None, text: str) -> None:
    office = office_in("READING")
    assert office.step(VersionRead(1, read)) == [Answer(OPERATOR, False, text)]
    assert office.stage is None


def test_what_migrate_has_converted_is_not_given_to_code_that_does_not_know_it() -> None:
    office = ControlOffice().runs("a")
    assert office.plane.rollout.active is not None
    office.plane.rollout.active = 1, package("one", "cart", migrate=True)
    office.step(RollbackAsked(OPERATOR))
    office.step(VersionRead(1, package("zero", "cart")))
    ((done, text),) = office.answers
    assert (done, "migrate= has converted the state of operator 'cart'" in text) == (False, True)


def test_a_check_of_a_rollback_ends_with_its_command() -> None:
    office = ControlOffice().runs("a")
    office.step(RollbackAsked(OPERATOR, only_check=True))
    assert office.step(OperatorGone(OPERATOR)) == []
    assert office.stage is None
    assert office.step(VersionRead(1, package("zero", "cart"))) == []


def test_the_process_itself_is_answered_like_an_operator() -> None:
    office = ControlOffice().runs("a")
    assert office.offered("one", "cart", by=ITSELF)[-1] == Answer(
        ITSELF, True, "version 1 runs already, and is this very code"
    )
