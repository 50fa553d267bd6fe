"""The most popular accounts are on all slots."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.ycsbt.bank import account
from benchmarks.ycsbt.homes import Homes


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
