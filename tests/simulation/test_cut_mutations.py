"""Mutation proof for functions that the watchdog ends: each rule that keeps time out of outcomes, broken on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from proof import chaos_app, spinning
from proof.random_requests import Profile
from proof.simulation.plan import Fault
from styx.coordinator import barrier
from styx.protocol.frames import Ack
from styx.protocol.messages import Conflicts, LockDecision, Resume
from styx.sequencer import epoch_record
from styx.snapshot import load as recovery
from styx.worker import cuts, endings, epoch, given_replies, lock_rounds, outbox
from styx.worker.events import AppendVerdicts, StateLoaded
from styx.worker.worker import Worker
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

PACE = {"spins": 0.4}
CRASHES = {**PACE, "snapshot_interval_s": 2.0}
INCOMPLETE = {
    **CRASHES,
    "spins": 0.8,
    "log_delay_s": 0.05,
    "workers": 3,
    "slots": 4,
    "duration_s": 1.0,
    "bursts": 50,
    "faults": tuple(Fault("second worker crash during recovery", 0.1 * i, 0.02) for i in range(1, 12)),
}
"""Epochs whose records are not all there when a worker crashes are common."""
CROWDED = {
    **INCOMPLETE,
    "requests": 150,
    "externals": 0.0,
    "profile": Profile(keys=2, calls_max=6),
    "faults": tuple(Fault("worker crash", 0.04 * i, 0.02) for i in range(1, 30)),
}
"""Many crashes between what is appended and its end."""

PATCHING = {
    **CRASHES,
    "spins": 0.8,
    "travels": 0.8,
    "patch_rounds": (1, 2, 8),
    "profile": Profile(keys=8, calls_max=12, synchronous=0.4),
    "workers": 2,
    "slots": 4,
    "requests": 150,
    "duration_s": 1.0,
    "bursts": 5,
    "epoch_transactions_max": 10,
}
"""Lock phases of few transactions, some of which are given up behind the first round with patches, and some cut."""


def verdicts_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    original = epoch.EpochLog.verdicts

    def verdicts(self: epoch.EpochLog, *arguments: Any) -> list[AppendVerdicts]:
        effects = original(self, *arguments)
        for effect in effects:
            effect.epoch = -1  # its end is nobody's
            self.undurable -= 1
        return effects

    patch.setattr(epoch.EpochLog, "verdicts", verdicts)


def verdicts_are_not_recorded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epoch.EpochLog, "verdicts", lambda self, *arguments: [])


def a_replay_runs_what_was_ended(patch: pytest.MonkeyPatch) -> None:
    original = epoch_record._with_verdicts
    patch.setattr(epoch_record, "_with_verdicts", lambda plan, verdicts, last: original(plan, [], last))


def a_replay_counts_what_was_taken_out_among_what_is_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epoch, "Conflicts", lambda generation, number, tids, _: Conflicts(generation, number, tids))


def a_replay_locks_what_was_taken_out(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.__init__

    def init(self: Any, slots: Any, locked: Any, large: Any, running: Any, unlocked: Any, *rest: Any) -> None:
        original(self, slots, locked, large, running, (), *rest)

    patch.setattr(lock_rounds.LockRounds, "__init__", init)


def verdicts_of_an_epoch_that_was_formed_anew_hold(patch: pytest.MonkeyPatch) -> None:
    original = epoch_record.replay_plan

    def replay_plan(records: Any, *rest: Any) -> Any:
        entries = list(records)
        latest = max((e.generation for e in entries), default=0)
        kept = [
            epoch_record.Verdicts(latest, e.epoch, e.ended, e.unlocked) if isinstance(e, epoch_record.Verdicts) else e
            for e in entries
            if not isinstance(e, epoch_record.Verdicts)
        ]
        late = [e for e in entries if isinstance(e, epoch_record.Verdicts)]
        plans = original(iter(kept), *rest)
        return [epoch_record._with_verdicts(plan, late, plan is plans[-1]) for plan in plans]

    patch.setattr(epoch_record, "replay_plan", replay_plan)
    patch.setattr(recovery, "replay_plan", replay_plan)


def later_generations_verdicts_are_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Those of an epoch that an earlier generation recorded and a later one ran again."""
    original = epoch_record.replay_plan

    def replay_plan(records: Any, *rest: Any) -> Any:
        entries = list(records)
        formed = {e.epoch: e.generation for e in entries if isinstance(e, epoch_record.EpochRecord)}
        kept = [
            e for e in entries if not isinstance(e, epoch_record.Verdicts) or formed.get(e.epoch, 0) >= e.generation
        ]
        return original(iter(kept), *rest)

    patch.setattr(recovery, "replay_plan", replay_plan)


