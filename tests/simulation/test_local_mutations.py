"""Mutation proof for local functions: each rule of phase 3, broken on purpose."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proof.random_requests import Profile
from proof.simulation.plan import Fault
from styx.sequencer import epoch_record
from styx.snapshot import load as recovery
from styx.worker import cuts, epoch, local_cells, local_phase, local_run, serial_run
from styx.worker.intake import Intake
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

PACE = {"locals": 1.0, "requests": 60}
CRASHES = {
    **PACE,
    "duration_s": 1.0,
    "bursts": 50,
    "faults": tuple(Fault("worker crash", 0.06 * i, 0.02) for i in range(1, 20)),
}
CUTS = {
    **CRASHES,
    "spins": 0.8,
    "locals": 1.0,
    "externals": 0.0,
    "log_delay_s": 0.05,
    "workers": 3,
    "slots": 4,
    "snapshot_interval_s": 2.0,
}
"""Verdicts are long on their way to the log, and workers crash meanwhile."""

CROWDED = {
    **CUTS,
    "requests": 150,
    "profile": Profile(keys=2, calls_max=6),
    "faults": tuple(Fault("worker crash", 0.04 * i, 0.02) for i in range(1, 30)),
}
"""Many crashes between what is appended and its end."""
FAILING = {
    **CUTS,
    "snapshot_interval_s": 0.01,
    "faults": tuple(Fault("failing store", 0.1 * i, 0.05) for i in range(1, 20)),
}
"""The store fails for one worker while another one waits for its verdict."""


def phase_3_comes_before_the_lock_phase(patch: pytest.MonkeyPatch) -> None:
    original = epoch.Epoch._begin_round

    def begin_round(self: epoch.Epoch) -> None:
        if self._local is not None and not self._local.done:
            self._local.run(10**9)
            self._local.commit()
            self._local._cells = {}
        original(self)

    patch.setattr(epoch.Epoch, "_begin_round", begin_round)


def _keeps_writes_of(patch: pytest.MonkeyPatch, end: type[Exception]) -> None:
    original = local_run.LocalRun.run

    def run(self: local_run.LocalRun, root: Any, cells: local_cells.LocalCells) -> None:
        try:
            original(self, root, cells)
        except end:
            cells.keep()
            raise

    patch.setattr(local_run.LocalRun, "run", run)


def what_left_its_slot_keeps_its_writes(patch: pytest.MonkeyPatch) -> None:
    _keeps_writes_of(patch, local_run.LeftSlot)


def what_raised_keeps_its_writes(patch: pytest.MonkeyPatch) -> None:
    _keeps_writes_of(patch, serial_run.Ended)


def phase_3_is_not_in_tid_order(patch: pytest.MonkeyPatch) -> None:
    original = Intake.take_local
    patch.setattr(Intake, "take_local", lambda self: original(self)[::-1])


def what_left_its_slot_is_local_again(patch: pytest.MonkeyPatch) -> None:
    original = Intake._carried_over

    def carried_over(self: Intake, idle: Any) -> Any:
        roots = original(self, idle)
        _local_again(self, roots)
        return roots

    patch.setattr(Intake, "_carried_over", carried_over)


def what_left_its_slot_is_local_again_behind_a_snapshot(patch: pytest.MonkeyPatch) -> None:
    readmit, carried_over = Intake._readmit, Intake._carried_over
    behind: set[tuple[int, int]] = set()

    def readmitted(self: Intake, slot: int, pending: Any) -> None:
        readmit(self, slot, pending)
        behind.add((id(self), pending.tid))

    def carried(self: Intake, idle: Any) -> Any:
        roots = carried_over(self, idle)
        again = [root for root in roots if (id(self), root.tid) in behind]
        behind.difference_update((id(self), root.tid) for root in again)
        _local_again(self, again)
        return roots

    patch.setattr(Intake, "_readmit", readmitted)
    patch.setattr(Intake, "_carried_over", carried)


def _local_again(intake: Intake, roots: list[Any]) -> None:
    for root in roots:
        if root.function is not None and root.function.local:
            root.local = True
            intake.local.append(root)


def the_verdict_of_phase_3_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    original = epoch.Epoch._end_local

    def end_local(self: epoch.Epoch) -> None:
        self._log.undurable = 0
        original(self)

    patch.setattr(epoch.Epoch, "_end_local", end_local)


def a_replay_runs_what_was_interrupted_in_phase_3(patch: pytest.MonkeyPatch) -> None:
    original = local_phase.LocalPhase.__init__

    def init(self: Any, executor: Any, roots: Any, ended: Any, *others: Any) -> None:
        original(self, executor, roots, {}, *others)

    patch.setattr(local_phase.LocalPhase, "__init__", init)


def what_was_interrupted_in_phase_3_is_replayed_in_phase_0(patch: pytest.MonkeyPatch) -> None:
    original = epoch.Epoch._leave_out

    def leave_out(self: epoch.Epoch, local: Any) -> None:
        ended = {} if self.plan is None else self.plan.ended
        kept = [root for root in local if root.tid not in ended]
        for root in local:
            root.local = root in kept
        original(self, kept)

    patch.setattr(epoch.Epoch, "_leave_out", leave_out)


def a_record_of_the_next_epoch_proves_phase_3_of_all_slots(patch: pytest.MonkeyPatch) -> None:
    original = epoch_record.replay_plan

    def replay_plan(*arguments: Any) -> Any:
        return [plan if plan.last else replace(plan, open=[]) for plan in original(*arguments)]

    patch.setattr(recovery, "replay_plan", replay_plan)


def a_reply_of_phase_3_proves_that_of_all_slots(patch: pytest.MonkeyPatch) -> None:
    original = cuts.decided_slots

    def decided_slots(plan: Any, answered: Any, *others: Any) -> set[int]:
        return set(plan.batches) if (plan.epoch, 3) <= answered else original(plan, answered, *others)

    patch.setattr(cuts, "decided_slots", decided_slots)


def nothing_proves_phase_3(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cuts, "decided_slots", lambda *_: set())


def a_snapshot_that_has_failed_is_stored_behind_phase_3(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epoch.Epoch, "snapshot_failed", lambda self, number: None)


MUTATIONS: list[tuple[Mutation, dict[str, Any]]] = [
    (phase_3_comes_before_the_lock_phase, PACE),
    (what_left_its_slot_keeps_its_writes, PACE),
    (what_raised_keeps_its_writes, PACE),
    (phase_3_is_not_in_tid_order, PACE),
    (what_left_its_slot_is_local_again, PACE),
    (what_left_its_slot_is_local_again_behind_a_snapshot, CRASHES),
    (the_verdict_of_phase_3_is_not_waited_for, CROWDED),
    (a_replay_runs_what_was_interrupted_in_phase_3, CUTS),
    (what_was_interrupted_in_phase_3_is_replayed_in_phase_0, CUTS),
    (a_record_of_the_next_epoch_proves_phase_3_of_all_slots, CUTS),
    (a_reply_of_phase_3_proves_that_of_all_slots, CUTS),
    (nothing_proves_phase_3, CUTS),
    (a_snapshot_that_has_failed_is_stored_behind_phase_3, FAILING),
]

NOTICED_BY: dict[Mutation, int] = {
    what_left_its_slot_is_local_again_behind_a_snapshot: 3,
    the_verdict_of_phase_3_is_not_waited_for: 3,
    a_record_of_the_next_epoch_proves_phase_3_of_all_slots: 5,
    a_reply_of_phase_3_proves_that_of_all_slots: 25,
    nothing_proves_phase_3: 0,
    a_snapshot_that_has_failed_is_stored_behind_phase_3: 1,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize(("mutation", "pace"), MUTATIONS, ids=[mutation.__name__ for mutation, _ in MUTATIONS])
def test_the_simulator_catches(mutation: Mutation, pace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, pace, cluster=False, first=NOTICED_BY.get(mutation, 0))
