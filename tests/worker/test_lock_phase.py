"""One slot's lock phase: in TID order on current state, and back to just before what has failed."""

from __future__ import annotations

from styx.worker.invocation import Running
from styx.worker.lock_phase import SlotLockPhase
from tests.worker.execution import OPERATOR, Execution

EVERYTHING = 10**9
TRANSFER = "need 30; add -30; send b1 (add 30)"


def locked(
    transactions: dict[int, tuple[str, str]], state: dict[str, int], slot: int = 0
) -> tuple[Execution, SlotLockPhase]:
    """All of them executed on `state`, then in the lock phase of one slot; the first round is over."""
    execution = Execution(2, state)
    execution.run(transactions)
    lock = SlotLockPhase(execution.slots[slot], transactions.keys(), (), Running())
    lock.run(EVERYTHING)
    return execution, lock


def failed(lock: SlotLockPhase) -> list[tuple[int, str]]:
    """(TID, type of exception, or `deviation`)."""
    return [(tid, "deviation" if failure.deviation else failure.type) for tid, failure in lock.failures()]


def test_transactions_run_in_tid_order_whatever_order_they_arrived_in() -> None:
    execution, lock = locked({5: ("a0", "put 5"), 3: ("a0", "add 1"), 4: ("a0", "add 10")}, {"a0": 100})
    assert [lock.outcomes[tid].result for tid in (3, 4, 5)] == [b"\x65", b"\x6f", b"\x05"]
    lock.commit()
    assert execution.numbers()["a0"] == 5


def test_nothing_is_changed_before_the_commit() -> None:
    execution, _ = locked({1: ("a0", "add 1")}, {"a0": 1})
    assert execution.numbers() == {"a0": 1}


def test_only_the_conflicting_take_part() -> None:
    execution = Execution(1, {"a0": 1})
    execution.run({1: ("a0", "add 1"), 2: ("a0", "add 1"), 3: ("a0", "add 1")})
    lock = SlotLockPhase(execution.slots[0], {2}, (), Running())
    lock.run(EVERYTHING)
    assert lock.outcomes.keys() == {2}


def test_a_failure_on_one_slot_alone_is_no_news_for_others() -> None:
    _, lock = locked({1: ("a0", "add -30"), 2: ("a0", "need 30; add -30"), 3: ("a0", "add 1")}, {"a0": 50})
    assert failed(lock) == []
    assert lock.outcomes[2].failure is not None
    assert lock.outcomes[3].result == b"\x15", "what has failed has left no trace"


def test_a_failure_that_other_slots_take_part_in_is_reported() -> None:
    _, lock = locked({1: ("a0", "add -30"), 2: ("a0", TRANSFER)}, {"a0": 50})
    assert failed(lock) == [(2, "Short")]


def test_a_transaction_that_is_out_is_rolled_back_with_what_came_of_it() -> None:
    # On slot 1, 2's credit went well, and 3 took from it; 2 failed elsewhere.
    transactions = {2: ("a0", TRANSFER), 3: ("a0", "send b1 (need 40; add -40)"), 4: ("b1", "add 1")}
    execution, lock = locked(transactions, {"a0": 50, "b1": 40}, slot=1)
    assert failed(lock) == []
    lock.next_round(1, {2}, ())
    lock.run(EVERYTHING)
    assert failed(lock) == []
    lock.commit()
    assert execution.numbers()["b1"] == 1


def test_a_rollback_can_make_others_fail() -> None:
    state = {"a0": 50, "b1": 40}
    transactions = {1: ("b1", "add -30"), 2: ("a0", TRANSFER), 3: ("a0", "send b1 (need 40; add -40)")}
    execution, lock = locked(transactions, state, slot=1)
    assert failed(lock) == []
    lock.next_round(1, {2}, ())
    lock.run(EVERYTHING)
    assert failed(lock) == [(3, "Short")]
    lock.next_round(1, {2, 3}, ())
    lock.run(EVERYTHING)
    assert failed(lock) == []
    lock.commit()
    assert execution.numbers()["b1"] == 10


