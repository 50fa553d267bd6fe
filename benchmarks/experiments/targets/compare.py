"""Measures in turns, run by run: one thing against another for one target, or several things against the same one for
several targets. The caller gives the measurements.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.targets.verdict import Run, Verdict
from benchmarks.experiments.turns import turns

Measure = Callable[[], Awaitable[float]]
MeasureAt = Callable[[float], Awaitable[float]]

RATE_TRIES: Final = 3
LOWER: Final = 0.85
"""From one try to the next."""


class Over(NamedTuple):
    """What is measured for this verdict, by what the others are measured by too."""

    verdict: Verdict
    measure: MeasureAt


async def compare(
    bench: Bench, verdict: Verdict, over: Measure, under: Measure, unit: str, runs: int | None = None
) -> None:
    """`runs`: None for as many as the options ask for. A step that fails ends it, and is the verdict."""
    await _compare_all(bench, [(verdict, over)], under, unit, bench.common.runs if runs is None else runs)


async def _compare_all(
    bench: Bench, each: Sequence[tuple[Verdict, Measure]], under: Measure, unit: str, runs: int
) -> None:
    try:
        for number, order in turns(runs, [*(over for _, over in each), under]):
            figures = {measure: await measure() for measure in order}
            for verdict, over in each:
                note(bench, verdict, number, Run(over=figures[over], under=figures[under], unit=unit))
    except StepFailed as failed:
        for verdict, _ in each:
            verdict.failed = str(failed)
            bench.say(f"{verdict.target.name}: {failed}")


async def compare_at(bench: Bench, verdict: Verdict, over: MeasureAt, under: MeasureAt, unit: str, rate: float) -> None:
    """Compares both at `rate` requests a second. If one does not hold it, repeats all of it at a lower rate. The last
    try counts in any case.
    """
    await compare_all_at(bench, [Over(verdict, over)], under, unit, rate)


async def compare_all_at(bench: Bench, each: Sequence[Over], under: MeasureAt, unit: str, rate: float) -> None:
    """See `compare_at`, several by the same one: a run is a turn of all."""
    for tries_left in reversed(range(RATE_TRIES)):
        measures = [(verdict, partial(measure, rate)) for verdict, measure in each]
        await _compare_all(bench, measures, partial(under, rate), unit, bench.common.runs)
        if not any(verdict.failed for verdict, _ in each) or not tries_left:
            return
        rate *= LOWER
        for verdict, _ in each:
            bench.say(f"{verdict.target.name}: tried again at {rate:.0f}/s")
            verdict.runs.clear()
            verdict.failed = ""


def note(bench: Bench, verdict: Verdict, number: int, run: Run) -> None:
    """One run's figure."""
    verdict.runs.append(run)
    bench.say(f"{verdict.target.name}, run {number}: {run.value:.3g}")
