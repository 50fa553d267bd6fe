"""Latency against throughput for one worker, two workers, and a process that only echoes, from a low rate to
saturation.

Each is first measured at saturation, and then at shares of that throughput, in turns. A line ends where p99 reaches a
second, or fewer requests are answered than sent.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.driver.charts import latency_by_throughput
from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.driver.search import reasons_against
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.numbers import workers_of, workers_shown
from benchmarks.experiments.place import place
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import BOUND_SECONDS, Load, Subject, subjects
from benchmarks.experiments.text_table import text_table
from benchmarks.experiments.turns import turns
from benchmarks.ycsbt.settings import Settings

SHARES: Final = (0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95)
"""Of the saturated throughput."""
ECHO: Final = "echo"
HEADINGS: Final = ("what", "asked/s", "answered/s", "p50 ms", "p99 ms", "held")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one line; `held` if p99 stayed under the bound and all was answered. Latencies in microseconds."""

    what: str
    share: float
    rate: float
    throughput: float
    p50_us: int
    p99_us: int
    held: bool


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--workers", default="1,2", metavar="N,N", help="clusters of so many (default %(default)s)")
    add_common_options(parser, Common(runs=1, window_s=2.5, warm_up_s=1.0))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("latency", options, _measure, show)


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    sizes = workers_of(options.workers)
    settings = Settings(keys=bench.common.keys, n_slots=bench.common.slots)
    async with place(bench) as here, AsyncExitStack() as stack:
        echo = [Load(ECHO, settings, echoed=True)]
        lines = await stack.enter_async_context(subjects(bench, await here.echo(), echo))
        for workers in sizes:
            cluster = await here.cluster(f"latency-{workers}", workers)
            load = Load(workers_shown(workers), settings)
            lines += await stack.enter_async_context(
                subjects(bench, deployment_of(cluster), [load], check=cluster.check)
            )
        tops = {line.name: await line.warmed() for line in lines}
        for share in SHARES:
            steps = [partial(_step, line, share, tops[line.name]) for line in lines]
            for _, order in turns(bench.common.runs, steps):
                found += [await step() for step in order]
            lines = [line for line in lines if _mostly_held(found, line.name, share)]


async def _step(line: Subject, share: float, top: float) -> Measured:
    rate = float(f"{share * top:.3g}")
    result = await line.tried(rate)
    return Measured(
        what=line.name,
        share=share,
        rate=rate,
        throughput=result.throughput,
        p50_us=result.answered.p50_us,
        p99_us=result.answered.p99_us,
        held=not reasons_against(result, BOUND_SECONDS),
    )


def _mostly_held(found: Sequence[Measured], what: str, share: float) -> bool:
    return bool(statistics.median(each.held for each in found if (each.what, each.share) == (what, share)))


def show(found: Sequence[Measured]) -> Shown:
    """As a table and a chart; of several runs the medians."""
    names = list(dict.fromkeys(each.what for each in found))
    series: dict[str, list[tuple[float, float, float]]] = {}
    rows = []
    for name in names:
        points = series.setdefault(name, [])
        for share in sorted({each.share for each in found if each.what == name}):
            runs = [each for each in found if (each.what, each.share) == (name, share)]
            throughput, p50_us, p99_us = (
                statistics.median(getattr(each, field) for each in runs) for field in ("throughput", "p50_us", "p99_us")
            )
            held = _mostly_held(found, name, share)
            if held:
                points.append((throughput, p50_us, p99_us))
            figures = (f"{runs[0].rate:.0f}", f"{throughput:.0f}", f"{p50_us / 1e3:.1f}", f"{p99_us / 1e3:.1f}")
            rows.append((name, *figures, "yes" if held else "NO"))
    charts: dict[str, Callable[[Path], None]] = {}
    if any(series.values()):
        title = "Latency against throughput, transfers between uniform accounts"
        charts["latency"] = partial(latency_by_throughput, series=series, title=title)
    return Shown(text_table(HEADINGS, rows), charts)
