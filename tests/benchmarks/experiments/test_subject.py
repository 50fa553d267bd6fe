"""How a subject is measured: on a session that answers without any load, up to some rate."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.driver.probe import Mark
from benchmarks.driver.search import THROUGHPUT_SHARE_MIN
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.climb import FACTOR
from benchmarks.experiments.settings import Common
from benchmarks.experiments.subject import FINE_SECONDS, SATURATED_IN_FLIGHT_MIN, SATURATED_SECONDS, Subject
from benchmarks.experiments.targets.compare import LOWER, RATE_TRIES, compare, compare_at
from benchmarks.experiments.targets.declared import TARGETS
from benchmarks.experiments.targets.verdict import Verdict
from tests.benchmarks.experiments.pretended import Answers, subject_on

CAPACITY = 5_000.0


def subject_of(capacity: float = CAPACITY, **common: Any) -> tuple[Subject, Answers, Bench]:
    session, bench = Answers(capacity), Bench(Common(**common))
    return subject_on(bench, "it", session), session, bench


def test_the_highest_rate_is_found_anew_from_where_it_was() -> None:
    subject, session, bench = subject_of()

    async def scenario() -> None:
        found = [await subject.highest_rate(), await subject.highest_rate()]
        assert all(CAPACITY / FACTOR <= each <= CAPACITY * 1.05 for each in found)

    asyncio.run(scenario())
    assert len(bench.steps) == len(session.plans)
    assert len(session.plans) <= 11


def test_the_more_it_answers_the_more_are_under_way_when_it_is_saturated() -> None:
    subject, session, _ = subject_of(100_000.0, clients=2)
    asyncio.run(subject.warmed())
    assert [plan.in_flight_max for plan in session.plans] == [
        SATURATED_IN_FLIGHT_MIN // 2,
        int(100_000 * SATURATED_SECONDS / 2),
    ]


def test_a_rate_that_is_not_held_is_tried_again_and_then_fails() -> None:
    subject, session, _ = subject_of(repeats=2)
    with pytest.raises(StepFailed, match=r"it: only 5000/s answered of 6000/s"):
        asyncio.run(subject.at(6_000))
    assert len(session.plans) == 3


def test_nothing_at_all_is_no_rate() -> None:
    subject, _, _ = subject_of(0.0)
    with pytest.raises(StepFailed, match="no rate"):
        asyncio.run(subject.highest_rate())


def test_with_a_rate_to_expect_the_search_needs_nothing_else() -> None:
    subject, session, _ = subject_of()
    subject.expect(CAPACITY)
    found = asyncio.run(subject.highest_rate())
    assert CAPACITY <= found <= CAPACITY / THROUGHPUT_SHARE_MIN
    rates = [plan.rate for plan in session.plans]
    assert rates[:2] == [CAPACITY, CAPACITY * FACTOR]
    assert len(rates) <= 4


def test_a_step_that_may_fail_gives_what_it_found() -> None:
    subject, session, _ = subject_of()
    assert asyncio.run(subject.tried(2 * CAPACITY)).throughput == CAPACITY
    assert session.plans[0].give_up_s is not None


def test_a_window_over_time_is_fine_and_has_its_company() -> None:
    subject, session, _ = subject_of()

    async def company(_from_s: float, _marks: list[Mark]) -> None:
        pass

    asyncio.run(subject.over_time(100, 7.0, company))
    assert (session.plans[0].duration_s, session.plans[0].interval_s) == (7.0, FINE_SECONDS)
    assert session.companies == [company]


def test_things_are_compared_in_turns() -> None:
    _, _, bench = subject_of(runs=2)
    verdict, order = Verdict(TARGETS[0]), []

    async def over() -> float:
        order.append("over")
        return 6.0

    async def under() -> float:
        order.append("under")
        return 2.0

    asyncio.run(compare(bench, verdict, over, under, "µs"))
    assert order == ["over", "under", "under", "over"]
    assert [run.value for run in verdict.runs] == [3.0, 3.0]


def test_a_rate_that_one_side_does_not_hold_is_lowered_for_both() -> None:
    _, _, bench = subject_of(runs=1)
    verdict, rates = Verdict(TARGETS[0]), []

    async def over(rate: float) -> float:
        rates.append(rate)
        if rate > 90:
            raise StepFailed("too much")
        return 3.0

    async def under(_rate: float) -> float:
        return 1.0

    asyncio.run(compare_at(bench, verdict, over, under, "µs", 100))
    assert rates == [100, 100 * LOWER]
    assert ([run.value for run in verdict.runs], verdict.failed) == ([3.0], "")


def test_a_rate_is_not_lowered_for_ever() -> None:
    subject, session, bench = subject_of(10.0, runs=1, repeats=0)
    verdict = Verdict(TARGETS[0])

    async def us(rate: float) -> float:
        return (await subject.at(rate)).cpu_us["worker"]

    asyncio.run(compare_at(bench, verdict, us, us, "µs", 1_000))
    assert len(session.plans) == RATE_TRIES
    assert "answered of" in verdict.failed
