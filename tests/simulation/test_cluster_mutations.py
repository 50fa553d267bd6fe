"""Mutation proof: each rule that only a cluster has, broken on purpose, is caught by the simulator.

The breakages live here, as patches of the product's functions and of the simulator's processes.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proof.simulation import shared_log, worker_process
from proof.simulation.plan import Fault
from proof.simulation.worker_journal import SimulatedJournal
from styx.coordinator import coordinator, membership, state_checks
from styx.coordinator.events import AppendNote, DeployWanted, NoteAppended, WorkerLeaving
from styx.coordinator.generation import Phase
from styx.host.coordinator_host import CoordinatorHost
from styx.host.worker_host import WorkerHost
from styx.protocol.manifest import SlotPart
from styx.snapshot import load
from styx.snapshot import part as snapshot_io
from styx.state.slot_state import SlotState
from styx.worker import state_watch, worker
from styx.worker.events import SlotPartsStored, StoreSlots
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form


def workers_take_over_their_producers_themselves(patch: pytest.MonkeyPatch) -> None:
    """As late as they come to it, a newer generation's fence may have been long before."""
    original = worker_process.WorkerProcess._connects

    def connects(self: worker_process.WorkerProcess, generation: int) -> bool:
        recover = self._recovering
        if recover is not None and recover.producers:
            place = sorted(recover.addresses).index(self.id)
            recover.producers[place] = self.world.log.take_over(place)
        return bool(original(self, generation))

    patch.setattr(worker_process.WorkerProcess, "_connects", connects)


def nobody_fences(patch: pytest.MonkeyPatch) -> None:
    def take_over(self: shared_log.SharedLog, producer: int) -> tuple[int, int]:
        self._takeovers[producer] = 1
        return producer, 1

    patch.setattr(shared_log.SharedLog, "take_over", take_over)


def a_manifest_counts_without_a_note_in_the_log(patch: pytest.MonkeyPatch) -> None:
    def append_note(self: CoordinatorHost, effect: AppendNote) -> None:
        self._give(NoteAppended(effect.generation, effect.epoch))

    patch.setattr(CoordinatorHost, "_append_note", append_note)


def a_lost_connection_is_not_reported(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worker_process.WorkerProcess, "lost", lambda self, peer, reason: None)


def a_deployment_waits_for_no_snapshot(patch: pytest.MonkeyPatch) -> None:
    def deploy(self: coordinator.Coordinator, wanted: DeployWanted) -> None:
        newest = self.ledger.newest
        self.app_version = wanted.version
        self._app_since = -1 if newest is None else newest.epoch
        self._new_generation()

    patch.setattr(coordinator.Coordinator, "_deploy", deploy)


def what_is_written_after_the_check_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    original = state_watch.StateWatch.snapshot

    def snapshot(self: state_watch.StateWatch, epoch: int, slots: Any, hold: bool) -> None:
        original(self, epoch, (), hold)

    patch.setattr(state_watch.StateWatch, "snapshot", snapshot)


def a_version_begins_without_converting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(load, "_converted", lambda wanted, slots, store: slots)


def converted_state_is_left_out_of_the_next_snapshot(patch: pytest.MonkeyPatch) -> None:
    def as_stored(self: SlotState) -> None:
        original(self)
        self.converted = False

    original = SlotState.as_stored
    patch.setattr(SlotState, "as_stored", as_stored)


def a_held_snapshot_waits_for_no_check(patch: pytest.MonkeyPatch) -> None:
    checks = state_checks.StateChecks
    patch.setattr(checks, "awaited", property(lambda self: False))
    patch.setattr(checks, "allow", lambda self, epoch: True)


def workers_do_not_hold(patch: pytest.MonkeyPatch) -> None:
    original = worker.Worker._closed
    patch.setattr(worker.Worker, "_closed", lambda self, last: original(self, replace(last, hold=False)))


def replies_are_searched_from_where_a_part_was_stored(patch: pytest.MonkeyPatch) -> None:
    def store_slots(self: WorkerHost, wanted: StoreSlots) -> None:
        journal, store = self._journal, self._objects.store
        assert isinstance(journal, SimulatedJournal)

        def ended(parts: list[SlotPart]) -> None:
            late = [replace(part, replies=dict(journal.reply_ends)) for part in parts]
            self._give(SlotPartsStored(wanted.generation, wanted.epoch, late))

        def failed(_: OSError) -> None:
            self._give(SlotPartsStored(wanted.generation, wanted.epoch, None))

        ends = self._journal.ends(wanted)
        self._objects.submit("storing", lambda: snapshot_io.store_slots(wanted, *ends, store), ended, failed)

    patch.setattr(WorkerHost, "_store_slots", store_slots)


def a_worker_is_let_go_while_it_has_slots(patch: pytest.MonkeyPatch) -> None:
    original = membership.Membership.let_go

    def let_go(self: membership.Membership) -> list[int]:
        members, self.members = self.members, frozenset()
        free = original(self)
        self.members = members
        return free

    patch.setattr(membership.Membership, "let_go", let_go)


def a_worker_that_leaves_is_taken_for_a_lost_one(patch: pytest.MonkeyPatch) -> None:
    original = coordinator.Coordinator._take_change

    def take(self: coordinator.Coordinator, event: Any) -> None:
        original(self, event)
        if isinstance(event, WorkerLeaving) and self.phase is Phase.RUNNING:
            self._new_generation()

    patch.setattr(coordinator.Coordinator, "_take_change", take)


