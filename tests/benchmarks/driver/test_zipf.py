"""Ranks are drawn with the probabilities of the Zipf distribution, for every exponent that is taken."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import pytest

from benchmarks.driver.zipf import EXPONENT_MAX, STEEPEST, zipf_ranks

DRAWS = 20_000


class EvenlySpaced(random.Random):
    """Gives each of `DRAWS` evenly spaced numbers once instead of random ones: no chance is left in what is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = iter(range(DRAWS))

    def random(self) -> float:
        return (next(self._numbers) + 0.5) / DRAWS


@pytest.mark.parametrize(
    ("exponent", "n"),
    [
        *((exponent, n) for exponent in (0, 0.1, 0.5, 0.9, 0.99, EXPONENT_MAX, 1, 1.2) for n in (2, 7, 100)),
        *((STEEPEST, n) for n in (2, 7)),  # of a hundred, the last ones would be drawn less than once
    ],
)
def test_every_rank_has_its_probability(exponent: float, n: int) -> None:
    draw = zipf_ranks(n, exponent, EvenlySpaced())
    counts: Counter[int] = Counter()
    with suppress(StopIteration):
        while True:
            counts[draw()] += 1
    assert set(counts) == set(range(n))
    all_weights = sum((rank + 1) ** -exponent for rank in range(n))
    for rank in range(n):
        # An interval's ends fall between two of the numbers, in each of the two that a rank can have.
        assert abs(counts[rank] - counts.total() * (rank + 1) ** -exponent / all_weights) < 3


def test_the_most_popular_of_a_million_have_their_probability() -> None:
    n, exponent = 1_000_000, 0.99
    draw = zipf_ranks(n, exponent, random.Random(2))
    counts = Counter(draw() for _ in range(DRAWS))
    # The sum of all weights: the first ones, and the integral of the rest by the midpoint rule.
    rest = 1 - exponent
    all_weights = sum(k**-exponent for k in range(1, 1001)) + ((n + 0.5) ** rest - 1000.5**rest) / rest
    for first, last in ((1, 1), (2, 2), (3, 10), (11, 100), (101, 1000)):
        probability = sum(k**-exponent for k in range(first, last + 1)) / all_weights
        seen = sum(counts[k - 1] for k in range(first, last + 1))
        assert abs(seen - DRAWS * probability) < 4 * (DRAWS * probability) ** 0.5
    assert 0 <= min(counts) <= max(counts) < n


def test_the_same_seed_draws_the_same() -> None:
    first, second, other = (zipf_ranks(1000, 0.9, random.Random(seed)) for seed in (3, 3, 4))
    drawn = [first() for _ in range(50)]
    assert [second() for _ in range(50)] == drawn
    assert [other() for _ in range(50)] != drawn
