"""Ack shares add up exactly, whatever the call graph and whatever the order in which they come back."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.worker.ack_share import Outstanding, add, split


def value(exponent: int) -> Fraction:
    return Fraction(1, 2**exponent)


@given(st.integers(0, 300), st.integers(1, 200))
def test_a_split_adds_up_to_the_share(share: int, n: int) -> None:
    parts = split(share, n)
    assert len(parts) == n
    assert sum(map(value, parts)) == value(share)


@given(st.integers(0, 300), st.integers(1, 200))
def test_a_split_is_as_equal_as_powers_of_two_allow(share: int, n: int) -> None:
    assert max(split(share, n)) - min(split(share, n)) <= 1


def test_one_call_gets_all() -> None:
    assert split(5, 1) == [5]
    assert split(0, 3) == [1, 2, 2]


def random_leaves(rng: Random, share: int, depth: int) -> list[int]:
    """The shares that a random call graph gives back."""
    n = rng.choice([0, 0, 1, 2, 3, 7]) if depth else 0
    return [leaf for part in split(share, n) for leaf in random_leaves(rng, part, depth - 1)] if n else [share]


@given(st.randoms(use_true_random=False))
def test_a_root_is_done_with_the_last_share_and_not_before(rng: Random) -> None:
    leaves = random_leaves(rng, 0, 5)
    rng.shuffle(leaves)
    outstanding = Outstanding()
    assert [outstanding.give_back(1, share) for share in leaves] == [False] * (len(leaves) - 1) + [True]


def test_depth_costs_no_precision() -> None:
    share = 0
    outstanding = Outstanding()
    for _ in range(2_000):
        given_back, share = split(share, 2)
        assert not outstanding.give_back(1, given_back)
    assert outstanding.give_back(1, share)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 80)), min_size=2, max_size=5))
def test_sums_of_acks_are_exact(acks: list[tuple[int, int]]) -> None:
    total = acks[0]
    for ack in acks[1:]:
        total = add(total, ack)
    assert Fraction(total[0], 2 ** total[1]) == sum(Fraction(share, 2**scale) for share, scale in acks)


def test_more_than_was_given_out_is_noticed() -> None:
    outstanding = Outstanding()
    outstanding.give_back(1, 1)
    with pytest.raises(AssertionError, match="more acknowledgement shares"):
        outstanding.give_back(3, 2)
