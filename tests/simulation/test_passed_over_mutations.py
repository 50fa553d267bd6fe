"""Mutation proof for requests that wait for an epoch with room, for epochs that contention keeps small, and for epochs
that nothing takes part in: each rule that keeps what an epoch has, broken on purpose.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proof.random_requests import Profile
from proof.simulation import random_plan, simulate
from proof.simulation.plan import Fault
from styx.sequencer.epoch_record import SlotBatch
from styx.sequencer.sequencer import Recorded, SlotSequencer
from styx.worker.intake import Intake
from styx.worker.root import RootTransaction
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

CRASHES = {
    "epoch_result_bytes_max": 1,
    "epoch_transactions_max": 40,
    "bursts": 2,
    "faults": tuple(Fault("worker crash", 0.1 * i, 0.02) for i in range(1, 7)),
}
SNAPSHOTS = {**CRASHES, "snapshot_interval_s": 0.01}
HALTS = {**CRASHES, "halts": 0.5, "epoch_result_bytes_max": 2**20, "workers": 3, "slots": 4, "snapshot_interval_s": 2.0}
CONTENDED = {**CRASHES, "epoch_result_bytes_max": 2**20, "profile": Profile(keys=2)}


def a_replay_takes_what_was_passed_over(patch: pytest.MonkeyPatch) -> None:
    original = SlotSequencer.replay

    def replay(self: SlotSequencer, batch: SlotBatch) -> list[Recorded]:
        more = batch.count + len(batch.passed) - len(batch.late)
        return original(self, replace(batch, passed=[], late=[], count=more))

    patch.setattr(SlotSequencer, "replay", replay)


def a_replay_takes_late_ones_last(patch: pytest.MonkeyPatch) -> None:
    original = SlotSequencer.replay

    def replay(self: SlotSequencer, batch: SlotBatch) -> list[Recorded]:
        return sorted(original(self, batch), key=lambda taken: (taken[0] in batch.late, taken[0]))

    patch.setattr(SlotSequencer, "replay", replay)


def snapshots_forget_what_was_passed_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SlotSequencer, "rest", lambda self: (self.next_offset, None))


def snapshots_forget_what_was_taken_behind_it(patch: pytest.MonkeyPatch) -> None:
    original = SlotSequencer.rest
    patch.setattr(SlotSequencer, "rest", lambda self: (original(self)[0], None))


def a_replay_runs_what_was_carried_past_an_idle_epoch(patch: pytest.MonkeyPatch) -> None:
    original = Intake._carried_over

    def carried_over(self: Intake, idle: frozenset[int]) -> list[RootTransaction]:
        return original(self, frozenset())

    patch.setattr(Intake, "_carried_over", carried_over)


def a_replay_takes_what_there_is_room_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Intake, "replay", lambda self, plan: self.form(plan.counter))


MUTATIONS: list[tuple[Mutation, dict[str, Any]]] = [
    (a_replay_takes_what_was_passed_over, CRASHES),
    (a_replay_takes_late_ones_last, CRASHES),
    (snapshots_forget_what_was_passed_over, SNAPSHOTS),
    (snapshots_forget_what_was_taken_behind_it, SNAPSHOTS),
    (a_replay_runs_what_was_carried_past_an_idle_epoch, HALTS),
    (a_replay_takes_what_there_is_room_for, CONTENDED),
]


@pytest.mark.slow
def test_ordinary_seeds_meet_requests_that_are_passed_over() -> None:
    assert sum(simulate(random_plan(seed)).passed_over for seed in range(20)) > 10


@pytest.mark.slow
def test_ordinary_seeds_meet_epochs_that_contention_keeps_small() -> None:
    assert sum(simulate(random_plan(seed)).small_epochs for seed in range(20)) > 10


@pytest.mark.slow
@pytest.mark.parametrize(("mutation", "pace"), MUTATIONS, ids=[mutation.__name__ for mutation, _ in MUTATIONS])
def test_the_simulator_catches(mutation: Mutation, pace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, pace, cluster=False)
