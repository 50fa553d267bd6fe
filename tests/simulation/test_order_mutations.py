"""Mutation proof for the orders in which things become durable: each of them, turned round on purpose, is caught.

Orders whose mutations stand elsewhere: `a_snapshot_does_not_wait_for_its_replies` and
`replies_do_not_wait_for_the_epoch_record` in `test_mutations.py`; `verdicts_are_not_waited_for` in
`test_cut_mutations.py`; `nobody_fences` and `a_manifest_counts_without_a_note_in_the_log`, behind which nothing may be
deleted, in `test_cluster_mutations.py`; the two manifests that are kept, and what a refused start leaves, in
`test_damaged_snapshots.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proof.simulation import random_plan, simulate
from proof.simulation.coordinator_process import CoordinatorProcess
from proof.simulation.plan import OTHER_STORE, Fault
from styx.coordinator import snapshot_ledger, take_over
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import AppendMarker, Effect, MarkerAppended, StopEnded, StoreManifest
from styx.coordinator.snapshot_course import SnapshotCourse
from styx.coordinator.snapshot_ledger import SnapshotLedger
from styx.coordinator.take_over import TakeOver
from styx.host import coordinator_host
from styx.host.coordinator_host import CoordinatorHost
from styx.protocol.messages import SlotsStored
from styx.sequencer.epoch_record import GenerationMarker
from styx.worker.events import RequestsArrived
from styx.worker.external_calls import ExternalCalls
from styx.worker.worker import Worker
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form


def members_load_before_the_marker_is_in_the_log(patch: pytest.MonkeyPatch) -> None:
    def append_marker(self: CoordinatorHost, effect: AppendMarker) -> None:
        marker = GenerationMarker(effect.generation, effect.snapshot_epoch, effect.app_version)
        self._journal.mark(marker, lambda: None)
        self._give(MarkerAppended(effect.generation))

    patch.setattr(CoordinatorHost, "_append_marker", append_marker)


def a_manifest_does_not_wait_for_all_its_parts(patch: pytest.MonkeyPatch) -> None:
    """Slots whose parts are missing have in it what they had in the last one."""
    original = SnapshotLedger.take_parts

    def take_parts(self: SnapshotLedger, generation: int, parts: Any) -> Any:
        last = {slot.part.slot: slot.part for manifest in self.manifests[:1] for slot in manifest.slots}
        self._parts = {**last, **self._parts}
        return original(self, generation, parts)

    patch.setattr(SnapshotLedger, "take_parts", take_parts)


def a_manifest_is_stored_without_a_look_at_its_parts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coordinator_host, "check_stored", lambda store, manifest: None)


def the_log_is_released_before_the_manifest_is_there(patch: pytest.MonkeyPatch) -> None:
    original = SnapshotCourse.go_on

    def go_on(self: SnapshotCourse) -> list[Effect]:
        effects = original(self)
        return [*(snapshot_ledger._release(e.manifest) for e in effects if isinstance(e, StoreManifest)), *effects]

    patch.setattr(SnapshotCourse, "go_on", go_on)


def external_calls_are_made_before_their_intent_is_in_the_log(patch: pytest.MonkeyPatch) -> None:
    original = ExternalCalls.want

    def want(self: ExternalCalls, calls: Any, halted: bool) -> list[Any]:
        intents = original(self, calls, halted)
        return [*intents, *(self._begun[intent.record.key] for intent in intents)]

    patch.setattr(ExternalCalls, "want", want)
    patch.setattr(ExternalCalls, "appended", _outcomes_only(ExternalCalls.appended))


def _outcomes_only(original: Any) -> Any:
    return lambda self, key, outcome: [] if outcome is None else original(self, key, outcome)


def external_calls_begin_although_another_version_may_follow(patch: pytest.MonkeyPatch) -> None:
    original = ExternalCalls.want
    patch.setattr(ExternalCalls, "want", lambda self, calls, halted: original(self, calls, halted=False))


def requests_fetched_for_an_older_generation_count(patch: pytest.MonkeyPatch) -> None:
    original = Worker._arrived

    def arrived(self: Worker, event: RequestsArrived) -> bool:
        return original(self, RequestsArrived(self.generation, event.slot, event.arrivals, event.more))

    patch.setattr(Worker, "_arrived", arrived)


def a_stop_ends_before_its_manifest_is_stored(patch: pytest.MonkeyPatch) -> None:
    original = Coordinator._slots_stored

    def slots_stored(self: Coordinator, message: SlotsStored) -> None:
        original(self, message)
        if self._course.stopping and self._course.holding and self._course._storing is not None:
            self._changed(self._course._storing)

    patch.setattr(Coordinator, "_slots_stored", slots_stored)


def a_stop_that_finds_all_stored_lets_the_next_generation_begin(patch: pytest.MonkeyPatch) -> None:
    original = Coordinator._stop

    def stop(self: Coordinator) -> None:
        if self.all_stored:
            self._effects.append(StopEnded(stored=True))
        else:
            original(self)

    patch.setattr(Coordinator, "_stop", stop)


def a_stop_waits_for_its_snapshot_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SnapshotCourse, "late", False)


CRASHES = tuple(Fault("crash of everything", 0.1 * i, 0.02) for i in range(1, 12))
SNAPSHOTS = {"snapshot_interval_s": 0.01, "duration_s": 1.0, "bursts": 50}
CRASHES_AMID_STORING = tuple(
    fault
    for i in range(1, 8)
    for fault in (
        Fault("failing store", 0.14 * i - 0.02, 0.06),
        Fault("crash of everything", 0.14 * i + 0.02, 0.02),
    )
)
ELSEWHERE: dict[str, Any] = {
    **SNAPSHOTS,
    "faults": (Fault(OTHER_STORE, 0.2, 0.5), *(Fault("crash of everything", at_s, 0.02) for at_s in (0.5, 0.8))),
}
"""A worker takes another store for the deployment's for a while."""

