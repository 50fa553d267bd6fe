"""Mutation proof: each rule of a cluster's control plane, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from proof.simulation.plan import SET_ASIDE, Fault
from styx.coordinator import control_plane, departures, rollout
from styx.coordinator.control_events import Answer, AsidePut, PackageOffered, PutAside, Said, StorePackage
from styx.coordinator.events import Expel, ReleaseWorker, StateFound, WorkersWanted
from styx.coordinator.generation import Phase
from styx.coordinator.roster import Registration
from styx.deployment import versions
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form


def a_package_is_handed_out_before_the_store_has_it(patch: pytest.MonkeyPatch) -> None:
    original = rollout.Rollout._check

    def check(self: rollout.Rollout, under_way: Any, package: Any) -> list[Said] | None:
        said = original(self, under_way, package)
        stores = said is not None and isinstance(said[0], StorePackage)
        return [*(said or []), *self._hand_out(under_way, package, self.version + 1)] if stores else said

    patch.setattr(rollout.Rollout, "_check", check)


def a_switch_begins_before_every_worker_has_the_code(patch: pytest.MonkeyPatch) -> None:
    original = rollout.Rollout._taken

    def taken(self: rollout.Rollout, under_way: Any) -> list[Said] | None:
        return original(self, under_way) if self.active is None else self._wanted(under_way)

    patch.setattr(rollout.Rollout, "_taken", taken)


def a_version_is_told_to_run_before_a_marker_names_it(patch: pytest.MonkeyPatch) -> None:
    original = rollout.Rollout._switch

    def switch(self: rollout.Rollout, under_way: Any, package: Any) -> list[Said] | None:
        phase, self._core.phase = self._core.phase, Phase.RUNNING
        said = original(self, under_way, package)
        self._core.phase = phase
        return said

    patch.setattr(rollout.Rollout, "_switch", switch)


def a_first_version_is_told_to_run_without_a_note(patch: pytest.MonkeyPatch) -> None:
    original = rollout.Rollout._taken

    def taken(self: rollout.Rollout, under_way: Any) -> list[Said] | None:
        said = original(self, under_way)
        return self._wanted(under_way) if under_way.stage is rollout.Stage.NOTING else said

    patch.setattr(rollout.Rollout, "_taken", taken)


def what_a_worker_was_started_with_is_offered_once(patch: pytest.MonkeyPatch) -> None:
    original = rollout.Rollout._ended

    def ended(self: rollout.Rollout, under_way: Any, done: bool, text: str) -> list[Said]:
        self._on_offer = None
        return original(self, under_way, done, text)

    patch.setattr(rollout.Rollout, "_ended", ended)


def a_worker_takes_part_before_it_has_the_code(patch: pytest.MonkeyPatch) -> None:
    original = control_plane.ControlPlane._admit

    def admit(self: control_plane.ControlPlane, admitted: Any, said: Any) -> None:
        original(self, admitted, said)
        self._join([self.roster.workers[each.worker] for each in admitted])

    patch.setattr(rollout.Rollout, "may_join", lambda self, worker: self.active is not None)
    patch.setattr(control_plane.ControlPlane, "_admit", admit)


def who_comes_amid_a_switch_needs_only_the_old_code(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollout.Rollout, "may_join", lambda self, worker: self.version in worker.taken)


def a_second_rollout_takes_the_place_of_the_first(patch: pytest.MonkeyPatch) -> None:
    original = rollout.Rollout.offered

    def offered(self: rollout.Rollout, event: PackageOffered) -> list[Said]:
        if event.by > 0:
            self.under_way = None
        return original(self, event)

    patch.setattr(rollout.Rollout, "offered", offered)


def a_check_outlives_the_command_that_waits_for_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollout.Rollout, "operator_gone", lambda self, by: [])


def an_order_ends_with_its_operator(patch: pytest.MonkeyPatch) -> None:
    """The protocol goes on with it, and begins a version that is told never to run."""

    def gone(self: rollout.Rollout, by: int) -> list[Said]:
        under_way = self.under_way
        return [] if under_way is None or under_way.by != by else self._ended(under_way, False, "nobody waits")

    patch.setattr(rollout.Rollout, "operator_gone", gone)


def state_that_does_not_fit_ends_no_rollout(patch: pytest.MonkeyPatch) -> None:
    original = rollout.Rollout.state_found

    def found(self: rollout.Rollout, effect: StateFound) -> list[Said]:
        return [] if effect.findings.offenders else original(self, effect)

    patch.setattr(rollout.Rollout, "state_found", found)


def an_expelled_worker_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    original = control_plane.ControlPlane._core

    def core(self: control_plane.ControlPlane, event: Any) -> None:
        workers = dict(self.roster.workers)
        before = len(self._effects)
        original(self, event)
        for effect in self._effects[before:]:
            if isinstance(effect, Expel) and effect.worker in workers:
                self.roster.workers[effect.worker] = workers[effect.worker]

    patch.setattr(control_plane.ControlPlane, "_core", core)


def a_drained_worker_is_let_go_with_its_slots(patch: pytest.MonkeyPatch) -> None:
    def leave(self: departures.Departures, worker: Registration) -> list[Said]:
        worker.leaving = worker.released = True
        return [ReleaseWorker(worker.number)]

    patch.setattr(departures.Departures, "leave", leave)


def a_drain_is_answered_before_the_slots_are_elsewhere(patch: pytest.MonkeyPatch) -> None:
    def answers(self: departures.Departures) -> list[Said]:
        drains, self._drains = self._drains, []
        return [Answer(drain.by, True, "") for drain in drains]

    patch.setattr(departures.Departures, "answers", answers)


def a_drain_is_never_answered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(departures.Departures, "answers", lambda self: [])


def a_coordinator_that_stops_takes_commands(patch: pytest.MonkeyPatch) -> None:
    def asked(self: control_plane.ControlPlane, event: Any, verb: str, take: Any) -> None:
        self._say(take(event))

    patch.setattr(control_plane.ControlPlane, "_asked", asked)


def a_drain_is_not_answered_when_the_coordinator_stops(patch: pytest.MonkeyPatch) -> None:
    original = departures.Departures.answers
    patch.setattr(departures.Departures, "answers", lambda self: [] if self._core.ended else original(self))


def a_rollout_is_not_given_up_when_the_coordinator_stops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollout.Rollout, "_given_up", lambda self, under_way: None)


def who_stands_by_is_told_once_and_for_all(patch: pytest.MonkeyPatch) -> None:
    original = departures.Departures.stand_by

    def stand_by(self: departures.Departures) -> list[Said]:
        told = {each.number: each.spare for each in self._roster.workers.values() if each.spare is not None}
        said = original(self)
        for number, spare in told.items():
            self._roster.workers[number].spare = spare
        return [each for each in said if getattr(each, "worker", None) not in told]

    patch.setattr(departures.Departures, "stand_by", stand_by)


def a_number_of_workers_is_promised_and_not_wanted(patch: pytest.MonkeyPatch) -> None:
    original = control_plane.ControlPlane._scale

    def scale(self: control_plane.ControlPlane, event: Any) -> list[Said]:
        return [each for each in original(self, event) if not isinstance(each, WorkersWanted)]

    patch.setattr(control_plane.ControlPlane, "_scale", scale)


def a_first_version_is_looked_for_in_the_log_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(versions, "newest_that_ran", lambda store: 0)


def workers_are_let_go_before_the_store_has_what_is_set_aside(patch: pytest.MonkeyPatch) -> None:
    original = control_plane.ControlPlane._say

    def say(self: control_plane.ControlPlane, said: Any) -> None:
        for each in said:
            original(self, [each])
            if isinstance(each, PutAside):
                self._aside_put(AsidePut(each, True, "it is set aside"))

    patch.setattr(control_plane.ControlPlane, "_say", say)


def every(kind: str, seconds: float = 0.3, lasting: float = 0.1) -> tuple[Fault, ...]:
    return tuple(Fault(kind, 0.2 + seconds * i, lasting) for i in range(8))


LONG: dict[str, Any] = {
    "managed": True,
    "duration_s": 2.5,
    "bursts": 50,
    "log_delay_s": 0.0005,
    "epoch_transactions_max": 40,
}
SEVERAL = {**LONG, "auto": False, "workers": 4, "wanted": 2, "slots": 4}
LOST_AND_BACK = tuple(
    fault
    for i in range(6)
    for fault in (Fault("deployment", 0.2 + 0.4 * i, 0.0), Fault("worker crash", 0.4 + 0.4 * i, 0.0))
)
# All workers share the slots: one that comes back is needed at once, and not only as a stand-by.
RETURNING = {**SEVERAL, "workers": 3, "wanted": 3, "slow_messages": 0.0, "faults": LOST_AND_BACK}


def before_stops(kind: str) -> tuple[Fault, ...]:
    """A command just before each stop, or while it lasts."""
    return tuple(
        fault
        for i in range(6)
        for at_s in (0.2 + 0.35 * i,)
        for fault in (
            Fault(kind, at_s, 0.1),
            Fault("coordinator stop", at_s + 0.004, 0.05),
            Fault(kind, at_s + 0.01, 0.1),
        )
    )


DEPLOYING = {**LONG, "faults": every("deployment", 0.15)}
MUTATIONS: dict[Mutation, dict[str, Any]] = {
    a_package_is_handed_out_before_the_store_has_it: DEPLOYING,
    a_switch_begins_before_every_worker_has_the_code: DEPLOYING,
    a_version_is_told_to_run_before_a_marker_names_it: DEPLOYING,
    a_first_version_is_told_to_run_without_a_note: DEPLOYING,
    what_a_worker_was_started_with_is_offered_once: {
        "managed": True,
        "duration_s": 0.3,
        "faults": tuple(Fault("failing store", 0.005 * i, 0.3) for i in range(4)),
    },
    a_worker_takes_part_before_it_has_the_code: RETURNING,
    who_comes_amid_a_switch_needs_only_the_old_code: {
        **RETURNING,
        "requests": 150,
        "faults": every("worker lost amid a rollout", 0.25, 0.0),
    },
    a_second_rollout_takes_the_place_of_the_first: {**LONG, "faults": every("deployment", 0.05)},
    a_check_outlives_the_command_that_waits_for_it: {**LONG, "faults": every("check that ends midway")},
    an_order_ends_with_its_operator: {**LONG, "faults": every("deployment whose operator is lost")},
    state_that_does_not_fit_ends_no_rollout: DEPLOYING,
    an_expelled_worker_is_waited_for: {
        **SEVERAL,
        "faults": tuple(sorted(every("frozen worker", 0.4, 4.0) + every("deployment"), key=lambda each: each.at_s)),
    },
    a_drained_worker_is_let_go_with_its_slots: {**SEVERAL, "faults": every("drain")},
    a_drain_is_answered_before_the_slots_are_elsewhere: {**SEVERAL, "faults": every("drain")},
    a_drain_is_never_answered: {**SEVERAL, "faults": every("drain")},
    who_stands_by_is_told_once_and_for_all: {**SEVERAL, "faults": every("scale")},
    a_number_of_workers_is_promised_and_not_wanted: {**SEVERAL, "faults": every("scale")},
    a_coordinator_that_stops_takes_commands: {**SEVERAL, "faults": before_stops("scale")},
    a_drain_is_not_answered_when_the_coordinator_stops: {**SEVERAL, "faults": before_stops("drain")},
    a_rollout_is_not_given_up_when_the_coordinator_stops: {**SEVERAL, "faults": before_stops("deployment")},
    a_first_version_is_looked_for_in_the_log_alone: {
        "managed": True,
        "log_delay_s": 0.05,
        "faults": tuple(Fault("coordinator crash", 0.05 * i, 0.0) for i in range(1, 10)),
    },
    workers_are_let_go_before_the_store_has_what_is_set_aside: {**SEVERAL, "faults": every(SET_ASIDE)},
}
"""With the plans that make it common for what a rule forbids to happen."""


NOTICED_BY: dict[Mutation, int] = {
    who_comes_amid_a_switch_needs_only_the_old_code: 6,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, MUTATIONS[mutation], cluster=True, first=NOTICED_BY.get(mutation, 0))
