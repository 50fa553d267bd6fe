"""Shares are exact, and their order is random."""

from __future__ import annotations

import random

import pytest

from benchmarks.driver.share import Share


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
