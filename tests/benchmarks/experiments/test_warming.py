"""How long a broker is warmed: until it gets no cheaper, and not for ever."""

from __future__ import annotations

from benchmarks.experiments.warming import FALL_MIN, SECONDS_MAX, STEADY_STEPS, Warming

STEP_SECONDS = 5.5


def steps(*broker_us: float | None, seconds: float = STEP_SECONDS) -> int:
    """How many of these steps are wanted; all of them if not even those are enough."""
    warming = Warming()
    for number, each in enumerate(broker_us):
        if not warming.goes_on:
            return number
        warming.record(each, seconds)
    assert not warming.goes_on
    return len(broker_us)


def test_a_broker_is_warm_when_it_gets_no_cheaper() -> None:
    assert steps(60.0, 30.0, 20.0, 12.0, 12.1, 11.9, 11.9) == 4 + STEADY_STEPS


def test_a_step_in_a_slow_phase_does_not_end_it() -> None:
    assert steps(60.0, 30.0, 35.0, 20.0, 21.0, 20.0, 20.0) == 4 + STEADY_STEPS


def test_a_fall_that_may_be_chance_is_none() -> None:
    less = 1 - FALL_MIN / 2
    assert steps(20.0, 20.0 * less, 20.0 * less, 20.0) == 1 + STEADY_STEPS


def test_it_ends_though_the_broker_gets_cheaper_all_the_time() -> None:
    wanted = int(SECONDS_MAX / STEP_SECONDS) + 1
    assert steps(*(100.0 / 2**number for number in range(wanted + 1))) == wanted


def test_without_a_broker_a_second_step_is_enough() -> None:
    assert steps(None, None, None) == STEADY_STEPS


def test_one_long_step_can_be_all() -> None:
    assert steps(10.0, 5.0, seconds=SECONDS_MAX) == 1
