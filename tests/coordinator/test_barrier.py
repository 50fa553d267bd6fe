"""An epoch's barriers: the union when the last report is in, and which failures of a round are final."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.coordinator.barrier import EpochBarriers, PatchRounds, SnapshotDue
from styx.protocol.frames import Failure
from styx.protocol.messages import Commit, Conflicts, Done, LockDecision, LockReport, Validate

GENERATION, EPOCH = 3, 8


def snapshot() -> SnapshotDue:
    """A snapshot is due."""
    return SnapshotDue(hold=True, whole=[4])


def nothing() -> None:
    """No snapshot is due."""


def error(place: int = 0, name: str = "Short") -> Failure:
    """An exception at the `place`-th call of the root."""
    return Failure(bytes([0, place]), bytes([0, place]), False, "aborted", name, "")


def deviation(place: int = 0) -> Failure:
    return Failure(bytes([0, place]), bytes([0, place]), True, "aborted", "", "")


def done(new_max: int = 0, aborted: tuple[int, ...] = (), collided: tuple[int, ...] = ()) -> Done:
    return Done(GENERATION, EPOCH, new_max, list(aborted), list(collided), [], [])


def conflicts(*tids: int) -> Conflicts:
    return Conflicts(GENERATION, EPOCH, list(tids))


def report(number: int, failures: dict[int, Failure]) -> LockReport:
    return LockReport(GENERATION, EPOCH, number, list(failures.items()))


def barriers(workers: int = 2) -> EpochBarriers:
    return EpochBarriers(GENERATION, EPOCH, range(workers))


def locked(collided: tuple[int, ...] = (5,)) -> EpochBarriers:
    """Two workers' barriers with transactions in the lock phase."""
    both = barriers()
    for worker in (0, 1):
        both.take(worker, done(collided=collided if worker == 0 else ()), nothing)
    for worker in (0, 1):
        both.take(worker, conflicts(), nothing)
    return both


def test_barrier_1_waits_for_all_and_passes_the_union_on() -> None:
    both = barriers()
    assert both.take(1, Done(GENERATION, EPOCH, 3, [9], [7], [4], [2]), nothing) is None
    decision = both.take(0, Done(GENERATION, EPOCH, 5, [1], [], [], []), nothing)
    assert decision == Validate(GENERATION, EPOCH, 5, [1, 9], [7], [4], [2])
    assert both.new_max == 5


def test_an_epoch_without_conflicts_ends_with_barrier_2() -> None:
    both = barriers()
    for worker in (0, 1):
        both.take(worker, done(), snapshot)
    assert both.take(0, conflicts(), snapshot) is None
    assert both.take(1, conflicts(), snapshot) == Commit(GENERATION, EPOCH, [], True, True, [4])
    assert both.ended


def test_conflicts_and_collisions_go_to_the_lock_phase_once_each() -> None:
    both = barriers()
    both.take(0, done(collided=(7, 4)), snapshot)
    both.take(1, done(), snapshot)
    both.take(0, conflicts(4, 9), snapshot)
    assert both.take(1, conflicts(9, 2), snapshot) == Commit(GENERATION, EPOCH, [2, 4, 7, 9], snapshot=False)
    assert not both.ended


def test_a_round_without_a_failure_ends_the_epoch() -> None:
    both = locked()
    assert both.take(0, report(0, {}), snapshot) is None
    assert both.take(1, report(0, {}), snapshot) == LockDecision(GENERATION, EPOCH, 0, [], True, True, True, [4])
    assert both.ended


def verdicts(*reports: dict[int, Failure]) -> dict[int, str | None]:
    """What the first round decides: the type of a final exception, None for carried."""
    both = locked()
    decisions = [both.take(worker, report(0, failures), nothing) for worker, failures in enumerate(reports)]
    assert isinstance(decisions[-1], LockDecision)
    assert not both.ended
    return {tid: None if failure is None else failure.type for tid, failure in decisions[-1].excluded}


def test_the_lowest_transactions_exception_is_final() -> None:
    assert verdicts({5: error()}, {}) == {5: "Short"}


def test_a_deviation_is_carried() -> None:
    assert verdicts({5: deviation()}, {}) == {5: None}


def test_what_comes_behind_a_failure_is_carried() -> None:
    assert verdicts({5: error(), 9: error()}, {7: error()}) == {5: "Short", 7: None, 9: None}
    assert verdicts({5: deviation(), 9: error()}, {}) == {5: None, 9: None}


def test_of_one_transactions_failures_the_first_in_serial_order_counts() -> None:
    assert verdicts({5: error(1)}, {5: error(0, "First")}) == {5: "First"}
    assert verdicts({5: error(0)}, {5: deviation(1)}) == {5: "Short"}
    assert verdicts({5: error(1)}, {5: deviation(0)}) == {5: None}, "its exception depends on a call that changed"


