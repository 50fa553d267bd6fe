"""The cost of a transaction on more workers, by the share of transactions that cross partitions.

All processes share this machine's processors. So the measure of scaling is the workers' total processor time at one
rate. The throughput of the whole machine is shown beside it. A cluster has one slot for each worker, so each
transaction between partitions crosses workers. A single worker has two slots.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

import msgspec

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.driver.result import Result
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.medians import median
from benchmarks.experiments.numbers import add_rate_option, numbers_of, rate_of, workers_of, workers_shown
from benchmarks.experiments.panels import Line, Panel, draw_panels
from benchmarks.experiments.place import place
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.text_table import text_table
from benchmarks.experiments.turns import turns
from benchmarks.ycsbt.settings import Settings

SLOTS_MIN: Final = 2
RATE_SHARE: Final = 0.8
"""Of the saturated throughput of the slowest: the rate for all."""
RATE_TRIES: Final = 3
LOWER: Final = 0.85
"""From one try to the next, if one of them does not hold the rate."""
HEADINGS: Final = (
    "workers",
    "multi-partition",
    "saturated/s",
    "at/s",
    "workers' µs each",
    "by the first",
    "messages each",
    "bytes each",
)


class Measured(msgspec.Struct, kw_only=True):
    """Of one share on one cluster: `saturated` transactions a second, and what was seen at `rate`, a figure each run.

    `cpu_us`, `messages` and `bytes` are for one transaction, over all workers.
    """

    workers: int
    share: float
    saturated: float
    rate: float = 0.0
    cpu_us: list[float] = []
    messages: list[float] = []
    bytes: list[float] = []


class _Place(NamedTuple):
    subject: Subject
    measured: Measured


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--workers", default="1,2,4,8", metavar="N,N", help="clusters of so many (default %(default)s)")
    add(
        "--shares",
        default="0,0.5,1",
        metavar="X,X",
        help="shares of the transactions that cross partitions, from 0 to 1 (default %(default)s)",
    )
    add_rate_option(parser, f"{RATE_SHARE:g} of what the slowest manages")
    add_common_options(parser, Common(runs=1, window_s=2.5, warm_up_s=1.0))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("scaling", options, _measure, show)


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    sizes, shares = workers_of(options.workers), numbers_of("--shares", options.shares, 0, 1)
    rate = rate_of(options)
    async with place(bench) as here, AsyncExitStack() as stack:
        places: list[_Place] = []
        for workers in sizes:
            slots = max(workers, SLOTS_MIN)
            cluster = await here.cluster(f"scaling-{workers}", workers, slots=slots)
            loads = [
                Load(
                    f"{workers_shown(workers)}, {share:.0%} multi-partition",
                    Settings(keys=bench.common.keys, n_slots=slots, multi_partition=share),
                )
                for share in shares
            ]
            of_cluster = await stack.enter_async_context(
                subjects(bench, deployment_of(cluster), loads, check=cluster.check)
            )
            known = (await of_cluster[0].saturated()).throughput
            for subject, share in zip(of_cluster, shares, strict=True):
                subject.expect(known)
                saturated = (await subject.saturated()).throughput
                places.append(_Place(subject, Measured(workers=workers, share=share, saturated=saturated)))
                found.append(places[-1].measured)
        rate = rate or RATE_SHARE * min(measured.saturated for measured in found)
        await _at_one_rate(bench, places, rate)


async def _at_one_rate(bench: Bench, places: Sequence[_Place], rate: float) -> None:
    """At a lower rate, and from the beginning, if one of them does not hold it. Raises `StepFailed`."""
    for tries_left in reversed(range(RATE_TRIES)):
        rate = float(f"{rate:.3g}")
        for each in places:
            measured = each.measured
            measured.rate, measured.cpu_us, measured.messages, measured.bytes = rate, [], [], []
        try:
            for _, order in turns(bench.common.runs, places):
                for each in order:
                    _note(each.measured, await each.subject.at(rate))
            return
        except StepFailed as failed:
            if not tries_left:
                raise
            rate *= LOWER
            bench.say(f"{failed}: all are tried again at {rate:.0f}/s")


def _note(measured: Measured, result: Result) -> None:
    measured.cpu_us.append(result.cpu_us["worker"])
    measured.messages.append(result.peer.get("messages", 0.0))
    measured.bytes.append(result.peer.get("bytes", 0.0))


def show(found: Sequence[Measured]) -> Shown:
    """As a table and a chart; of several runs the medians."""
    sizes, shares = sorted({each.workers for each in found}), sorted({each.share for each in found})
    by_place = {(each.workers, each.share): each for each in found}
    rows = [_row(each, by_place[sizes[0], each.share]) for each in found]
    panels = []
    for field, label in (
        ("cpu_us", "workers' µs of CPU per transaction"),
        ("messages", "messages between workers per transaction"),
        ("bytes", "bytes between workers per transaction"),
    ):
        lines = []
        for number, share in enumerate(shares):
            at = [by_place.get((workers, share)) for workers in sizes]
            values = [None if each is None else median(getattr(each, field)) for each in at]
            lines.append(Line(f"{share:.0%} multi-partition", values, number))
        panels.append(Panel(label, lines))
    steps, rate = [str(workers) for workers in sizes], max(each.rate for each in found)
    title = f"Transfers at {rate:.0f}/s, all workers on one machine"
    return Shown(
        text_table(HEADINGS, rows),
        {"scaling": lambda path: draw_panels(path, "workers", steps, panels, title)},
    )


def _row(each: Measured, first: Measured) -> tuple[str, ...]:
    cpu_us, of_first, messages, size = map(median, (each.cpu_us, first.cpu_us, each.messages, each.bytes))
    return (
        str(each.workers),
        f"{each.share:.0%}",
        f"{each.saturated:.0f}",
        f"{each.rate:.0f}",
        "-" if cpu_us is None else f"{cpu_us:.1f}",
        "-" if cpu_us is None or not of_first else f"{cpu_us / of_first:.2f}",
        "-" if messages is None else f"{messages:.2f}",
        "-" if size is None else f"{size:.0f}",
    )
