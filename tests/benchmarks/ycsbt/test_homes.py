"""The most popular accounts are on all slots; shares are exact."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from benchmarks.ycsbt.bank import account
from benchmarks.ycsbt.homes import Homes
from benchmarks.ycsbt.share import Share


@pytest.mark.parametrize("n_slots", [2, 3, 4, 7, 12, 16])
def test_the_first_accounts_are_spread_over_the_slots(n_slots: int) -> None:
    assert len(set(account.slots_of(range(4 * n_slots), n_slots))) == n_slots
    per_slot = Counter(account.slots_of(range(50 * n_slots), n_slots))
    assert all(40 <= count <= 60 for count in per_slot.values())


def test_homes_are_those_of_the_operators_partition_function() -> None:
    homes = Homes(300, account, 4)
    for key in range(300):
        slot = account.partition_of(key, 4)
        assert homes.slot[key] == slot
        assert key in homes.keys[slot]
    assert sum(map(len, homes.keys)) == 300
    assert (homes.slots_in_use, homes.slots_with_pairs) == (4, 4)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1 / 3, 0.999, 1.0])
@pytest.mark.parametrize("size", [1, 7, 250])
def test_a_share_is_exact_at_the_end_of_each_block(share: float, size: int) -> None:
    shares = Share(share, random.Random(1))
    seen = chosen = 0
    for _ in range(200):
        block = shares.next_block(size)
        assert len(block) == size
        seen, chosen = seen + size, chosen + sum(block)
        assert abs(chosen - share * seen) <= 0.5


def test_the_order_within_a_block_is_random_and_the_seeds() -> None:
    first, second, other = (Share(0.5, random.Random(seed)).next_block(100) for seed in (1, 1, 2))
    assert first == second
    assert first not in (other, sorted(first), sorted(first, reverse=True))