def test_a_function_that_ran_too_long_begins_the_lock_phase_anew_and_the_round_is_void() -> None:
    both = locked()
    both.take(0, LockReport(GENERATION, EPOCH, 0, [(5, error())], [9]), nothing)
    decision = both.take(1, LockReport(GENERATION, EPOCH, 0, [], [7, 9]), nothing)
    assert decision == LockDecision(GENERATION, EPOCH, 0, [(7, None), (9, None)], False, False, anew=True)
    assert not both.ended
    both.take(0, report(1, {}), nothing)
    last = both.take(1, report(1, {}), nothing)
    assert isinstance(last, LockDecision)
    assert last.final


def test_rounds_go_on_until_nothing_fails() -> None:
    both = locked()
    for number, failures in enumerate([{5: error()}, {7: error()}, {}]):
        both.take(0, report(number, failures), nothing)
        decision = both.take(1, report(number, {}), nothing)
        assert isinstance(decision, LockDecision)
        assert (decision.round, decision.final) == (number, not failures)


# Rounds with patches -------------------------------------------------------------------------------------------


def patched(number: int, tids: list[int], failures: dict[int, Failure] | None = None, **sent: int) -> LockReport:
    """A report of patches by `tids`, `w0=1` of them for worker 0."""
    to = {int(worker[1:]): count for worker, count in sent.items()}
    return LockReport(GENERATION, EPOCH, number, list((failures or {}).items()), [], tids, to)


def decided(both: EpochBarriers, *reports: LockReport) -> LockDecision:
    decision = [both.take(worker, report, snapshot) for worker, report in enumerate(reports)][-1]
    assert isinstance(decision, LockDecision)
    return decision


def test_a_round_with_patches_is_not_the_last_and_says_how_many_each_worker_gets() -> None:
    both = barriers(3)
    for worker in range(3):
        both.take(worker, done(collided=(5, 7) if worker == 0 else ()), nothing)
    for worker in range(3):
        both.take(worker, conflicts(), nothing)
    first = decided(both, patched(0, [5], w1=2, w2=1), patched(0, [7], w2=4), patched(0, []))
    assert first == LockDecision(GENERATION, EPOCH, 0, [], False, False, awaited={1: 2, 2: 5})
    assert decided(both, *[report(1, {})] * 3).final


def test_patches_between_slots_of_one_worker_count_as_well() -> None:
    decision = decided(locked(), patched(0, [5]), patched(0, []))
    assert (decision.final, decision.awaited) == (False, {})


def test_only_failures_below_all_patches_count() -> None:
    failures = {5: error(), 6: error(), 9: error()}
    assert decided(locked(), patched(0, [], failures), patched(0, [7])).excluded == [(5, error()), (6, None)]
    assert decided(locked(), patched(0, [5], {5: error()}), patched(0, [])).excluded == []


def given_up(reports: list[list[int]], first: int, more: int, times: int = 1) -> list[list[int]]:
    """Who is carried behind each round, of transactions 4 to 9; the reports say who has patched."""
    both = EpochBarriers(GENERATION, EPOCH, range(2), PatchRounds(first, more, times))
    for worker in (0, 1):
        both.take(worker, done(collided=(4, 5, 6, 7, 8, 9) if worker else ()), nothing)
    for worker in (0, 1):
        both.take(worker, conflicts(), nothing)
    found = []
    for number, tids in enumerate(reports):
        decision = decided(both, patched(number, tids[::2]), patched(number, tids[1::2]))
        found.append([tid for tid, failure in decision.excluded if failure is None])
    return found


def test_who_still_patches_is_given_up_together() -> None:
    assert given_up([[5, 7, 8], [5, 8], [9], []], 2, 8) == [[], [5, 8], [], []]


def test_rounds_are_counted_not_transactions() -> None:
    assert given_up([[5], [6], [7], []], 3, 8) == [[], [], [7], []]


def test_what_does_not_come_to_rest_then_is_carried_with_all_above() -> None:
    assert given_up([[5], [6], [7], [7, 9], []], 1, 3) == [[5], [], [], [7, 8, 9], []]
    assert given_up([[9], [8], [7], [6], []], 1, 1) == [[9], [8], [7], [6], []]


def test_while_most_patch_the_rounds_go_on_up_to_a_multiple() -> None:
    most, half = [5, 6, 7, 8], [5, 6, 7]
    assert given_up([most, most, most, most, []], 2, 8, times=2) == [[], [], [], most, []]
    assert given_up([half, half, []], 2, 8, times=2) == [[], half, []]
    assert given_up([most, most, most, [9], []], 2, 8, times=3) == [[], [], [], [], []], "only behind each second round"
    assert given_up([most, most, [9], [9], [9], [9], []], 2, 8, times=4) == [[]] * 5 + [[9], []]


def test_while_one_comes_to_rest_for_each_two_rounds_the_rounds_go_on() -> None:
    assert given_up([[5, 6], [5, 6], [6], [6], [6], []], 4, 8, times=2) == [[], [], [], [], [], []]
    assert given_up([[5, 6], [5, 6], [5, 6], [5, 6], []], 4, 8, times=2) == [[], [], [], [5, 6], []], "nobody has"
    falls = [[5, 6, 7], [5, 6, 7], [7], [7], [7], [7], [7], [7], []]
    assert given_up(falls, 4, 8, times=3) == [[]] * 7 + [[7], []], "only as long as they do"
    assert given_up([*falls[:4], []], 4, 8, times=1) == [[], [], [], [7], []], "up to a multiple"
    slow = [[5, 6, 7]] * 4 + [[6, 7]] * 4 + [[]]
    assert given_up(slow, 8, 8, times=2) == [[]] * 7 + [[6, 7], []], "one in four rounds is too slow"


