"""Latency over time around the death of a worker, and around its later replacement.

Under a steady load, a worker is killed after a quarter of the window, and the others take over its slots. In the middle
of the window a new worker is started, which gets its share of the slots. Each run kills another worker. Every request
must be answered, and the state is audited in the end.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from benchmarks.driver.charts import latency_over_time
from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.driver.interruption import Interruption, interruption, normal_p99_us
from benchmarks.driver.probe import Mark
from benchmarks.driver.result import Result
from benchmarks.driver.timeline import Point
from benchmarks.driver.worker_death import KILLED, REPLACED, TOOK_OVER, WorkerDeath, kill_and_replace
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.numbers import add_rate_option, rate_of, seconds_of
from benchmarks.experiments.place import SNAPSHOT_SECONDS, place
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import FINE_SECONDS, Load, subjects
from benchmarks.experiments.text_table import text_table
from benchmarks.ycsbt.settings import Settings
from styx.errors import ConfigurationError

KILLED_AT: Final = 0.25
"""Of the window."""
REPLACED_AT: Final = 0.5
OVER_TIME_SECONDS_MIN: Final = 4.0
WORKERS_MAX: Final = 16
RATE_SHARE: Final = 0.4
"""Of the saturated throughput: the workers that are left can hold it, and catch up."""
KEYS_DEFAULT: Final = 100_000
HEADINGS: Final = ("run", "what", "no reply for s", "longest ms", "p99 as before after s", "p99 ms before")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what clients saw of the death, and of the replacement's taking part (None: it never did).

    `normal_us` is the p99 of before. Latencies in microseconds.
    """

    rate: float
    normal_us: float
    death: Interruption
    replacement: Interruption | None
    timeline: list[Point]
    marks: list[Mark]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--workers", type=int, default=2, metavar="N", help="how many there are (default %(default)s)")
    add(
        "--snapshot-interval",
        type=float,
        default=SNAPSHOT_SECONDS,
        metavar="SECONDS",
        help="between snapshots (default %(default)g)",
    )
    add("--over-time", type=float, default=24.0, metavar="SECONDS", help="the window of each run (default %(default)g)")
    add_rate_option(parser, f"{RATE_SHARE:g} of what the cluster manages")
    add_common_options(parser, Common(runs=3, window_s=3.0, keys=KEYS_DEFAULT))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("recovery", options, _measure, show)


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    rate = rate_of(options)
    interval_s = seconds_of("--snapshot-interval", options.snapshot_interval, 0.1)
    seconds = seconds_of("--over-time", options.over_time, OVER_TIME_SECONDS_MIN)
    if not 2 <= options.workers <= WORKERS_MAX:
        raise ConfigurationError(
            f"--workers is a number from 2 to {WORKERS_MAX}, since one of them dies; got {options.workers}"
        )
    settings = Settings(keys=bench.common.keys, n_slots=bench.common.slots)
    async with place(bench) as here:
        cluster = await here.cluster("recovery", options.workers, snapshot_interval_s=interval_s)
        load = Load("recovery", settings)
        async with subjects(bench, deployment_of(cluster), [load], check=cluster.check) as (subject,):
            rate = rate or float(f"{RATE_SHARE * await subject.warmed():.3g}")
            for number in range(bench.common.runs):
                death = WorkerDeath(number % options.workers, KILLED_AT * seconds, REPLACED_AT * seconds)
                company = partial(kill_and_replace, cluster, cluster.urls()["coordinator"][0], death)
                result = await subject.over_time(rate, seconds, company)
                found.append(measured(result, rate, seconds))
                pause_s = found[-1].death.pause_s
                how_long = "until another worker came" if pause_s is None else f"for {pause_s:.1f} s"
                bench.say(f"run {number + 1}: no reply {how_long} after the death")
                if result.missed:
                    raise StepFailed(f"{result.missed} requests were never answered")


def measured(result: Result, rate: float, seconds: float) -> Measured:
    """Raises `StepFailed` if there was no death."""
    at = {mark.what: mark.at_s for mark in reversed(result.marks)}
    if REPLACED not in at:
        raise StepFailed("the run ended before a worker was killed and replaced")
    points, joined_s = result.timeline, at.get(TOOK_OVER)
    normal_us = normal_p99_us(points, at[KILLED])
    return Measured(
        rate=rate,
        normal_us=normal_us,
        death=interruption(points, FINE_SECONDS, at[KILLED], at[REPLACED], normal_us),
        replacement=None if joined_s is None else interruption(points, FINE_SECONDS, at[REPLACED], seconds, normal_us),
        timeline=points,
        marks=result.marks,
    )


def show(found: Sequence[Measured]) -> Shown:
    """As a table, and a chart of the run with the median pause."""
    rows = []
    for number, each in enumerate(found, 1):
        before = f"{each.normal_us / 1e3:.1f}"
        rows.append((str(number), "a worker dies", *_figures(each.death), before))
        rows.append((str(number), "a new one takes part", *_figures(each.replacement), before))
    pauses = [each.death.pause_s for each in found if each.death.pause_s is not None]
    text = text_table(HEADINGS, rows)
    if pauses:
        text += (
            f"\nafter a death no reply for {statistics.median(pauses):.1f} s "
            f"({min(pauses):.1f}-{max(pauses):.1f}), at {found[0].rate:.0f} requests/s"
        )
    shown = sorted(found, key=lambda each: each.death.pause_s or 0.0)[len(found) // 2]
    title = f"A worker's death and replacement at {shown.rate:.0f} requests/s"
    return Shown(text, {"recovery": lambda path: latency_over_time(path, shown.timeline, shown.marks, title)})


def _figures(seen: Interruption | None) -> tuple[str, str, str]:
    if seen is None:
        return "never did", "-", "-"
    return (
        "no reply came" if seen.pause_s is None else f"{seen.pause_s:.1f}",
        f"{seen.worst_us / 1e3:.1f}",
        "not yet" if seen.back_s is None else f"{seen.back_s:.1f}",
    )
