"""Each rule of the patch rounds, broken on purpose in the model: the seed beside it notices.

There is no mutation in which a part does not wait but goes on with any number: such a number is a guess like others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import pytest

from proof.models import lock_phase, patch_rounds, patches
from proof.models.execution_step import Execution
from proof.models.history import Difference, Plan, check, random_plan
from proof.models.lock_phase import Message, Shape, SlotRounds, Worker
from proof.models.part import At, Part, PartRun
from proof.models.patch_rounds import Cap, Coordinator, Decision, Report
from proof.models.patches import Patch
from proof.models.programs import Call, Program
from proof.models.runner import Failed, Place

Patcher = pytest.MonkeyPatch
_LEAVES: Final = (("call", "async", ("at", 0), ()),)


def _decide(patcher: Patcher, change: Callable[[Coordinator, list[Report]], tuple[list[Report], Any]]) -> None:
    original = Coordinator.decide

    def decide(self: Coordinator, reports: list[Report]) -> Decision:
        reports, changes = change(self, reports)
        return original(self, reports)._replace(**changes)

    patcher.setattr(Coordinator, "decide", decide)


def a_patch_comes_late(patcher: Patcher) -> None:
    _decide(patcher, lambda _, reports: (reports, {"due": {}}))
    original = Worker.take
    patcher.setattr(
        Worker, "take", lambda self, message: original(self, message._replace(round=max(message.round, self.round)))
    )


def a_patch_is_lost(patcher: Patcher) -> None:
    original = SlotRounds.apply
    patcher.setattr(SlotRounds, "apply", lambda self, told: original(self, sorted(told, key=str)[:7]))


def a_patch_is_doubled(patcher: Patcher) -> None:
    original = Worker.run

    def run(self: Worker, cut: Collection[int]) -> tuple[list[Message], Report]:
        messages, report = original(self, cut)
        return messages[:1] + messages, report

    patcher.setattr(Worker, "run", run)


def a_withdrawn_call_is_kept(patcher: Patcher) -> None:
    original = patches.apply
    patcher.setattr(lock_phase, "apply", lambda parts, growths, told: original(parts, growths, _not_gone(told)))


def _not_gone(told: Iterable[Patch]) -> list[Patch]:
    return [patch for patch in told if patch.call is not None or patch.result is not None]


def a_stale_result_is_kept(patcher: Patcher) -> None:
    original = patches.apply

    def apply(parts: dict[int, Part], growths: Mapping[int, int], told: Iterable[Patch]) -> None:
        known = [p for p in told if p.result is None or p.tid not in parts or p.path not in parts[p.tid].results]
        original(parts, growths, known)

    patcher.setattr(lock_phase, "apply", apply)


class _Remembering(dict[At, int]):
    def pop(self, key: At, *default: Any) -> Any:
        return self.get(key, *default)


def a_result_counts_as_given_after_its_entry_has_gone(patcher: Patcher) -> None:
    original = Part.__init__

    def init(self: Part, *arguments: Any, **fields: Any) -> None:
        original(self, *arguments, **fields)
        self.given = _Remembering(self.given)

    patcher.setattr(Part, "__init__", init)


def an_entry_is_known_by_its_path_alone(patcher: Patcher) -> None:
    original = patches.apply

    def apply(parts: dict[int, Part], growths: Mapping[int, int], told: Iterable[Patch]) -> None:
        for patch in told:
            entries = parts[patch.tid].entries if patch.tid in parts else {}
            if patch.result is None:
                others = [at for at in entries if at.path == patch.path and at.caller != patch.sender]
                if patch.call is not None or At(patch.path, patch.sender) not in entries:
                    for at in others:
                        del entries[at]
            if patch.result is not None or patch.call is not None or At(patch.path, patch.sender) in entries:
                original(parts, growths, [patch])

    patcher.setattr(lock_phase, "apply", apply)


def a_stopped_part_leaves_everything_standing(patcher: Patcher) -> None:
    patcher.setattr(PartRun, "reached", lambda self, place: self.stop is None)


def an_exception_is_final_beside_patches(patcher: Patcher) -> None:
    original = patch_rounds.verdicts
    patcher.setattr(patch_rounds, "verdicts", lambda failures, patched: original(failures, frozenset()))


def an_exception_is_final_beside_its_own_patch(patcher: Patcher) -> None:
    original = patch_rounds.verdicts

    def verdicts(failures: dict[int, Failed], patched: frozenset[int]) -> dict[int, Failed | None]:
        return original(failures, patched - {min(failures, default=-1)})

    patcher.setattr(patch_rounds, "verdicts", verdicts)


def every_settled_exception_is_final(patcher: Patcher) -> None:
    original = patch_rounds.verdicts

    def verdicts(failures: dict[int, Failed], patched: frozenset[int]) -> dict[int, Failed | None]:
        found = original(failures, patched)
        return {tid: None if failures[tid].limit else failures[tid] for tid in found}

    patcher.setattr(patch_rounds, "verdicts", verdicts)


def any_failure_of_a_transaction_counts(patcher: Patcher) -> None:
    def lowest_failures(reports: list[Report]) -> dict[int, Failed]:
        return {tid: failure for report in reports for tid, failure in reversed(report.failures)}

    patcher.setattr(patch_rounds, "lowest_failures", lowest_failures)


def a_call_above_the_allowance_is_final(patcher: Patcher) -> None:
    def init(self: Failed, place: Place, message: str, limit: bool = False) -> None:
        Exception.__init__(self, message)
        self.place, self.message, self.limit = place, message, False

    patcher.setattr(Failed, "__init__", init)


def the_allowance_grows_in_each_round(patcher: Patcher) -> None:
    original = SlotRounds.run

    def run(self: SlotRounds) -> list[Patch]:
        found = original(self)
        for tid, ran in self.runs.items():
            grown = self.parts[tid]
            made = sum(map(len, ran._made.values())) + self._locked.growths[tid]
            grown.allowance = max(grown.allowance, made)
        return found

    patcher.setattr(SlotRounds, "run", run)


def the_cap_is_counted_by_worker(patcher: Patcher) -> None:
    def change(coordinator: Coordinator, reports: list[Report]) -> tuple[list[Report], dict[str, Any]]:
        coordinator.patched_rounds += max(0, sum(bool(report.patched) for report in reports) - 1)
        return reports, {}

    _decide(patcher, change)


def given_up_on_one_slot_only(patcher: Patcher) -> None:
    original = SlotRounds.exclude

    def exclude(self: SlotRounds, tids: Collection[int]) -> None:
        original(self, [tid for tid in tids if self._locked.roots[tid] == self._slot])

    patcher.setattr(SlotRounds, "exclude", exclude)


def given_up_one_at_a_time_by_chance(patcher: Patcher) -> None:
    original = Coordinator._given_up

    def given_up(self: Coordinator, patched: frozenset[int], excluded: Mapping[int, Failed | None]) -> Iterable[int]:
        return [*original(self, patched, excluded)][:1]

    patcher.setattr(Coordinator, "_given_up", given_up)


def who_collided_and_raised_is_aborted_at_once(patcher: Patcher) -> None:
    patcher.setattr(Execution, "leaves", property(lambda self: self.overflow))


def a_phase_that_begins_anew_keeps_its_patches(patcher: Patcher) -> None:
    original = SlotRounds.begin

    def begin(self: SlotRounds, cut: Collection[int]) -> None:
        if not hasattr(self, "parts"):
            original(self, cut)
        self._without.update(cut)

    patcher.setattr(SlotRounds, "begin", begin)


def the_cap_counts_on_in_a_phase_that_begins_anew(patcher: Patcher) -> None:
    original = Coordinator.decide

    def decide(self: Coordinator, reports: list[Report]) -> Decision:
        before = self.patched_rounds
        decision = original(self, reports)
        if decision.anew:
            self.patched_rounds = before + 1
        return decision

    patcher.setattr(Coordinator, "decide", decide)


CAUGHT_BY: Final[dict[Callable[[Patcher], None], int]] = {
    a_patch_comes_late: 4,
    a_patch_is_lost: 6,
    a_patch_is_doubled: 4,
    a_withdrawn_call_is_kept: 7,
    a_stale_result_is_kept: 4,
    a_result_counts_as_given_after_its_entry_has_gone: 271,
    an_entry_is_known_by_its_path_alone: 6,
    a_stopped_part_leaves_everything_standing: 100,
    an_exception_is_final_beside_patches: 3,
    an_exception_is_final_beside_its_own_patch: 29,
    every_settled_exception_is_final: 169,
    any_failure_of_a_transaction_counts: 26,
    a_call_above_the_allowance_is_final: 19,
    the_cap_is_counted_by_worker: 4,
    given_up_on_one_slot_only: 0,
    given_up_one_at_a_time_by_chance: 1,
    who_collided_and_raised_is_aborted_at_once: 53,
    a_phase_that_begins_anew_keeps_its_patches: 1,
    the_cap_counts_on_in_a_phase_that_begins_anew: 33,
}


@pytest.mark.parametrize("mutation", CAUGHT_BY, ids=lambda mutation: mutation.__name__)
def test_the_seed_notices(mutation: Callable[[Patcher], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = random_plan(CAUGHT_BY[mutation])
    check(plan)
    mutation(monkeypatch)
    with pytest.raises((Difference, AssertionError)):
        check(plan)


def test_an_allowance_that_grows_in_each_round_lets_too_many_calls_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # In the execution step the entities hold 0, and nothing is called. In the lock phase each round reaches one call
    # further, on the other slot.
    program: Program = (("read",),)
    for level in range(8):
        program = (("read",), ("if", 1, (), (("call", "async", ("at", 3 - level % 2), program), *_LEAVES)))
    batch = [Call(key, (("add", 1),), 0, 0, False) for key in (2, 3)] + [Call(3, program, 0, 0, False)]
    plan = Plan(0, Shape(2, 4, 12), Cap(), [batch], {}, 0.0)
    check(plan)
    the_allowance_grows_in_each_round(monkeypatch)
    with pytest.raises(Difference, match="too many calls"):
        check(plan)
