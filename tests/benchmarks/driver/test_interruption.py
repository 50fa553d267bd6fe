"""What a time line tells of an interruption."""

from __future__ import annotations

import pytest

from benchmarks.driver.interruption import NORMAL_INTERVALS, Interruption, interruption, normal_p99_us
from benchmarks.driver.target import Outcome
from benchmarks.driver.timeline import Point

NORMAL_US = 10_000


def line(p99s_us: list[int]) -> list[Point]:
    """An interval of 0.1 s each; 0: nothing was answered."""
    return [
        Point(
            at_s=round(number / 10, 6),
            sent=10,
            outcomes={Outcome.COMMITTED: 10} if p99_us else {},
            p50_us=p99_us // 2,
            p99_us=p99_us,
            max_us=p99_us * 2,
        )
        for number, p99_us in enumerate(p99s_us)
    ]


def seen(p99s_us: list[int], from_s: float) -> Interruption:
    return interruption(line(p99s_us), 0.1, from_s, 100.0, NORMAL_US)


def test_a_pause_and_the_way_back() -> None:
    around = [NORMAL_US] * 10 + [0] * 7 + [700_000, 300_000, 30_000] + [NORMAL_US] * 10
    found = seen(around, 0.95)
    assert found.pause_s == pytest.approx(0.7)
    assert found.worst_us == 1_400_000
    assert found.back_s == pytest.approx(2.0 - 0.95)


def test_a_moment_of_calm_is_not_the_end() -> None:
    around = [NORMAL_US] * 5 + [0] * 2 + [90_000] + [NORMAL_US] * (NORMAL_INTERVALS - 1) + [90_000] + [NORMAL_US] * 9
    assert seen(around, 0.45).back_s == pytest.approx(1.3 - 0.45)


def test_without_an_interruption_nothing_is_seen() -> None:
    found = seen([NORMAL_US] * 20, 0.95)
    assert found.pause_s == 0
    assert found.back_s == pytest.approx(0.05)


def test_what_never_ends() -> None:
    assert seen([NORMAL_US] * 10 + [0] * 10, 0.95) == Interruption(pause_s=None, worst_us=0, back_s=None)
    assert seen([NORMAL_US] * 10 + [0] * 3 + [90_000] * 10, 0.95).back_s is None


def test_normal_is_the_median_of_the_window_before() -> None:
    points = line([10_000, 12_000, 90_000, 0, 500_000])
    assert normal_p99_us(points, 0.4) == 12_000
    assert normal_p99_us(points, 0.0) == 0
