"""Measures two things in turns, run by run, for one target. What they are is the caller's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.targets.verdict import Run, Verdict
from benchmarks.experiments.turns import turns

Measure = Callable[[], Awaitable[float]]
MeasureAt = Callable[[float], Awaitable[float]]

RATE_TRIES: Final = 3
LOWER: Final = 0.85
"""From one try to the next."""


async def compare(
    bench: Bench, verdict: Verdict, over: Measure, under: Measure, unit: str, runs: int | None = None
) -> None:
    """`runs`: None for as many as the options ask for. A step that fails ends it, and is the verdict."""
    try:
        for number, order in turns(bench.common.runs if runs is None else runs, (over, under)):
            figures = {measure: await measure() for measure in order}
            note(bench, verdict, number, Run(over=figures[over], under=figures[under], unit=unit))
    except StepFailed as failed:
        verdict.failed = str(failed)
        bench.say(f"{verdict.target.name}: {failed}")


async def compare_at(bench: Bench, verdict: Verdict, over: MeasureAt, under: MeasureAt, unit: str, rate: float) -> None:
    """As `compare`, both at `rate` requests a second; at a lower rate, and from the beginning, if one does not hold it.

    The last try counts, whatever it gives.
    """
    for tries_left in reversed(range(RATE_TRIES)):
        await compare(bench, verdict, partial(over, rate), partial(under, rate), unit)
        if not verdict.failed or not tries_left:
            return
        rate *= LOWER
        bench.say(f"{verdict.target.name}: tried again at {rate:.0f}/s")
        verdict.runs.clear()
        verdict.failed = ""


def note(bench: Bench, verdict: Verdict, number: int, run: Run) -> None:
    """One run's figure."""
    verdict.runs.append(run)
    bench.say(f"{verdict.target.name}, run {number}: {run.value:.3g}")
