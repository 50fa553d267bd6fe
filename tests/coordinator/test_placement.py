"""Slots are spread evenly, and stay where they are as far as that allows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from styx.coordinator.placement import place

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