STOPS_OFTEN = tuple(
    fault
    for i in range(4)
    for fault in (Fault("slow store", 0.29 + 0.6 * i, 0.3), Fault("coordinator stop", 0.3 + 0.6 * i, 0.05))
)
STOPS: dict[str, Any] = {"duration_s": 2.5, "bursts": 50, "log_delay_s": 0.01, "faults": STOPS_OFTEN}
STOPS_AMID_CHANGES: dict[str, Any] = {
    **STOPS,
    "managed": False,
    "auto": False,
    "workers": 3,
    "wanted": 2,
    "slots": 4,
    "log_delay_s": 0.02,
    "faults": tuple(
        fault
        for i in range(6)
        for at_s in (0.2 + 0.4 * i,)
        for fault in (
            Fault("scale", at_s, 0.0),
            Fault("scale", at_s + 0.02, 0.0),
            Fault("coordinator stop", at_s + 0.05, 0.05),
        )
    ),
}
"""A stop is wanted while the slots move."""
TAKEN_OVER = tuple(Fault("zombie coordinator", 0.2 + 0.25 * number, 0.2) for number in range(6))
STOPS_WITHOUT_A_STORE = (Fault("failing store", 0.25, 1.8), Fault("coordinator stop", 0.3, 0.05))


def a_coordinator_reads_before_it_fences(patch: pytest.MonkeyPatch) -> None:
    """And some time passes between the two."""
    original = CoordinatorProcess._take_over
    *before, fence, read = take_over.ORDER

    def goes_on(self: CoordinatorProcess, steps: list[TakeOver], found: Any) -> None:
        if steps and steps[0] is fence:
            self.world.time.after(0.1, original, self, steps, found)
        else:
            original(self, steps, found)

    patch.setattr(take_over, "ORDER", (*before, read, fence))
    patch.setattr(CoordinatorProcess, "_take_over", goes_on)


MUTATIONS: dict[Mutation, dict[str, Any]] = {
    a_coordinator_reads_before_it_fences: {**SNAPSHOTS, "faults": TAKEN_OVER},
    members_load_before_the_marker_is_in_the_log: {},
    a_manifest_does_not_wait_for_all_its_parts: {**SNAPSHOTS, "workers": 3, "slots": 4, "faults": CRASHES},
    a_manifest_is_stored_without_a_look_at_its_parts: ELSEWHERE,
    the_log_is_released_before_the_manifest_is_there: {**SNAPSHOTS, "faults": CRASHES_AMID_STORING},
    external_calls_are_made_before_their_intent_is_in_the_log: {"externals": 0.5},
    external_calls_begin_although_another_version_may_follow: {"externals": 0.5, "halts": 0.5},
    requests_fetched_for_an_older_generation_count: {},
    a_stop_ends_before_its_manifest_is_stored: STOPS,
    a_stop_that_finds_all_stored_lets_the_next_generation_begin: STOPS_AMID_CHANGES,
    a_stop_waits_for_its_snapshot_for_ever: {**STOPS, "faults": STOPS_WITHOUT_A_STORE},
}
"""With what each needs to be caught often."""

OF_CLUSTERS = {
    a_coordinator_reads_before_it_fences,
    a_stop_ends_before_its_manifest_is_stored,
    a_stop_that_finds_all_stored_lets_the_next_generation_begin,
    a_stop_waits_for_its_snapshot_for_ever,
}
"""Noticed with the faults and the processes of a cluster only."""

NOTICED_BY: dict[Mutation, int] = {
    members_load_before_the_marker_is_in_the_log: 52,
    a_coordinator_reads_before_it_fences: 5,
    a_stop_that_finds_all_stored_lets_the_next_generation_begin: 5,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    cluster = mutation in OF_CLUSTERS
    assert_caught(mutation, MUTATIONS[mutation], cluster=cluster, first=NOTICED_BY.get(mutation, 0))


@pytest.mark.slow
def test_parts_in_another_store_cost_snapshots_and_nothing_else() -> None:
    reports = [simulate(replace(random_plan(seed), **ELSEWHERE)) for seed in range(8)]
    assert sum(report.faults[OTHER_STORE] for report in reports) == len(reports)
