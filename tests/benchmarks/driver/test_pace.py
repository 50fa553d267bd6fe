"""Slow phases of the machine: what counts as one, and which of several tries counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from benchmarks.driver.calibration import Calibration
from benchmarks.driver.pace import OTHERS_SHARE_MAX, SLOWER_MAX, Machine, Pace, in_a_quiet_phase
from tests.benchmarks.driver.made import result


def beside(cpu_ms: float) -> list[Calibration]:
    return [Calibration(cpu_ms=cpu_ms, wall_ms=cpu_ms)]


def test_the_best_so_far_is_the_measure() -> None:
    machine = Machine()
    assert machine.pace(beside(50)).slower == 1
    assert machine.pace(beside(40)).slower == 1
    assert machine.pace(beside(60)) == Pace(1.5, 0.0)
    assert (machine.best_ms, machine.worst_ms) == (40, 60)


def test_a_run_of_the_driver_is_paced_by_what_others_had_too() -> None:
    # The made result: 7 s of work within 10 s on 2 processors, 5 of them the worker's.
    assert Machine().pace_of(result()).others == pytest.approx(2 / 20)


@pytest.mark.parametrize(
    ("pace", "slow"),
    [
        (Pace(SLOWER_MAX, OTHERS_SHARE_MAX), False),
        (Pace(SLOWER_MAX + 0.01, 0), True),
        (Pace(1, OTHERS_SHARE_MAX + 0.01), True),
    ],
)
def test_slow_by_either_measure(pace: Pace, slow: bool) -> None:
    assert pace.slow is slow


def tried(paces: list[Pace], repeats: int) -> tuple[int, int]:
    """Which try counts, and how many there were."""
    numbers: Iterator[int] = iter(range(len(paces)))
    said: list[str] = []

    async def step() -> int:
        return next(numbers)

    given = asyncio.run(in_a_quiet_phase(step, lambda number: paces[number], repeats, said.append))
    return given, len(said) + 1


def test_a_quiet_step_is_not_repeated() -> None:
    assert tried([Pace(1, 0)], 5) == (0, 1)


def test_a_slow_step_is_repeated_until_a_quiet_one_which_counts() -> None:
    assert tried([Pace(2, 0), Pace(1.5, 0), Pace(1.1, 0)], 5) == (2, 3)


def test_if_all_are_slow_the_least_slow_one_counts() -> None:
    assert tried([Pace(2, 0), Pace(1.5, 0), Pace(1.5, 0.3)], 2) == (1, 3)
