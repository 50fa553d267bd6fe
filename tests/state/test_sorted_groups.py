"""Sorted entries by group: short and long groups give the same."""

from __future__ import annotations

from bisect import bisect_left, insort
from random import Random

import pytest

from styx.state.sorted_groups import CHUNK_MAX, PLAIN_MAX, SortedGroups

ADA, BOB = ("ada",), ("bob",)
Entries = list[tuple[int, str]]


def walked(groups: SortedGroups, low: tuple[int, ...], high: tuple[int, ...], backwards: bool = False) -> Entries:
    return list(groups.walk(ADA, low, high, backwards))


@pytest.mark.parametrize("size", [3, PLAIN_MAX, PLAIN_MAX + 1, 3 * CHUNK_MAX])
@pytest.mark.parametrize("one_by_one", [True, False])
def test_a_group_of_any_size_gives_its_entries_in_order(size: int, one_by_one: bool) -> None:
    groups, rng = SortedGroups(), Random(size)
    entries = [(2 * number, "row") for number in range(size)]
    if one_by_one:
        for entry in rng.sample(entries, size):
            groups.add(ADA, entry)
    else:
        groups.put(ADA, list(entries))
    groups.add(BOB, (1, "other"))
    assert walked(groups, (), (2 * size,)) == entries
    assert walked(groups, (), (2 * size,), True) == entries[::-1]
    assert groups.length(ADA) == size
    for _ in range(50):
        low, high = rng.randrange(-2, 2 * size + 2), rng.randrange(-2, 2 * size + 2)
        wanted = [entry for entry in entries if low <= entry[0] < high]
        assert walked(groups, (low,), (high,)) == wanted
        assert walked(groups, (low,), (high,), True) == wanted[::-1]
        assert groups.count(ADA, (low,), (high,)) == len(wanted)


def test_entries_come_and_go_in_a_group_that_grows_and_shrinks() -> None:
    groups, rng = SortedGroups(), Random(7)
    entries: Entries = []
    for wanted in (2_500, 40, 1_500, 0, 5):
        while len(entries) != wanted:
            number = rng.randrange(10_000)
            place = bisect_left(entries, (number,))
            there = place < len(entries) and entries[place][0] == number
            if len(entries) < wanted and not there:
                insort(entries, (number, "row"))
                groups.add(ADA, (number, "row"))
            elif len(entries) > wanted:
                place = min(place, len(entries) - 1)
                assert groups.take(ADA, (entries[place][0],)) == entries.pop(place)
        assert groups.everything() == ({ADA: entries} if entries else {})
        assert groups.count(ADA, (0,), (10_000,)) == groups.length(ADA) == len(entries)


def test_a_walk_takes_no_more_of_a_long_group_than_it_is_asked_for() -> None:
    groups = SortedGroups()
    groups.put(ADA, [(number, "row") for number in range(10 * CHUNK_MAX)])
    assert next(groups.walk(ADA, (5_000,), (9_000,), False)) == (5_000, "row")
    assert next(groups.walk(ADA, (5_000,), (9_000,), True)) == (8_999, "row")
    assert next(groups.walk(ADA, (9_000,), (5_000,), False), None) is None
    assert next(groups.walk(BOB, (), (9,), False), None) is None