def the_last_to_leave_wait_for_no_held_snapshot(patch: pytest.MonkeyPatch) -> None:
    original = coordinator.Coordinator._snapshot_complete

    def complete(self: coordinator.Coordinator, epoch: int) -> None:
        self._course.holding |= not self.membership.eligible
        original(self, epoch)

    patch.setattr(coordinator.Coordinator, "_snapshot_complete", complete)


def a_stop_waits_for_no_held_snapshot(patch: pytest.MonkeyPatch) -> None:
    original = coordinator.Coordinator._snapshot_complete

    def complete(self: coordinator.Coordinator, epoch: int) -> None:
        self._course.holding |= self._course.stopping
        original(self, epoch)

    def stop(self: coordinator.Coordinator) -> None:
        self._course.stop()
        self._course.hold_next = False
        self._want_snapshot()

    patch.setattr(coordinator.Coordinator, "_snapshot_complete", complete)
    patch.setattr(coordinator.Coordinator, "_stop", stop)


def whoever_joins_last_waits_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(membership.Membership, "gathered", lambda self, now_s: False)


MUTATIONS: list[Mutation] = [
    a_worker_is_let_go_while_it_has_slots,
    a_worker_that_leaves_is_taken_for_a_lost_one,
    the_last_to_leave_wait_for_no_held_snapshot,
    a_stop_waits_for_no_held_snapshot,
    whoever_joins_last_waits_for_ever,
    workers_take_over_their_producers_themselves,
    nobody_fences,
    a_manifest_counts_without_a_note_in_the_log,
    a_lost_connection_is_not_reported,
    a_deployment_waits_for_no_snapshot,
    what_is_written_after_the_check_is_not_looked_at,
    a_version_begins_without_converting,
    converted_state_is_left_out_of_the_next_snapshot,
    a_held_snapshot_waits_for_no_check,
    workers_do_not_hold,
    replies_are_searched_from_where_a_part_was_stored,
]

# A coordinator that another one replaces: while its workers load and others stand by for the new one; and while it goes
# on, because all workers stay with it.
WHILE_LOADING = tuple(
    fault
    for i in range(3)
    for fault in (
        Fault("slow store", i + 0.1, 1.0),
        Fault("worker crash", i + 0.2, 0.02),
        Fault("zombie coordinator", i + 0.2, 1.5),
    )
)
WHILE_SERVING = tuple(Fault("zombie coordinator", 0.1 + 1.2 * i, 1.0) for i in range(3))
DEPLOYMENTS = tuple(Fault("deployment", 0.08 * i, 0.0) for i in range(30))
DEPLOYMENTS_AND_CRASHES = tuple(
    fault
    for i in range(8)
    for fault in (Fault("deployment", 0.35 * i, 0.0), Fault("crash of everything", 0.35 * i + 0.25, 0.02))
)
WRITING = {"duration_s": 2.5, "bursts": 50, "requests": 150, "snapshot_interval_s": 2.0, "log_delay_s": 0.0005}
PACES: dict[Mutation, dict[str, Any]] = {
    nobody_fences: {"managed": False},
    replies_are_searched_from_where_a_part_was_stored: {
        "managed": False,
        "snapshot_interval_s": 0.01,
        "duration_s": 1.0,
        "bursts": 50,
        "requests": 150,
        "faults": tuple(Fault("worker crash", 0.1 * i, 0.02) for i in range(1, 9)),
    },
    a_lost_connection_is_not_reported: {"managed": False},
    what_is_written_after_the_check_is_not_looked_at: {**WRITING, "faults": DEPLOYMENTS},
    a_version_begins_without_converting: {**WRITING, "faults": DEPLOYMENTS},
    converted_state_is_left_out_of_the_next_snapshot: {**WRITING, "faults": DEPLOYMENTS_AND_CRASHES},
    a_held_snapshot_waits_for_no_check: {**WRITING, "faults": DEPLOYMENTS},
    whoever_joins_last_waits_for_ever: {"auto": True, "workers": 4, "slots": 4, "faults": (Fault("leave", 0.3, 0.2),)},
    workers_take_over_their_producers_themselves: {
        "managed": False,
        "duration_s": 3.0,
        "bursts": 50,
        "workers": 5,
        "wanted": 2,
        "slots": 4,
        "faults": WHILE_LOADING,
    },
    a_manifest_counts_without_a_note_in_the_log: {
        "snapshot_interval_s": 0.01,
        "duration_s": 3.0,
        "bursts": 50,
        "workers": 2,
        "wanted": 2,
        "slots": 4,
        "faults": WHILE_SERVING,
    },
}

NOTICED_BY: dict[Mutation, int] = {
    workers_take_over_their_producers_themselves: 116,
    nobody_fences: 50,
    a_lost_connection_is_not_reported: 74,
    replies_are_searched_from_where_a_part_was_stored: 6,
    what_is_written_after_the_check_is_not_looked_at: 18,
    a_stop_waits_for_no_held_snapshot: 19,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, PACES.get(mutation, {}), cluster=True, first=NOTICED_BY.get(mutation, 0))
