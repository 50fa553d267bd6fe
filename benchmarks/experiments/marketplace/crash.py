"""A worker of a cluster dies in the middle of a run, and is replaced later: rate and latency over time.

The rate is a share of what the cluster manages in a closed loop. Every request must be answered once, and the audit
must hold.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from benchmarks.driver.charts import latency_over_time
from benchmarks.driver.probe import Mark
from benchmarks.driver.result import Result
from benchmarks.driver.timeline import Point
from benchmarks.driver.worker_death import Death
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.marketplace.experiment import Experiment
from benchmarks.experiments.marketplace.step import Cell, measure_step
from benchmarks.experiments.numbers import rate_of, seconds_of
from benchmarks.experiments.report import Shown
from benchmarks.experiments.text_table import text_table
from styx.errors import ConfigurationError

KILLED_AT: Final = 0.25
"""Of the window."""
REPLACED_AFTER: Final = 0.25
RATE_SHARE: Final = 0.4
"""Of what the cluster manages: the worker that is left can hold it, and catch up."""
INTERVAL_SECONDS: Final = 0.25
"""Between points of the time line: at fewer transactions than of other workloads, there are enough for each."""
OVER_TIME_SECONDS_MIN: Final = 4.0
HEADINGS: Final = ("run", "at/s", "no reply for s", "longest s", "p99 as before after s", "p99 ms before", "failed")


class Crashed(msgspec.Struct, frozen=True, kw_only=True):
    """One run at `rate` requests a second: what clients saw of the death. `failed`: answers other than commits."""

    rate: float
    death: Death
    timeline: list[Point]
    marks: list[Mark]
    failed: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this experiment has."""
    parser.add_argument(
        "--rate",
        type=float,
        default=0.0,
        metavar="N",
        help=f"crash: requests a second; 0 (default): {RATE_SHARE:g} of what the cluster manages",
    )
    parser.add_argument(
        "--over-time",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="crash: the window of each run (default %(default)g)",
    )


async def measure(cell: Cell, bench: Bench, options: argparse.Namespace, found: list[Crashed]) -> None:
    """Adds a run at a time."""
    rate = rate_of(options)
    seconds = seconds_of("--over-time", options.over_time, OVER_TIME_SECONDS_MIN)
    if options.workers < 2:
        raise ConfigurationError(f"--workers is 2 or more, since one of them dies; got {options.workers}")
    rate = rate or float(f"{RATE_SHARE * (await measure_step(bench, options, cell)).throughput:.3g}")
    words = [
        *("--rate", f"{rate:g}", "--duration", f"{seconds:g}", "--interval", f"{INTERVAL_SECONDS:g}"),
        *("--kill-worker", f"{KILLED_AT * seconds:g}", "--replace-after", f"{REPLACED_AFTER * seconds:g}"),
    ]
    for number in range(1, bench.common.runs + 1):
        found.append(crashed(await measure_step(bench, options, cell, words, closed=False), rate))
        bench.say(f"run {number}: no reply for {_pause(found[-1].death)} s after the death")


def crashed(result: Result, rate: float) -> Crashed:
    """Raises `StepFailed` if there was no death."""
    if result.death is None:
        raise StepFailed("the run ended before a worker was killed")
    return Crashed(
        rate=rate,
        death=result.death,
        timeline=result.timeline,
        marks=result.marks,
        failed=sum(result.errors.values()),
    )


def show(name: str, experiment: Experiment, found: Sequence[Crashed]) -> Shown:
    """As a table, and a chart of the run with the median pause."""
    rows = [
        (
            str(number),
            f"{each.rate:g}",
            _pause(each.death),
            f"{each.death.worst_us / 1e6:.1f}",
            "not yet" if each.death.back_s is None else f"{each.death.back_s:.1f}",
            f"{each.death.normal_us / 1e3:.1f}",
            str(each.failed),
        )
        for number, each in enumerate(found, 1)
    ]
    text = text_table(HEADINGS, rows)
    pauses = [each.death.pause_s for each in found if each.death.pause_s is not None]
    if pauses:
        text += f"\nafter a death no reply for {statistics.median(pauses):.1f} s ({min(pauses):.1f}-{max(pauses):.1f})"
    middle = sorted(found, key=lambda each: each.death.pause_s or 0.0)[len(found) // 2]
    title = f"{experiment.what}, {middle.rate:g} requests/s"
    return Shown(text, {name: partial(latency_over_time, points=middle.timeline, marks=middle.marks, title=title)})


def _pause(death: Death) -> str:
    return "no reply came" if death.pause_s is None else f"{death.pause_s:.1f}"
