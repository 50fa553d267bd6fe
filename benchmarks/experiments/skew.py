"""The highest rate, and the latency at one rate, against the popularity of few accounts (the Zipf exponent).

First the highest rates (p99 under a second) are searched, each from the result of the one before. Then latency is
measured at one rate for all: half of the lowest highest rate.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import msgspec

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.driver.zipf import EXPONENT_MAX
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.medians import median
from benchmarks.experiments.numbers import numbers_of, workers_of, workers_shown
from benchmarks.experiments.panels import Line, Panel, draw_panels
from benchmarks.experiments.place import place
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.text_table import text_table
from benchmarks.experiments.turns import turns
from benchmarks.ycsbt.settings import Settings

EXPONENTS: Final = "0,0.5,0.8,0.9,0.99,0.999"
LATENCY_SHARE: Final = 0.5
"""Of the lowest of all highest rates."""


class Measured(msgspec.Struct, kw_only=True):
    """Of one exponent on one cluster, one figure for each run.

    `highest` are the highest rates; `at_rate` is the rate at which latencies were measured, 0 before that. Latencies in
    microseconds.
    """

    workers: int
    exponent: float
    highest: list[float] = []
    at_rate: float = 0.0
    p50_us: list[int] = []
    p99_us: list[int] = []


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--workers", default="1,2", metavar="N,N", help="clusters of so many (default %(default)s)")
    add(
        "--exponents",
        default=EXPONENTS,
        metavar="S,S",
        help=f"Zipf exponents of the creditors, from 0 (uniform) to {EXPONENT_MAX} (default %(default)s)",
    )
    add_common_options(parser, Common(runs=1, window_s=2.5, warm_up_s=1.0))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("skew", options, _measure, show)


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    sizes, exponents = workers_of(options.workers), numbers_of("--exponents", options.exponents, 0, EXPONENT_MAX)
    async with place(bench) as here, AsyncExitStack() as stack:
        pairs: list[tuple[Subject, Measured]] = []
        for workers in sizes:
            cluster = await here.cluster(f"skew-{workers}", workers)
            loads = [
                Load(
                    f"{workers_shown(workers)}, Zipf {exponent:g}",
                    Settings(keys=bench.common.keys, n_slots=bench.common.slots, zipf=exponent),
                )
                for exponent in exponents
            ]
            of_cluster = await stack.enter_async_context(
                subjects(bench, deployment_of(cluster), loads, check=cluster.check)
            )
            measured = [Measured(workers=workers, exponent=exponent) for exponent in exponents]
            found += measured
            await _search(bench, list(zip(of_cluster, measured, strict=True)))
            pairs += zip(of_cluster, measured, strict=True)
        rate = float(f"{LATENCY_SHARE * min(min(measured.highest) for measured in found):.3g}")
        for _, order in turns(bench.common.runs, [partial(_latency, *pair, rate) for pair in pairs]):
            for step in order:
                await step()


async def _search(bench: Bench, pairs: list[tuple[Subject, Measured]]) -> None:
    subject, _ = pairs[0]
    await subject.warmed()
    known = 0.0
    for _, order in turns(bench.common.runs, pairs):
        for subject, measured in order:
            if known:
                subject.expect(known)
            known = await subject.highest_rate()
            measured.highest.append(known)


async def _latency(subject: Subject, measured: Measured, rate: float) -> None:
    answered = (await subject.at(rate)).answered
    measured.at_rate = rate
    measured.p50_us.append(answered.p50_us)
    measured.p99_us.append(answered.p99_us)


def show(found: Sequence[Measured]) -> Shown:
    """As a table and a chart; of several runs the medians."""
    exponents = sorted({each.exponent for each in found})
    sizes = sorted({each.workers for each in found})
    at_rate = max(each.at_rate for each in found)
    by_place = {(each.workers, each.exponent): each for each in found}
    rows = []
    for workers in sizes:
        first = by_place[workers, exponents[0]]
        for exponent in exponents:
            each = by_place[workers, exponent]
            highest, uniform = median(each.highest), median(first.highest)
            rows.append(
                (
                    str(workers),
                    f"{exponent:g}",
                    "-" if highest is None else f"{highest:.0f}",
                    "-" if highest is None or uniform is None else f"{highest / uniform:.0%}",
                    _ms(median(each.p50_us)),
                    _ms(median(each.p99_us)),
                )
            )
    headings = ("workers", "Zipf", "highest/s", f"by Zipf {exponents[0]:g}", f"p50 ms at {at_rate:.0f}/s", "p99 ms")

    def line(field: str, number: int, workers: int, by: float, label: str, dashed: bool = False) -> Line:
        values = [median(getattr(by_place[workers, exponent], field)) for exponent in exponents]
        return Line(label, [None if value is None else value / by for value in values], number, dashed)

    rates, latencies = [], []
    for number, workers in enumerate(sizes):
        name = workers_shown(workers)
        rates.append(line("highest", number, workers, 1, name))
        latencies.append(line("p50_us", number, workers, 1e3, f"{name} p50", dashed=True))
        latencies.append(line("p99_us", number, workers, 1e3, f"{name} p99"))
    panels = [
        Panel("highest rate, transactions/s", rates),
        Panel(f"latency in ms at {at_rate:.0f}/s", latencies, log=True),
    ]
    steps = [f"{exponent:g}" for exponent in exponents]
    title = "Transfers to few accounts"
    return Shown(
        text_table(headings, rows),
        {"skew": lambda path: draw_panels(path, "Zipf exponent", steps, panels, title)},
    )


def _ms(us: float | None) -> str:
    return "-" if us is None else f"{us / 1e3:.1f}"
