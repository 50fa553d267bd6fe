"""Mutation proof of the patch rounds: each of their rules, broken on purpose, is caught by the simulator.

Requests whose numbers travel make the patches; a number may also decide whether a call waits for its result. A rule
about placement is caught where the log is replayed on other numbers of workers.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proof.random_requests import CONTENDED
from proof.simulation import SimulationFailure, random_plan, replay_elsewhere, simulate
from styx.coordinator import barrier
from styx.protocol.frames import Patch
from styx.worker import call_graph, lock_phase, lock_rounds, rerun
from styx.worker.changed_entries import ChangedEntries
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught, refuse_crash

pytestmark = plain_form


def patches_take_effect_a_round_late(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.decided

    def decided(self: Any, decision: Any) -> None:
        late = self.__dict__.pop("late", [])
        self.late = self._incoming.pop(decision.round, [])
        self._incoming[decision.round] = late
        original(self, decision)

    patch.setattr(lock_rounds.LockRounds, "decided", decided)


def one_patch_is_lost(patch: pytest.MonkeyPatch) -> None:
    original = lock_phase.SlotLockPhase.next_round

    def next_round(self: Any, number: int, excluded: Any, patches: Any) -> None:
        original(self, number, excluded, list(patches)[1:])

    patch.setattr(lock_phase.SlotLockPhase, "next_round", next_round)


def a_round_begins_without_its_patches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lock_rounds.LockRounds, "has_arrived", lambda self, number, count: True)


def a_patch_that_arrives_counts_twice(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.arrive

    def arrive(self: Any, message: Patch) -> None:
        original(self, message)
        self._arrived[message.round] += 1

    patch.setattr(lock_rounds.LockRounds, "arrive", arrive)


def an_exception_counts_behind_a_patch(patch: pytest.MonkeyPatch) -> None:
    original = barrier._verdicts
    patch.setattr(barrier, "_verdicts", lambda failed, patched: original(failed, set()))


def a_round_with_patches_can_be_the_last(patch: pytest.MonkeyPatch) -> None:
    original = barrier.EpochBarriers._lock_round

    def lock_round(self: Any, due: Any) -> Any:
        for report in self._reports.values():
            report.patched = []
        return original(self, due)

    patch.setattr(barrier.EpochBarriers, "_lock_round", lock_round)


def what_was_given_before_is_not_given_again(patch: pytest.MonkeyPatch) -> None:
    original = call_graph.CallGraph.apply

    def apply(self: Any, message: Patch) -> None:
        given = dict(self._given)
        original(self, message)
        self._given = given

    patch.setattr(call_graph.CallGraph, "apply", apply)


def a_result_of_another_call_is_kept(patch: pytest.MonkeyPatch) -> None:
    what_was_given_before_is_not_given_again(patch)

    def result(self: Any, path: bytes, call: Any) -> Any:
        return self.kept.get(path)

    original = call_graph.CallGraph.__init__

    def init(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self.kept = self.results = _Kept(self.results)

    patch.setattr(call_graph.CallGraph, "__init__", init)
    patch.setattr(call_graph.CallGraph, "result", result)


class _Kept(dict[bytes, bytes]):
    def pop(self, *arguments: Any) -> Any:
        return None


def a_call_that_is_gone_is_not_withdrawn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(call_graph.CallGraph, "_withdraw", lambda self, found, path, before: None)


def a_call_withdrawn_is_any_slots(patch: pytest.MonkeyPatch) -> None:
    original = call_graph.CallGraph.apply

    def apply(self: Any, message: Patch) -> None:
        if message.call is None and message.result is None:
            self._entries.pop(message.path, None)
        else:
            original(self, message)

    patch.setattr(call_graph.CallGraph, "apply", apply)


def the_call_of_the_execution_step_stays(patch: pytest.MonkeyPatch) -> None:
    original = call_graph.CallGraph.apply
    patch.setattr(call_graph.CallGraph, "apply", lambda self, each: original(self, replace(each, cached=False)))


def a_call_that_is_waited_for_is_not_sent(patch: pytest.MonkeyPatch) -> None:
    original = rerun.Rerun.run

    def run(self: Any) -> Any:
        failure = original(self)
        if self.waits:
            self.made = {p: c for p, c in self.made.items() if not c.call.synchronous or self._graph.sent(p) == c}
        return failure

    patch.setattr(rerun.Rerun, "run", run)


def a_part_that_waits_says_that_it_makes_nothing_more(patch: pytest.MonkeyPatch) -> None:
    """What it has said before stays, although the run has shown that it is gone."""
    original = call_graph.CallGraph.ran

    def ran(self: Any, number: int, made: Any, given: Any, stopped: Any) -> Any:
        return original(self, number, made, given, None if stopped is None else (b"", b""))

    patch.setattr(call_graph.CallGraph, "ran", ran)


def a_call_within_a_wait_is_left_for_later(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rerun, "_LAST_STEP", b"")


def who_is_given_up_comes_back_by_a_patch(patch: pytest.MonkeyPatch) -> None:
    original = lock_phase.SlotLockPhase.next_round

    def next_round(self: Any, number: int, excluded: Any, patches: Any) -> None:
        here = {footprint.tid for footprint in self._queue}
        new = [each for each in patches if each.tid in excluded and each.tid not in here and each.call is not None]
        original(self, number, excluded, [each for each in patches if each not in new])
        if new:
            self._next = min(self._next, *map(self._apply, new))

    patch.setattr(lock_phase.SlotLockPhase, "next_round", next_round)


def who_is_given_up_keeps_its_writes_on_one_slot(patch: pytest.MonkeyPatch) -> None:
    original = lock_phase.SlotLockPhase._exclude

    def exclude(self: Any, excluded: Any) -> int:
        if self._slot.index:
            return original(self, excluded)
        for footprint in self._queue:
            if excluded.get(footprint.tid, 0) is None:
                self._excluded.add(footprint.tid)
        return original(self, excluded)

    patch.setattr(lock_phase.SlotLockPhase, "_exclude", exclude)


def a_part_may_call_without_end_in_the_lock_phase(patch: pytest.MonkeyPatch) -> None:
    original = call_graph.CallGraph.__init__

    def init(self: Any, footprint: Any, growth: int) -> None:
        original(self, footprint, 10_000)

    patch.setattr(call_graph.CallGraph, "__init__", init)


def a_patch_of_a_void_round_counts(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.decided

    def decided(self: Any, decision: Any) -> None:
        void = self._incoming.get(decision.round, []) if decision.anew else []
        original(self, decision)
        if void:
            self._incoming.setdefault(self.number, []).extend(void)

    patch.setattr(lock_rounds.LockRounds, "decided", decided)


def a_part_runs_again_only_if_it_is_patched(patch: pytest.MonkeyPatch) -> None:
    original = lock_phase.SlotLockPhase._would_read_the_same

    def same(self: Any, footprint: Any) -> bool:
        changed, self._changed = self._changed, ChangedEntries({})
        found = original(self, footprint)
        self._changed = changed
        return found

    patch.setattr(lock_phase.SlotLockPhase, "_would_read_the_same", same)


def what_is_no_longer_written_has_not_changed(patch: pytest.MonkeyPatch) -> None:
    original = ChangedEntries.compare
    patch.setattr(ChangedEntries, "compare", lambda self, was, now: original(self, {}, now))


def what_the_excluded_wrote_has_not_changed(patch: pytest.MonkeyPatch) -> None:
    original = lock_phase.SlotLockPhase._exclude

    def exclude(self: Any, excluded: Any) -> int:
        start = original(self, excluded)
        self._left = {}
        return start

    patch.setattr(lock_phase.SlotLockPhase, "_exclude", exclude)


def what_the_failed_wrote_stays_when_they_are_excluded(patch: pytest.MonkeyPatch) -> None:
    exclude = lock_phase.SlotLockPhase._exclude

    def without_rolling_back(self: Any, excluded: Any) -> int:
        failed = {tid for tid in excluded if (outcome := self.outcomes.get(tid)) is not None and outcome.failure}
        start: int = exclude(self, set(excluded) - failed)
        self._excluded.update(failed)
        return start

    patch.setattr(lock_phase.SlotLockPhase, "_exclude", without_rolling_back)


def what_has_failed_on_its_only_slot_leaves_writes(patch: pytest.MonkeyPatch) -> None:
    run_in_general = lock_phase.SlotLockPhase._run_in_general

    def in_general(self: Any, footprint: Any) -> lock_phase.Outcome:
        spread = footprint.tid in self._spread
        self._spread.add(footprint.tid)
        outcome: lock_phase.Outcome = run_in_general(self, footprint)
        if not spread:
            self._spread.discard(footprint.tid)
        return outcome

    patch.setattr(lock_phase.SlotLockPhase, "_run_in_general", in_general)


def a_guess_outlives_its_synchronous_call(patch: pytest.MonkeyPatch) -> None:
    """A call that has become asynchronous gets no result, which would end the guess."""
    original = call_graph.CallGraph.ran

    def ran(self: Any, number: int, made: Any, given: Any, stopped: Any) -> Any:
        guessed = {path for path in self._guessed if path in made and not made[path].call.synchronous}
        found = original(self, number, made, given, stopped)
        self._guessed |= guessed
        return found

    patch.setattr(call_graph.CallGraph, "ran", ran)


TRAVELS: dict[str, Any] = {"travels": 0.8}
CROWDED: dict[str, Any] = {
    "odd": 0.0,
    "travels": 1.0,
    "requests": 60,
    "bursts": 1,
    "slots": 4,
    "workers": 2,
    "profile": CONTENDED,
    "epoch_transactions_max": 1000,
    "epoch_result_bytes_max": 2**23,
    "invocations_max": 10_000,
    "patch_rounds": (16, 8, 8),
    "faults": (),
    **dict.fromkeys(("locals", "looks", "loads", "reads", "spins", "externals", "hidden_errors", "halts"), 0.0),
}
"""Lock phases of many transactions that travel between few entities, and of nothing else."""
ODD = {**CROWDED, "odd": 1.0}
MUTATIONS: dict[Mutation, dict[str, Any]] = {
    patches_take_effect_a_round_late: {},
    one_patch_is_lost: {},
    a_round_begins_without_its_patches: {"workers": 3},
    a_patch_that_arrives_counts_twice: {"workers": 3},
    an_exception_counts_behind_a_patch: {},
    a_round_with_patches_can_be_the_last: {},
    what_was_given_before_is_not_given_again: {},
    a_result_of_another_call_is_kept: {},
    a_call_that_is_gone_is_not_withdrawn: {},
    a_call_withdrawn_is_any_slots: {},
    the_call_of_the_execution_step_stays: {},
    a_call_that_is_waited_for_is_not_sent: {},
    a_part_that_waits_says_that_it_makes_nothing_more: CROWDED,
    a_call_within_a_wait_is_left_for_later: CROWDED,
    who_is_given_up_comes_back_by_a_patch: {"patch_rounds": (1, 1, 1)},
    who_is_given_up_keeps_its_writes_on_one_slot: {"patch_rounds": (1, 1, 1)},
    a_part_may_call_without_end_in_the_lock_phase: {**CROWDED, "invocations_max": 10, "call_bytes": 0},
    a_patch_of_a_void_round_counts: {**CROWDED, "spins": 0.4},
    a_part_runs_again_only_if_it_is_patched: {},
    what_is_no_longer_written_has_not_changed: CROWDED,
    what_the_excluded_wrote_has_not_changed: {"patch_rounds": (1, 1, 1)},
    what_the_failed_wrote_stays_when_they_are_excluded: {},
    what_has_failed_on_its_only_slot_leaves_writes: {},
    a_guess_outlives_its_synchronous_call: ODD,
}
"""With what a plan needs to catch it often."""
NOTICED_BY: dict[Mutation, int] = {
    patches_take_effect_a_round_late: 4,
    one_patch_is_lost: 4,
    a_round_begins_without_its_patches: 6,
    a_patch_that_arrives_counts_twice: 12,
    an_exception_counts_behind_a_patch: 3,
    what_was_given_before_is_not_given_again: 3,
    a_result_of_another_call_is_kept: 3,
    a_call_that_is_gone_is_not_withdrawn: 3,
    a_call_withdrawn_is_any_slots: 12,
    the_call_of_the_execution_step_stays: 4,
    a_call_that_is_waited_for_is_not_sent: 6,
    a_part_that_waits_says_that_it_makes_nothing_more: 0,
    a_call_within_a_wait_is_left_for_later: 2,
    who_is_given_up_comes_back_by_a_patch: 5,
    a_patch_of_a_void_round_counts: 2,
    a_part_may_call_without_end_in_the_lock_phase: 13,
    a_guess_outlives_its_synchronous_call: 33,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, TRAVELS | MUTATIONS[mutation], cluster=False, first=NOTICED_BY.get(mutation, 0))


# Rules about placement -----------------------------------------------------------------------------------------


def rounds_count_where_workers_patch_each_other(patch: pytest.MonkeyPatch) -> None:
    original = barrier.EpochBarriers._given_up

    def given_up(self: Any, patched: set[int]) -> set[int]:
        return original(self, patched) if self._across else set()

    lock_round = barrier.EpochBarriers._lock_round

    def across(self: Any, due: Any) -> Any:
        self._across = any(report.sent for report in self._reports.values())
        return lock_round(self, due)

    patch.setattr(barrier.EpochBarriers, "_given_up", given_up)
    patch.setattr(barrier.EpochBarriers, "_lock_round", across)


def rounds_go_on_where_workers_patch_each_other(patch: pytest.MonkeyPatch) -> None:
    """They are worth it only if a patch went to another worker."""
    report = barrier.EpochBarriers._lock_round

    def lock_round(self: Any, due: Any) -> Any:
        self._across = any(each.sent for each in self._reports.values())
        return report(self, due)

    worth = barrier.EpochBarriers._is_worth_going_on
    patch.setattr(barrier.EpochBarriers, "_lock_round", lock_round)
    patch.setattr(
        barrier.EpochBarriers, "_is_worth_going_on", lambda self, moving: self._across and worth(self, moving)
    )


def who_patches_another_worker_is_given_up(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds._collect

    def collect(self: Any) -> None:
        original(self)
        across = sorted({each.tid for each in self.outgoing})
        self.patched = across or self.patched

    patch.setattr(lock_rounds.LockRounds, "_collect", collect)


def a_patch_takes_effect_at_once_on_its_own_worker(patch: pytest.MonkeyPatch) -> None:
    """The slots of a worker that come later in a round see what the earlier ones have found in it."""
    original = lock_rounds.LockRounds.run

    def run(self: Any, invocations: int) -> bool:
        for lock in self._locks.values():
            invocations = lock.run(invocations)
            if not lock.done:
                return False
            here = [each for each in lock.patches if each.slot in self._locks and each.slot > lock._slot.index]
            for each in here:
                lock.patches.remove(each)
                later = self._locks[each.slot]
                index = later._apply(each) if each.tid not in later._excluded else later._next
                later._next = min(later._next, index)
        return original(self, invocations)

    patch.setattr(lock_rounds.LockRounds, "run", run)


PLACED: dict[Mutation, int] = {
    rounds_count_where_workers_patch_each_other: 0,
    rounds_go_on_where_workers_patch_each_other: 0,
    who_patches_another_worker_is_given_up: 3,
    a_patch_takes_effect_at_once_on_its_own_worker: 3,
}
"""With the seed that is tried first."""
PLACED_SEEDS_MAX = 60


@pytest.mark.slow
@pytest.mark.parametrize("mutation", PLACED, ids=lambda mutation: mutation.__name__)
def test_a_replay_elsewhere_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    for seed in dict.fromkeys((PLACED[mutation], *range(PLACED_SEEDS_MAX))):
        if differs_elsewhere(seed, mutation):
            return
    pytest.fail(f"{PLACED_SEEDS_MAX} seeds did not notice: {mutation.__name__}")


def differs_elsewhere(seed: int, mutation: Mutation) -> bool:
    """Whether the log of a seed gives another history on another number of workers."""
    rounds = (1, 1, 2) if mutation is rounds_go_on_where_workers_patch_each_other else (1, 1, 1)
    plan = replace(random_plan(seed, faults=False), travels=1.0, patch_rounds=rounds, workers=2, spins=0.0)
    try:
        report = simulate(plan, keep_log=True)
        expected = sorted(report.replies, key=lambda reply: reply.sequence)
        return any(
            replay_elsewhere(report, workers=workers, arrival=seed) != (expected, report.state_hash)
            for workers in (1, 3)
        )
    except SimulationFailure as failure:
        refuse_crash(mutation, failure)
        return True
    except AssertionError:
        return True