def _most_only(self: EpochBarriers, moving: set[int]) -> bool:
    return 2 * len(moving) > len(self._left())


def _if_any_has_come_to_rest(self: EpochBarriers, moving: set[int]) -> bool:
    return _most_only(self, moving) or len(moving) < self._moving_halfway


def _whoever_moves(self: EpochBarriers, moving: set[int]) -> bool:
    return True


def _never(self: EpochBarriers, moving: set[int]) -> bool:
    return False


def _since_the_beginning(self: EpochBarriers, moving: set[int]) -> bool:
    self._moving_halfway = len(self._locked)
    return original(self, moving)


original = EpochBarriers._is_worth_going_on


@pytest.mark.parametrize("broken", [_most_only, _if_any_has_come_to_rest, _whoever_moves, _never, _since_the_beginning])
def test_the_rule_fails_if_it_is_broken(
    broken: Callable[[EpochBarriers, set[int]], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EpochBarriers, "_is_worth_going_on", broken)
    with pytest.raises(AssertionError):
        test_while_one_comes_to_rest_for_each_two_rounds_the_rounds_go_on()


def test_who_patches_in_every_other_round_counts_among_them() -> None:
    assert given_up([[5, 6], [7, 8], [5, 6], [7, 8], []], 2, 8, times=2) == [[], [], [], [7, 8], []]
    assert given_up([[5, 6], [7], [5, 6], []], 2, 8, times=2) == [[], [7], [], []]


def test_who_is_excluded_is_not_among_them() -> None:
    both = EpochBarriers(GENERATION, EPOCH, range(2), PatchRounds(2, 8, 2))
    for worker in (0, 1):
        both.take(worker, done(collided=(4, 5, 6, 7) if worker else ()), nothing)
    for worker in (0, 1):
        both.take(worker, conflicts(), nothing)
    assert decided(both, patched(0, [6, 7], {4: error(), 5: error()}), patched(0, [])).excluded == [
        (4, error()),
        (5, None),
    ]
    assert decided(both, patched(1, [6, 7]), patched(1, [])).excluded == []


def test_a_lock_phase_that_begins_anew_has_all_its_rounds_again() -> None:
    both = EpochBarriers(GENERATION, EPOCH, range(2), PatchRounds(2, 1, 1))
    for worker in (0, 1):
        both.take(worker, done(collided=(5, 7, 9) if worker else ()), nothing)
    for worker in (0, 1):
        both.take(worker, conflicts(), nothing)
    decided(both, patched(0, [5]), patched(0, []))
    decided(both, LockReport(GENERATION, EPOCH, 1, [], [9]), patched(1, [5]))
    assert decided(both, patched(2, [5]), patched(2, [])).excluded == []
    assert decided(both, patched(3, [5]), patched(3, [])).excluded == [(5, None)]


def test_in_a_replay_who_was_cut_in_the_first_run_is_not_among_those_left() -> None:
    def run(unlocked: list[int]) -> EpochBarriers:
        both = EpochBarriers(GENERATION, EPOCH, range(2), PatchRounds(1, 8, 2))
        for worker in (0, 1):
            both.take(worker, done(collided=(5, 9) if worker else ()), nothing)
        both.take(0, conflicts(), nothing)
        commit = both.take(1, Conflicts(GENERATION, EPOCH, [], unlocked), nothing)
        assert isinstance(commit, Commit)
        assert commit.locked == [5, 9], "the lock phase carries both"
        return both

    first, replay = run([]), run([9])
    decided(first, LockReport(GENERATION, EPOCH, 0, [], [9]), report(0, {}))
    assert decided(first, patched(1, [5]), patched(1, [])).excluded == []
    assert decided(replay, patched(0, [5]), patched(0, [])).excluded == []


# What can only be a bug ----------------------------------------------------------------------------------------


def test_strangers_old_rounds_and_late_reports_are_refused() -> None:
    with pytest.raises(AssertionError):
        barriers().take(2, done(), nothing)
    with pytest.raises(AssertionError):
        locked().take(0, report(1, {}), nothing)
    one = barriers(1)
    one.take(0, done(), nothing)
    one.take(0, conflicts(), nothing)
    with pytest.raises(AssertionError):
        one.take(0, conflicts(), nothing)


@given(st.permutations(range(4)), st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_the_order_of_reports_decides_nothing(order: list[int], aborted: list[int]) -> None:
    four = barriers(4)
    decisions = [four.take(worker, done(worker, (aborted[worker],)), nothing) for worker in order]
    assert decisions[:-1] == [None] * 3
    assert decisions[-1] == Validate(GENERATION, EPOCH, 3, sorted(aborted), [], [], [])
