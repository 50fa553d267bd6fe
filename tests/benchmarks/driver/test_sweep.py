"""The sweep over rates, against systems with a known highest one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.driver.search import RATE_MAX
from benchmarks.driver.sweep import Sweep


def run(sweep: Sweep, holds: Callable[[float], bool]) -> list[float]:
    rates = []
    while (rate := sweep.next_rate()) is not None:
        rates.append(rate)
        sweep.record(rate, holds(rate))
    return rates


def test_it_grows_until_saturation_and_comes_near_it_then() -> None:
    sweep = Sweep(100, finer=3)
    assert run(sweep, lambda rate: rate <= 700) == [100, 200, 400, 800, 566, 673, 734]
    assert sweep.passed == 673
    assert sweep.ended == "734/s is too much"


def test_the_factor_and_the_finer_steps_are_given() -> None:
    assert run(Sweep(10, factor=10, finer=0), lambda rate: rate <= 700) == [10, 100, 1000]
    assert run(Sweep(10, factor=10, finer=1), lambda rate: rate <= 700) == [10, 100, 1000, 316]


def test_a_first_rate_that_is_too_high_is_not_the_end() -> None:
    sweep = Sweep(1000, finer=2)
    assert run(sweep, lambda rate: rate <= 200) == [1000, 500, 250, 125, 177, 210]
    assert sweep.passed == 177


def test_steps_that_would_be_the_same_are_not_made() -> None:
    rates = run(Sweep(100, factor=1.05, finer=20), lambda rate: rate <= 102)
    assert len(rates) == len(set(rates)) < 12


@pytest.mark.parametrize(("holds", "ended"), [(False, "even 1/s"), (True, f"no rate up to {RATE_MAX:g}/s")])
def test_it_ends_in_any_case(holds: bool, ended: str) -> None:
    sweep = Sweep(100)
    run(sweep, lambda _: holds)
    assert ended in sweep.ended
