"""Slots are spread evenly, and stay where they are as far as that allows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from styx.coordinator.placement import place

workers = st.sets(st.integers(0, 9), min_size=1, max_size=6)


def test_the_first_placement_takes_turns() -> None:
    assert place(5, [7, 3], {}) == {0: 3, 1: 7, 2: 3, 3: 7, 4: 3}


def test_only_the_lost_worker_s_slots_move() -> None:
    before = place(6, [1, 2, 3], {})
    after = place(6, [1, 3], before)
    assert {slot for slot in range(6) if before[slot] != after[slot]} == {
        slot for slot in range(6) if before[slot] == 2
    }


@given(st.integers(1, 20), workers, workers)
def test_shares_differ_by_one_at_most_and_nothing_moves_in_vain(n_slots: int, old: set[int], new: set[int]) -> None:
    before = place(n_slots, old, {})
    after = place(n_slots, new, before)
    assert sorted(after) == list(range(n_slots))
    counts = [list(after.values()).count(worker) for worker in new]
    assert max(counts) - min(counts) <= 1
    share = n_slots // len(new)
    for worker in old & new:
        kept = sum(1 for slot in range(n_slots) if before[slot] == after[slot] == worker)
        assert kept >= min(list(before.values()).count(worker), share), "it gave up what it could have kept"
    assert place(n_slots, new, after) == after
