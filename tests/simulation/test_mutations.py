"""Mutation proof: each rule of the protocol, broken on purpose, is caught by the simulator.

The breakages live here, as patches of the product's functions; those of a cluster's rules are in
`test_cluster_mutations.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from proof.simulation.plan import Fault
from styx.coordinator import barrier, coordinator
from styx.coordinator.snapshot_ledger import SnapshotLedger
from styx.model.bulk_load import BulkLoad
from styx.protocol.manifest import SlotPart
from styx.protocol.messages import Done, SlotsStored
from styx.sequencer import epoch_record, sequencer
from styx.snapshot import load as recovery
from styx.snapshot.part import spans
from styx.state.slot_state import SlotState
from styx.state.table import Reader, Table
from styx.worker import (
    call_graph,
    endings,
    epoch,
    executor,
    footprint,
    lock_rounds,
    replies,
    reply_memory,
    rerun,
    unchanged_rerun,
    validation,
    worker,
)
from styx.worker import lock_phase as lock_phase_module
from styx.worker.current_cell import CurrentCell
from styx.worker.intake import Intake
from styx.worker.slot import Slot
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form


def validation_ignores_reads(patch: pytest.MonkeyPatch) -> None:
    def conflicts(slot: Slot, gone: Any) -> list[int]:
        written: set[object] = set()
        found = []
        for tid in sorted(slot.footprints.keys() - set(gone)):
            wrote = {
                (o, c.key)
                for o, cells in slot.cells_by_operator()
                for c in cells
                if c.footprint.tid == tid and c.written
            }
            if wrote & written:
                found.append(tid)
            written |= wrote
        return found

    patch.setattr(validation, "conflicts", conflicts)


class _LikeAnyOther(list[Any]):
    def __ne__(self, other: object) -> bool:
        return False


def changed_calls_pass_for_unchanged(patch: pytest.MonkeyPatch) -> None:
    original = unchanged_rerun._again

    def again(cached: Any, *rest: Any) -> Any:
        cached._calls = _LikeAnyOther(cached._calls or ())
        return original(cached, *rest)

    patch.setattr(unchanged_rerun, "_again", again)


def siblings_see_each_other(patch: pytest.MonkeyPatch) -> None:
    def read(self: footprint.EntityCell, chain: bytes) -> bytes | None:
        self.chain = chain if self.chain is None else self.chain
        if not self.written:
            return self.found(self.key)
        return self.value if self.values is None else next(reversed(self.values.values()))

    patch.setattr(footprint.EntityCell, "read", read)


def collisions_go_unnoticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(footprint, "concurrent", lambda a, b: False)


def an_abort_releases_the_root(patch: pytest.MonkeyPatch) -> None:
    original = executor.Executor._credit

    def credit(self: executor.Executor, ack: Any) -> None:
        root = self.roots.get(ack.tid)
        original(self, ack)
        if root is not None and not root.done and ack.failure is not None:
            self._finish(root)

    patch.setattr(executor.Executor, "_credit", credit)


def replies_do_not_wait_for_the_epoch_record(patch: pytest.MonkeyPatch) -> None:
    original = epoch.Epoch._report_conflicts

    def report_conflicts(self: epoch.Epoch) -> None:
        self._log.undurable = 0
        original(self)

    patch.setattr(epoch.Epoch, "_report_conflicts", report_conflicts)


def the_offset_moves_past_carried_transactions(patch: pytest.MonkeyPatch) -> None:
    original = Intake.rest

    def rest(self: Intake, slot: int) -> Any:
        carried, self.carried = self.carried, []
        found = original(self, slot)
        self.carried = carried
        return found

    patch.setattr(Intake, "rest", rest)


def records_of_an_old_generation_count(patch: pytest.MonkeyPatch) -> None:
    original = epoch_record.replay_plan

    def replay_plan(records: Any, *arguments: Any) -> Any:
        kept = [r for r in records if isinstance(r, epoch_record.EpochRecord | epoch_record.Verdicts)]
        level = [msgspec.structs.replace(r, generation=0) for r in kept]
        return original(level, arguments[0], arguments[1], -1, arguments[3])

    patch.setattr(recovery, "replay_plan", replay_plan)


def objects_are_applied_in_the_wrong_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "spans", lambda manifest, slots: spans(manifest, slots)[::-1])


def everything_is_stored_on_top_of_its_chain(patch: pytest.MonkeyPatch) -> None:
    original = SnapshotLedger.take_parts

    def take_parts(self: SnapshotLedger, generation: int, parts: list[SlotPart]) -> Any:
        return original(self, generation, [replace(part, whole=False) for part in parts])

    patch.setattr(SnapshotLedger, "take_parts", take_parts)


def everything_is_stored_as_it_is_by_then(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "copied", lambda self: self._entries)


def changes_pass_for_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SlotState, "copied", lambda self: self.uploading)


def replies_are_given_again_after_a_recovery(patch: pytest.MonkeyPatch) -> None:
    original = replies.Replies._give

    def give(self: replies.Replies, root: Any, reply: Any) -> None:
        self.answered = {}
        original(self, root, reply)

    patch.setattr(replies.Replies, "_give", give)


def a_snapshot_does_not_wait_for_its_replies(patch: pytest.MonkeyPatch) -> None:
    def tell_stored(self: worker.Worker) -> None:
        stored, self._generation.stored = self._generation.stored, None
        if stored is not None:
            self._tell(SlotsStored(self.generation, stored.epoch, stored.parts))

    patch.setattr(worker.Worker, "_tell_stored", tell_stored)


def deliveries_count_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequencer.SlotSequencer, "arrive", lambda self, arrivals: self.waiting.extend(arrivals))


def a_changed_synchronous_result_goes_unnoticed(patch: pytest.MonkeyPatch) -> None:
    original = call_graph.CallGraph.ran

    def ran(self: call_graph.CallGraph, number: int, made: Any, given: Any, stopped: Any) -> Any:
        return original(self, number, made, {}, stopped)

    patch.setattr(call_graph.CallGraph, "ran", ran)


def changed_calls_to_other_slots_go_unnoticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(call_graph.Sent, "same", lambda self, other: True)


def a_collision_with_an_exception_is_run_again(patch: pytest.MonkeyPatch) -> None:
    """Although calls of the chain that died were never sent."""
    original = epoch.done_report

    def done_report(generation: int, number: int, new_max: int, roots: Any, invocations_max: int) -> Done:
        roots = list(roots)
        died = {root.tid: root for root in roots if root.collided and not root.overflow and root.failure is not None}
        done = original(generation, number, new_max, roots, invocations_max)
        for tid, root in died.items():
            root.overflow = False
            done.deferred.remove(tid)
            done.collided.append(tid)
        return done

    patch.setattr(epoch, "done_report", done_report)


def every_exception_is_final(patch: pytest.MonkeyPatch) -> None:
    def verdicts(failed: dict[int, Any], patched: set[int]) -> list[tuple[int, Any]]:
        settled = [t for t in sorted(failed) if not patched or t < min(patched)]
        return [(t, None if failed[t].deviation else failed[t]) for t in settled]

    patch.setattr(barrier, "_verdicts", verdicts)


def failed_transactions_are_not_rolled_back(patch: pytest.MonkeyPatch) -> None:
    def exclude(self: lock_phase_module.SlotLockPhase, excluded: Any) -> int:
        self._excluded.update(f.tid for f in self._queue if f.tid in excluded)
        return len(self._queue)

    patch.setattr(lock_phase_module.SlotLockPhase, "_exclude", exclude)


def a_failed_upload_forgets_its_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SlotState, "delta_failed", SlotState.delta_stored)


def snapshots_are_taken_amid_a_replay(patch: pytest.MonkeyPatch) -> None:
    original = coordinator.Coordinator._snapshot_due

    def due(self: coordinator.Coordinator) -> barrier.SnapshotDue | None:
        self._present.replay_until = -1
        return original(self)

    patch.setattr(coordinator.Coordinator, "_snapshot_due", due)


def counters_are_not_rebalanced(patch: pytest.MonkeyPatch) -> None:
    original = barrier.EpochBarriers._barrier_1

    def barrier_1(self: barrier.EpochBarriers) -> Any:
        validate = original(self)
        self.new_max = min(done.new_max for done in self._done.values())
        if validate is not None:
            validate.new_max = self.new_max
        return validate

    patch.setattr(barrier.EpochBarriers, "_barrier_1", barrier_1)


def early_frames_are_lost(patch: pytest.MonkeyPatch) -> None:
    original = worker.Worker._take_frame

    def take_frame(self: worker.Worker, frame: Any) -> None:
        original(self, frame)
        self._generation.early = {}

    patch.setattr(worker.Worker, "_take_frame", take_frame)


def nobody_is_told_to_join(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coordinator.Coordinator, "_epoch_started", lambda self, worker, epoch: None)


def collided_transactions_are_not_made_sequential(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.end

    def end(self: lock_rounds.LockRounds, root: Any) -> bool:
        sequential = root.sequential
        answered = original(self, root)
        root.sequential = sequential
        return answered

    patch.setattr(lock_rounds.LockRounds, "end", end)


def an_aborting_transaction_with_a_collision_aborts_at_once(patch: pytest.MonkeyPatch) -> None:
    original = epoch.done_report

    def done_report(generation: int, number: int, new_max: int, roots: Any, invocations_max: int) -> Done:
        roots = list(roots)
        died = [root for root in roots if root.collided and not root.overflow and root.failure is not None]
        done = original(generation, number, new_max, roots, invocations_max)
        for root in died:
            root.overflow = root.external
            if not root.external:
                done.deferred.remove(root.tid)
                done.aborted.append(root.tid)
        return done

    patch.setattr(epoch, "done_report", done_report)


def a_recovery_forgets_idempotency_keys_in_another_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reply_memory, "_age", lambda reply: (reply.tid, 0, 0))


def loads_are_not_validated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(validation, "_conflicts_of_accesses", lambda *arguments: None)


def an_access_overlaps_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BulkLoad, "overlaps", lambda self, key: False)


def loads_see_no_conflict(patch: pytest.MonkeyPatch) -> None:
    original = validation.conflicts

    def conflicts(slot: Slot, gone: Any) -> list[int]:
        return [t for t in original(slot, gone) if slot.footprints[t].accesses is None]

    patch.setattr(validation, "conflicts", conflicts)


def a_load_run_again_does_not_look_at_the_state(patch: pytest.MonkeyPatch) -> None:
    original = CurrentCell.access

    def access(self: CurrentCell, access: BulkLoad) -> Any:
        access.replace = True
        return original(self, access)

    patch.setattr(CurrentCell, "access", access)


def loads_are_in_no_snapshot(patch: pytest.MonkeyPatch) -> None:
    original = validation.commit

    def commit(slot: Slot, left: Any) -> None:
        original(slot, left)
        for tid, each in slot.footprints.items():
            for access in each.accesses or () if tid not in left else ():
                changes = slot.state.table(access.operator)._changes
                for key in access.writes:
                    changes.pop(key, None)

    patch.setattr(validation, "commit", commit)


def a_commit_is_in_no_snapshot(patch: pytest.MonkeyPatch) -> None:
    def write(self: Table, epoch: int, key: Any, value: bytes | None) -> None:
        changes, self._changes = self._changes, {}
        original(self, epoch, key, value)
        self._changes = changes

    original = Table.write
    patch.setattr(Table, "write", write)


def an_epoch_reads_what_the_one_before_found(patch: pytest.MonkeyPatch) -> None:
    def find(self: Slot, operator: str) -> Reader:
        read = self.found[operator] = self.state.table(operator).reader(self._reads - 1)
        return read

    patch.setattr(Slot, "find", find)


def large_results_count_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(endings.Endings, "_count_result", lambda self, invocation, result: None)


def a_lock_phase_may_grow_by_any_number_of_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rerun, "calls_more", lambda data, limits: 0)


MUTATIONS: list[Mutation] = [
    validation_ignores_reads,
    siblings_see_each_other,
    changed_calls_pass_for_unchanged,
    collisions_go_unnoticed,
    an_abort_releases_the_root,
    replies_do_not_wait_for_the_epoch_record,
    the_offset_moves_past_carried_transactions,
    records_of_an_old_generation_count,
    objects_are_applied_in_the_wrong_order,
    everything_is_stored_on_top_of_its_chain,
    everything_is_stored_as_it_is_by_then,
    changes_pass_for_everything,
    replies_are_given_again_after_a_recovery,
    a_snapshot_does_not_wait_for_its_replies,
    deliveries_count_twice,
    a_changed_synchronous_result_goes_unnoticed,
    changed_calls_to_other_slots_go_unnoticed,
    a_collision_with_an_exception_is_run_again,
    every_exception_is_final,
    failed_transactions_are_not_rolled_back,
    a_failed_upload_forgets_its_changes,
    snapshots_are_taken_amid_a_replay,
    counters_are_not_rebalanced,
    early_frames_are_lost,
    nobody_is_told_to_join,
    collided_transactions_are_not_made_sequential,
    an_aborting_transaction_with_a_collision_aborts_at_once,
    a_recovery_forgets_idempotency_keys_in_another_order,
    loads_are_not_validated,
    an_access_overlaps_nothing,
    loads_see_no_conflict,
    a_load_run_again_does_not_look_at_the_state,
    loads_are_in_no_snapshot,
    a_commit_is_in_no_snapshot,
    an_epoch_reads_what_the_one_before_found,
    large_results_count_for_nothing,
    a_lock_phase_may_grow_by_any_number_of_bytes,
]


CRASHES = tuple(Fault("worker crash", 0.17 * i, 0.02) for i in range(1, 7))
PACES: dict[Mutation, dict[str, Any]] = {
    every_exception_is_final: {"rows": 0.0, "sweeps": 0.0},
    # Rules about snapshots are broken rarely where snapshots are rare and nothing crashes after one.
    a_snapshot_does_not_wait_for_its_replies: {
        "snapshot_interval_s": 0.01,
        "log_delay_s": 0.05,
        "duration_s": 1.0,
        "bursts": 50,
        "workers": 2,
        "faults": CRASHES,
    },
    large_results_count_for_nothing: {"invocations_max": 24, "call_bytes": 4},
    a_lock_phase_may_grow_by_any_number_of_bytes: {"invocations_max": 40, "call_bytes": 4},
    everything_is_stored_as_it_is_by_then: {
        "snapshot_interval_s": 0.01,
        "duration_s": 1.0,
        "bursts": 50,
        "faults": CRASHES,
    },
    snapshots_are_taken_amid_a_replay: {"snapshot_interval_s": 0.01, "faults": CRASHES},
}
"""What a mutation needs to be caught often; the others are caught on the usual plans."""

NOTICED_BY: dict[Mutation, int] = {
    records_of_an_old_generation_count: 276,
    a_collision_with_an_exception_is_run_again: 104,
    every_exception_is_final: 21,
    a_lock_phase_may_grow_by_any_number_of_bytes: 31,
    everything_is_stored_as_it_is_by_then: 129,
    a_failed_upload_forgets_its_changes: 51,
    a_recovery_forgets_idempotency_keys_in_another_order: 11,
    a_load_run_again_does_not_look_at_the_state: 11,
    the_offset_moves_past_carried_transactions: 6,
    everything_is_stored_on_top_of_its_chain: 5,
    siblings_see_each_other: 4,
    changes_pass_for_everything: 4,
    early_frames_are_lost: 3,
    snapshots_are_taken_amid_a_replay: 3,
    objects_are_applied_in_the_wrong_order: 3,
    a_snapshot_does_not_wait_for_its_replies: 3,
    changed_calls_to_other_slots_go_unnoticed: 3,
    a_changed_synchronous_result_goes_unnoticed: 3,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, PACES.get(mutation, {}), cluster=False, first=NOTICED_BY.get(mutation, 0))
