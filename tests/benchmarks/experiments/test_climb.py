"""The search from a guess: how near it comes, and how few steps it takes."""

from __future__ import annotations

import pytest

from benchmarks.experiments.climb import FACTOR, STEPS_MAX, Climb
from benchmarks.experiments.turns import turns


def climbed(guess: float, highest: float) -> tuple[float, int]:
    """What is found of a thing that holds up to `highest`, and in how many steps."""
    climb, steps = Climb(guess), 0
    while (rate := climb.next_rate()) is not None:
        climb.record(rate <= highest)
        steps += 1
    return climb.passed, steps


@pytest.mark.parametrize("highest", [1_000, 1_040, 1_500, 4_000, 990, 800, 300])
def test_the_answer_is_less_than_a_rung_below(highest: float) -> None:
    found, _ = climbed(1_000, highest)
    assert highest / FACTOR * 0.999 <= found <= highest


def test_a_good_guess_takes_two_steps() -> None:
    assert climbed(1_000, 1_010) == (1_000, 2)
    assert climbed(1_000, 990) == (970.9, 2)


def test_it_ends_where_nothing_is_held() -> None:
    assert climbed(1_000, 0) == (0, STEPS_MAX)


def test_turns_alternate() -> None:
    assert list(turns(3, "AB")) == [(1, ["A", "B"]), (2, ["B", "A"]), (3, ["A", "B"])]
