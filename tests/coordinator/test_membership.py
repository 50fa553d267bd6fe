"""Who counts as there: the rules of silence, of waiting for workers, and of standing by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from styx.coordinator.membership import CALM_SILENCES, PATIENCE_MAX, Membership, place


def crowd(workers: int, wanted: int | None = 2, grace_s: float | None = None) -> Membership:
    membership = Membership(wanted, grace_s, silence_max_s=1.0, most=4)
    for worker in range(workers):
        membership.join(worker, f"address {worker}", 0.0)
    return membership


def test_each_false_alarm_makes_the_next_one_later() -> None:
    membership = crowd(1)
    now_s, silences = 0.0, []
    for _ in range(7):
        membership.join(0, "", now_s)
        began_s = now_s
        while not membership.silent(now_s):
            now_s += 0.25
        membership.leave([0])
        silences.append(now_s - began_s)
    assert silences == [1.25, 2.25, 4.25, 8.25, 16.25, 16.25, 16.25]
    assert PATIENCE_MAX == 16


def test_patience_wears_off_when_nobody_is_silent() -> None:
    membership = crowd(2)
    assert membership.silent(1.5) == [0, 1]
    membership.leave([0])
    now_s = 1.5
    while now_s < 1.5 + 2 * CALM_SILENCES + 1:
        now_s += 0.5
        membership.hear(1)
        assert membership.silent(now_s) == []
    assert membership.silent(now_s + 1.25) == [1], "once more after one second"


def test_members_are_those_of_before_then_the_lowest() -> None:
    membership = crowd(4)
    assert membership.convene() == {0, 1}
    membership.place()
    membership.leave([0])
    membership.dissolve()
    assert membership.convene() == {1, 2}
    assert membership.settled


def test_it_is_settled_with_as_many_as_there_are() -> None:
    membership = crowd(1)
    membership.convene()
    assert membership.settled
    membership.join(1, "", 1.0)
    assert not membership.settled
    membership.wanted = 1
    assert membership.settled


def test_enough_are_all_wanted_or_any_after_the_wait_or_any_once_placed() -> None:
    assert not crowd(0, grace_s=0.0).enough(100.0)
    assert crowd(2).enough(0.0)
    waiting = crowd(1, grace_s=5.0)
    assert not waiting.enough(4.9)
    assert waiting.enough(5.0)
    survivor = crowd(2)
    survivor.convene()
    survivor.place()
    survivor.leave([0])
    assert survivor.enough(0.0)
    assert not crowd(1).enough(1e9), "without a limit it waits for ever"


def test_who_leaves_is_not_eligible_and_is_let_go_once() -> None:
    membership = crowd(3)
    membership.convene()
    membership.leaving.update([1, 2])
    assert membership.eligible == [0]
    assert (membership.target, membership.settled) == (1, False)
    assert membership.let_go() == [2], "1 takes part still"
    assert membership.let_go() == []
    membership.dissolve()
    assert membership.let_go() == [1]
    assert membership.convene() == {0}
    assert membership.settled


def test_who_leaves_takes_part_if_nobody_else_is_left_unless_it_was_let_go() -> None:
    membership = crowd(2)
    membership.convene()
    membership.place()
    membership.leaving.update([0, 1])
    membership.leave([0])
    assert membership.enough(0.0)
    assert membership.convene() == {1}
    assert membership.changing
    membership.dissolve()
    membership.let_go()
    assert not membership.enough(1e9)


def test_one_that_is_lost_leaves_no_trace() -> None:
    membership = crowd(1)
    membership.leaving.add(0)
    membership.let_go()
    membership.leave([0])
    membership.join(0, "", 1.0)
    assert membership.eligible == [0]


def test_all_that_are_there_take_part_up_to_the_number_of_slots() -> None:
    membership = crowd(6, wanted=None)
    assert membership.target == 4
    assert membership.convene() == {0, 1, 2, 3}
    assert membership.settled


workers = st.sets(st.integers(0, 9), min_size=1, max_size=6)


def test_the_first_placement_takes_turns() -> None:
    assert place(5, [7, 3], {}) == {0: 3, 1: 7, 2: 3, 3: 7, 4: 3}


def test_a_replacement_takes_the_lost_worker_s_slots() -> None:
    before = place(6, [1, 2, 3], {})
    assert place(6, [1, 3, 4], before) == {slot: {1: 1, 2: 4, 3: 3}[owner] for slot, owner in before.items()}


def test_a_worker_that_had_all_keeps_every_other_slot() -> None:
    assert place(6, [1, 2], dict.fromkeys(range(6), 1)) == {0: 1, 1: 2, 2: 1, 3: 2, 4: 1, 5: 2}


@given(st.integers(1, 20), workers, workers)
def test_every_first_part_of_the_slots_is_spread_evenly(n_slots: int, old: set[int], new: set[int]) -> None:
    before = place(n_slots, old, {})
    after = place(n_slots, new, before)
    assert sorted(after) == list(range(n_slots))
    for end in range(1, n_slots + 1):
        counts = [[after[slot] for slot in range(end)].count(worker) for worker in new]
        assert max(counts) - min(counts) <= 1
    assert place(n_slots, new, after) == after, "nothing moves without a reason"
