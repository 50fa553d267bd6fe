"""Mixtures are exact, and their order is random."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from benchmarks.driver.mixture import Mixture

MIXTURES = [
    {"one": 1.0},
    {"one": 1.0, "never": 0.0},
    {"one": 0.5, "two": 0.5},
    {"search": 0.6, "recommend": 0.39, "login": 0.005, "reserve": 0.005},
    {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3},
    {str(n): n / 55 for n in range(1, 11)},
]


@pytest.mark.parametrize("shares", MIXTURES, ids=" ".join)
@pytest.mark.parametrize("size", [1, 2, 7, 250])
def test_a_mixture_is_exact_at_the_end_of_each_block(shares: dict[str, float], size: int) -> None:
    mixture = Mixture(shares, random.Random(1))
    given: Counter[str] = Counter()
    for blocks in range(1, 201):
        block = mixture.next_block(size)
        assert len(block) == size
        given.update(block)
        for kind, share in shares.items():
            assert abs(given[kind] - share * size * blocks) <= len(shares) / 2 + 1e-6


def test_the_order_within_a_block_is_random_and_the_seeds() -> None:
    first, second, other = (
        Mixture({"a": 0.5, "b": 0.3, "c": 0.2}, random.Random(seed)).next_block(100) for seed in (1, 1, 2)
    )
    assert first == second
    assert first not in (other, sorted(first))
