"""The cost of a snapshot every second, with many accounts: the throughput with and without snapshots, and latency over
time.

Two clusters of one worker run side by side; one of them never takes a snapshot. First each is measured at saturation,
in turns. Then both get the same rate, for latency over time with marks at complete snapshots. The state is not audited,
because reading a million accounts would take longer than the rest.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.driver.charts import grouped_bars, latency_over_time
from benchmarks.driver.coordinator_watch import SNAPSHOT, watch
from benchmarks.driver.deployment.own_cluster import BenchmarkCluster, deployment_of
from benchmarks.driver.probe import Mark
from benchmarks.driver.result import Result
from benchmarks.driver.timeline import Point
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.numbers import add_rate_option, rate_of, seconds_of
from benchmarks.experiments.place import NEVER_SECONDS, place
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.text_table import text_table
from benchmarks.experiments.turns import turns
from benchmarks.ycsbt.settings import Settings
from styx.errors import ConfigurationError

KEYS_DEFAULT: Final = 1_000_000
RATE_SHARE: Final = 0.5
"""Of the saturated throughput: the rate of the windows over time."""
WINDOW_INTERVALS_MIN: Final = 2.0
"""Of each step: so that snapshots fall into it."""
WITH: Final = "with snapshots"
WITHOUT: Final = "without snapshots"
HEADINGS: Final = ("what", "asked/s", "answered/s", "snapshots", "p50 ms", "p99 ms", "longest ms")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One window. `rate` is 0 where as much was asked as was answered; only the others have a time line and marks.

    `snapshots` were complete in it. Latencies in microseconds.
    """

    what: str
    rate: float
    throughput: float
    snapshots: int
    p50_us: int
    p99_us: int
    max_us: int
    timeline: list[Point] = []
    marks: list[Mark] = []


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--interval", type=float, default=1.0, metavar="SECONDS", help="between snapshots (default %(default)g)")
    add("--over-time", type=float, default=10.0, metavar="SECONDS", help="the window over time (default %(default)g)")
    add_rate_option(parser, f"over time, {RATE_SHARE:g} of what both manage")
    add_common_options(parser, Common(runs=4, window_s=3.0, warm_up_s=1.0, keys=KEYS_DEFAULT))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("snapshots", options, _measure, show)


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    interval_s = seconds_of("--interval", options.interval, 0.1)
    seconds = seconds_of("--over-time", options.over_time, 1)
    rate = rate_of(options)
    if bench.common.window_s < WINDOW_INTERVALS_MIN * interval_s:
        raise ConfigurationError(
            f"--window {bench.common.window_s:g} is too short: {WINDOW_INTERVALS_MIN:g} times --interval at least"
        )
    settings = Settings(keys=bench.common.keys, n_slots=bench.common.slots)
    async with place(bench) as here:
        storing = await here.cluster("with-snapshots", 1, snapshot_interval_s=interval_s)
        plain = await here.cluster("without-snapshots", 1, snapshot_interval_s=NEVER_SECONDS)
        async with (
            _subject(bench, storing, WITH, settings) as (with_them,),
            _subject(bench, plain, WITHOUT, settings) as (without,),
        ):
            tops = [await subject.warmed() for subject in (with_them, without)]
            for subject in (with_them, without):
                subject.expect(min(tops))  # so that both have the same number of requests under way
            for _, order in turns(bench.common.runs, (with_them, without)):
                for subject in order:
                    found.append(_measured(subject, await subject.saturated(), 0.0))
            rate = rate or float(f"{RATE_SHARE * min(tops):.3g}")
            for subject, cluster in ((without, plain), (with_them, storing)):
                url = cluster.urls()["coordinator"][0]
                step = partial(subject.over_time, rate, seconds, partial(watch, url))
                found.append(_measured(subject, await bench.quiet(step), rate))


def _subject(
    bench: Bench, cluster: BenchmarkCluster, name: str, settings: Settings
) -> AbstractAsyncContextManager[list[Subject]]:
    return subjects(bench, deployment_of(cluster), [Load(name, settings)], audited=False, check=cluster.check)


def _measured(subject: Subject, result: Result, rate: float) -> Measured:
    answered = result.answered
    return Measured(
        what=subject.name,
        rate=rate,
        throughput=result.throughput,
        snapshots=round(result.counters["coordinator"].get("styx_snapshots_total", 0.0)),
        p50_us=answered.p50_us,
        p99_us=answered.p99_us,
        max_us=answered.max_us,
        timeline=result.timeline if rate else [],
        marks=[mark for mark in result.marks if mark.what == SNAPSHOT] if rate else [],
    )


def show(found: Sequence[Measured]) -> Shown:
    """As a table, which ends with the ratio, and charts."""
    saturated = {what: [each for each in found if each.what == what and not each.rate] for what in (WITH, WITHOUT)}
    over_time = [each for each in found if each.rate]
    rows = [_row(f"{what}, as much as it takes", runs) for what, runs in saturated.items() if runs]
    rows += [_row(each.what, [each]) for each in over_time]
    lines = [text_table(HEADINGS, rows)]
    charts: dict[str, Callable[[Path], None]] = {}
    runs = list(zip(saturated[WITH], saturated[WITHOUT], strict=False))
    if runs:
        shares = [one.throughput / other.throughput for one, other in runs]
        lines.append(
            f"with snapshots, {statistics.median(shares):.1%} of the throughput without "
            f"({min(shares):.1%}-{max(shares):.1%})"
        )
        groups = [f"run {number}" for number in range(1, len(runs) + 1)]
        bars = {
            WITH: [one.throughput for one, _ in runs],
            WITHOUT: [other.throughput for _, other in runs],
        }
        charts["snapshots-rate"] = partial(
            grouped_bars, groups=groups, series=bars, y_label="transactions/s", title="As many requests as it takes"
        )
    for each in over_time:
        charts["snapshots" if each.what == WITH else "snapshots-none"] = partial(
            latency_over_time, points=each.timeline, marks=each.marks, title=f"{each.rate:.0f} requests/s, {each.what}"
        )
    return Shown("\n".join(lines), charts)


def _row(what: str, runs: Sequence[Measured]) -> tuple[str, ...]:
    throughput, snapshots, p50_us, p99_us = (
        statistics.median(getattr(each, field) for each in runs)
        for field in ("throughput", "snapshots", "p50_us", "p99_us")
    )
    return (
        what,
        f"{runs[0].rate:.0f}" if runs[0].rate else "-",
        f"{throughput:.0f}",
        f"{snapshots:g}",
        f"{p50_us / 1e3:.1f}",
        f"{p99_us / 1e3:.1f}",
        f"{max(each.max_us for each in runs) / 1e3:.1f}",
    )
