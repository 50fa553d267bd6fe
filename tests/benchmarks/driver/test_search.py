"""The search for the highest rate, against systems with a known one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from benchmarks.driver.search import RATE_MAX, STEPS_MAX, GivenFirst, RateSearch, reasons_against
from benchmarks.driver.target import Outcome
from tests.benchmarks.driver.made import result


def run(search: RateSearch, holds: Callable[[float], bool]) -> list[float]:
    rates = []
    while (rate := search.next_rate()) is not None:
        rates.append(rate)
        search.record(rate, holds(rate))
    return rates


@pytest.mark.parametrize("highest", [3, 47, 999, 1000, 1001, 6_789, 123_456])
@pytest.mark.parametrize("first", [50, 1000, 20_000])
def test_it_comes_within_a_tenth_of_the_highest_rate(highest: float, first: float) -> None:
    search = RateSearch(first)
    run(search, lambda rate: rate <= highest)
    assert search.failed is not None
    assert highest / 1.1 - 0.5 <= search.passed <= highest < search.failed


def test_it_doubles_and_then_halves_the_gap() -> None:
    assert run(RateSearch(1000), lambda rate: rate <= 5300) == [1000, 2000, 4000, 8000, 6000, 5000, 5500]


def test_a_finer_search_takes_more_steps() -> None:
    search = RateSearch(1000, precision=0.01)
    run(search, lambda rate: rate <= 5300)
    assert search.passed == pytest.approx(5300, rel=0.011)


def test_a_rate_that_fails_by_chance_is_tried_again() -> None:
    rng = random.Random(1)
    failed: set[float] = set()

    def flaky(rate: float) -> bool:
        if rate <= 5300 and rate not in failed and rng.random() < 0.5:
            failed.add(rate)
            return False
        return rate <= 5300

    search = RateSearch(1000, tries=2)
    rates = run(search, flaky)
    assert failed
    assert search.passed == pytest.approx(5300, rel=0.1)
    assert rates.count(8000) == 2


def test_nothing_passes() -> None:
    search = RateSearch(64)
    run(search, lambda _: False)
    assert search.passed == 0
    assert "even 1/s" in search.ended


def test_everything_passes() -> None:
    search = RateSearch(1000)
    rates = run(search, lambda _: True)
    assert max(rates) <= RATE_MAX
    assert "no rate" in search.ended


def test_it_ends_in_any_case() -> None:
    rng = random.Random(2)
    search = RateSearch(1000, precision=0.0001)
    assert len(run(search, lambda _: rng.random() < 0.5)) <= STEPS_MAX
    assert search.ended


def test_a_step_passes_if_all_is_well() -> None:
    assert reasons_against(result(), bound_s=1.0) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"latency_us": 1_100_000}, "p99"),
        ({"outcomes": {Outcome.COMMITTED: 999, Outcome.MISSED: 1}}, "1 missed"),
        ({"outside": {Outcome.UNKNOWN: 1}}, "1 missed"),
        ({"shed": 1}, "1 shed"),
        ({"gave_up": "backlog"}, "given up"),
        ({"outcomes": {Outcome.COMMITTED: 999, Outcome.REJECTED: 1}}, "1 rejected"),
        ({"replied": {Outcome.COMMITTED: 900}}, "only 90/s"),
        ({"latency": {}}, "nothing answered"),
    ],
)
def test_a_step_fails_for_a_reason(changes: dict[str, object], reason: str) -> None:
    assert any(reason in each for each in reasons_against(result(**changes), bound_s=1.0))  # type: ignore[arg-type]


def test_given_rates_come_first_and_the_search_goes_on_from_what_they_gave() -> None:
    chosen = GivenFirst([1000, 5000], RateSearch(300, tries=2), goes_on=True)
    assert (chosen.next_rate(), chosen.ended) == (1000, "")
    chosen.record(1000, passed=True)
    chosen.record(5000, passed=False)
    # One failure does not end it: the rate is tried again.
    assert chosen.next_rate() == 5000
    chosen.record(5000, passed=True)
    assert (chosen.next_rate(), chosen.passed) == (10_000, 5000)


def test_given_rates_may_be_all() -> None:
    chosen = GivenFirst([1000], RateSearch(300), goes_on=False)
    chosen.record(1000, passed=True)
    assert (chosen.next_rate(), chosen.ended, chosen.passed) == (None, "no other rate was tried", 1000)