def test_what_lies_before_the_lowest_failure_is_not_run_again() -> None:
    execution, lock = locked(dict.fromkeys((1, 2, 3, 4), ("a0", "add 1; send b1 (add 1)")), {"a0": 0, "b1": 0})
    before = dict(lock.outcomes)
    lock.next_round(1, {3}, ())
    lock.run(EVERYTHING)
    assert [lock.outcomes[tid] is before[tid] for tid in (1, 2, 4)] == [True, True, False]
    lock.commit()
    assert execution.numbers()["a0"] == 3


def test_one_that_failed_here_is_left_out_without_another_run() -> None:
    _, lock = locked({1: ("a0", "add -30"), 2: ("a0", TRANSFER), 3: ("a0", "add 1")}, {"a0": 50})
    before = dict(lock.outcomes)
    lock.next_round(1, {2}, ())
    lock.run(EVERYTHING)
    assert all(lock.outcomes[tid] is before[tid] for tid in (1, 2, 3))
    assert failed(lock) == []


def test_the_same_verdicts_again_change_nothing() -> None:
    execution, lock = locked(dict.fromkeys((1, 2), ("a0", "add 1; send b1 (add 1)")), {"a0": 0})
    lock.next_round(1, {1}, ())
    lock.run(EVERYTHING)
    before = dict(lock.outcomes)
    lock.next_round(1, {1}, ())
    lock.run(EVERYTHING)
    assert lock.outcomes == before
    lock.commit()
    assert execution.numbers()["a0"] == 1


def test_a_slot_that_an_excluded_transaction_never_touched_runs_nothing() -> None:
    _, lock = locked({1: ("a0", "add 1; send b1 (add 1)")}, {}, slot=0)
    before = dict(lock.outcomes)
    lock.next_round(1, {99}, ())
    lock.run(EVERYTHING)
    assert lock.outcomes[1] is before[1]


def test_a_deletion_by_a_lower_one_is_seen() -> None:
    execution, lock = locked({1: ("a0", "delete"), 2: ("a0", "add 1")}, {"a0": 50})
    assert lock.outcomes[2].result == b"\x01"
    lock.commit()
    assert execution.slots[0].state.take_delta()[OPERATOR]["a0"] == b"\x01"


def test_a_round_runs_in_slices_and_ends_the_same() -> None:
    transactions = dict.fromkeys(range(1, 9), ("a0", "need 3; add -3"))
    execution, whole = locked(transactions, {"a0": 20})
    sliced = SlotLockPhase(execution.slots[0], transactions.keys(), (), Running())
    assert not sliced.done
    slices = 0
    while not sliced.done:
        assert sliced.run(2) == 0
        slices += 1
    assert slices == 4
    assert sliced.outcomes.keys() == whole.outcomes.keys()
    for tid, outcome in sliced.outcomes.items():
        expected = whole.outcomes[tid]
        assert (outcome.failure, outcome.result) == (expected.failure, expected.result)
        assert outcome.writes == expected.writes
    assert sliced.run(5) == 5, "a round that is over takes nothing of a slice"


def test_a_slice_counts_what_ran_in_the_lock_phase_alone() -> None:
    """A contended function has run nothing before, so nothing else says how long it takes."""
    transactions = {tid: (f"{chr(96 + tid)}0", "; ".join(["send z0 (add 1)"] * 30)) for tid in range(1, 9)}
    execution = Execution(1)
    execution.run(transactions, contended=frozenset(transactions))
    lock = SlotLockPhase(execution.slots[0], transactions.keys(), (), Running())
    slices = 0
    while not lock.done:
        lock.run(62)
        slices += 1
    assert slices == 4
    lock.commit()
    assert execution.numbers()["z0"] == 240


def test_a_query_runs_again_only_if_a_row_of_its_range_is_another_one() -> None:
    transactions = {
        1: ("a0", "row 1 5; send b1 (add 1)"),
        2: ("a0", "rows 0 9"),
        3: ("a0", "rows 50 99"),
        4: ("c0", "rows 0 9"),
    }
    _, lock = locked(transactions, {})
    assert [lock.outcomes[tid].result for tid in (2, 3, 4)] == [b"\x01", b"\x00", b"\x00"]
    before = dict(lock.outcomes)
    lock.next_round(1, {1}, ())
    lock.run(EVERYTHING)
    assert [lock.outcomes[tid] is before[tid] for tid in (2, 3, 4)] == [False, True, True]
    assert lock.outcomes[2].result == b"\x00"