def a_lock_phase_goes_on_without_beginning_anew(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.decided

    def decided(self: lock_rounds.LockRounds, decision: LockDecision) -> None:
        decision.anew = False
        original(self, decision)

    patch.setattr(lock_rounds.LockRounds, "decided", decided)


def a_round_with_a_cut_counts(patch: pytest.MonkeyPatch) -> None:
    original = barrier.EpochBarriers._lock_round

    def lock_round(self: barrier.EpochBarriers, due: Any) -> LockDecision:
        for report in self._reports.values():
            report.cut = []
        return original(self, due)

    patch.setattr(barrier.EpochBarriers, "_lock_round", lock_round)


def what_was_ended_in_the_lock_phase_commits(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.end

    def end(self: lock_rounds.LockRounds, root: Any) -> bool:
        answered = original(self, root)
        if not answered and root.tid in self._unlocked:
            self.carried.remove(root)
            return True
        return answered

    patch.setattr(lock_rounds.LockRounds, "end", end)


def what_branches_could_not_see_of_each_other_does_not_matter(patch: pytest.MonkeyPatch) -> None:
    original = cuts.settle

    def settle(cut_roots: Any, *others: Any) -> None:
        for root in cut_roots:
            root.collided = False
        original(cut_roots, *others)

    patch.setattr(cuts, "settle", settle)


def a_function_that_hides_its_end_goes_on(patch: pytest.MonkeyPatch) -> None:
    original = spinning.spin

    def spin(context: Any, endless: bool) -> None:
        try:
            original(context, endless)
        finally:
            context._doom = None

    patch.setattr(chaos_app, "spin", spin)


def an_earlier_exception_makes_the_end_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The transaction ended in the exception, but a replay would meet the function that never ends."""
    original = outbox.Outbox.acknowledge

    def acknowledge(self: outbox.Outbox, peer: int, ack: Ack) -> None:
        ack.cut = False
        original(self, peer, ack)

    patch.setattr(outbox.Outbox, "acknowledge", acknowledge)


def the_end_comes_before_every_exception(patch: pytest.MonkeyPatch) -> None:
    original = endings.Endings._failed

    def failed(self: endings.Endings, invocation: Any, failure: Any) -> None:
        if failure.code == "cut":
            failure = failure._replace(chain=b"", position=b"")
        original(self, invocation, failure)

    patch.setattr(endings.Endings, "_failed", failed)


def replies_that_stand_decide_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cuts, "decided", lambda *_: False)


def replies_of_other_workers_decide_nothing(patch: pytest.MonkeyPatch) -> None:
    load, take = Worker._load, Worker._take_message
    own: dict[int, tuple[int, int]] = {}

    def loaded(self: Worker, answer: StateLoaded) -> None:
        own[self.id] = answer.answered_until
        load(self, answer)

    def taken(self: Worker, message: Any) -> None:
        take(self, Resume(message.generation, own[self.id]) if isinstance(message, Resume) else message)

    patch.setattr(Worker, "_load", loaded)
    patch.setattr(Worker, "_take_message", taken)


def a_reply_of_the_execution_step_decides_the_lock_phase(patch: pytest.MonkeyPatch) -> None:
    """What does not end there then stops the engine, though no reply says that it ended."""
    original = given_replies.decided
    patch.setattr(cuts, "decided", lambda epoch, locking, answered: original(epoch, False, answered))


def what_is_left_out_of_an_epoch_is_left_out_of_the_next(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cuts.Stopped, "clear", lambda _: None)


MUTATIONS: list[tuple[Mutation, dict[str, Any]]] = [
    (verdicts_are_not_waited_for, CROWDED),
    (verdicts_are_not_recorded, CRASHES),
    (a_replay_runs_what_was_ended, CRASHES),
    (a_replay_locks_what_was_taken_out, CRASHES),
    (a_replay_counts_what_was_taken_out_among_what_is_left, PATCHING),
    (verdicts_of_an_epoch_that_was_formed_anew_hold, INCOMPLETE),
    (later_generations_verdicts_are_overlooked, CRASHES),
    (a_lock_phase_goes_on_without_beginning_anew, PACE),
    (a_round_with_a_cut_counts, CRASHES),
    (what_was_ended_in_the_lock_phase_commits, PACE),
    (what_branches_could_not_see_of_each_other_does_not_matter, PACE),
    (a_function_that_hides_its_end_goes_on, PACE),
    (an_earlier_exception_makes_the_end_forgotten, CRASHES),
    (the_end_comes_before_every_exception, PACE),
    (replies_that_stand_decide_nothing, CROWDED),
    (replies_of_other_workers_decide_nothing, CROWDED),
    (a_reply_of_the_execution_step_decides_the_lock_phase, CROWDED),
    (what_is_left_out_of_an_epoch_is_left_out_of_the_next, PACE),
]


NOTICED_BY: dict[Mutation, int] = {
    verdicts_are_not_waited_for: 1,
    verdicts_of_an_epoch_that_was_formed_anew_hold: 74,
    a_round_with_a_cut_counts: 7,
    replies_that_stand_decide_nothing: 56,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize(("mutation", "pace"), MUTATIONS, ids=[mutation.__name__ for mutation, _ in MUTATIONS])
def test_the_simulator_catches(mutation: Mutation, pace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, pace, cluster=False, first=NOTICED_BY.get(mutation, 0))
