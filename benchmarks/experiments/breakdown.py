"""The time of a transaction, by activity of the workers (functions, state, network, protocol, idle) and by the steps of
an epoch.

Workers time the steps of each epoch, and the activities of one epoch in many (docs/metrics.md). The loads are a very
low rate, and two thirds of each cluster's saturated throughput: with uniform accounts, with few popular accounts, and
with transfers that all cross workers. Times are by the clock, summed over all workers.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, NamedTuple

import msgspec

from benchmarks.driver.charts import grouped_bars
from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.driver.result import Result
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.numbers import seconds_of
from benchmarks.experiments.place import place
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import Load, subjects
from benchmarks.experiments.text_table import text_table
from benchmarks.ycsbt.settings import Settings

IDLE_RATE: Final = 100.0
"""The very low rate, in requests a second."""
BUSY_SHARE: Final = 0.67
"""The share of the saturated throughput."""
SLOTS_OF_TWO: Final = 2
"""One for each worker: half of the transfers between any two accounts cross workers."""
SECONDS_MIN: Final = 1.0
PARTS: Final = ("function", "state", "network", "protocol", "idle")
STEPS: Final = (
    "sequencing",
    "execution",
    "barrier_1",
    "validation",
    "record",
    "barrier_2",
    "lock_phase",
    "commit",
    "replies",
)
_STEP_SUM: Final = re.compile(r"styx_epoch_step_seconds_sum\{step=(\w+)\}")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Of one load: microseconds a transaction by part (over `sampled` transactions) and by step, over all workers, and
    of processor time by role. `epoch_size`: transactions that a worker begins in an epoch. `p50_us` is clients' median.
    """

    load: str
    throughput: float
    p50_us: int
    epoch_size: float
    sampled: int
    parts_us: dict[str, float]
    steps_us: dict[str, float]
    cpu_us: dict[str, float]


class Planned(NamedTuple):
    """A load: its name, its workers, how its requests are drawn, and how much of it there is."""

    name: str
    workers: int
    zipf: float = 0.0
    multi_partition: float | None = None
    idle: bool = False


LOADS: Final = (
    Planned("1 worker, 100/s", 1, idle=True),
    Planned("1 worker", 1),
    Planned("1 worker, Zipf 0.99", 1, zipf=0.99),
    Planned("2 workers", 2),
    Planned("2 workers, all crossing", 2, multi_partition=1.0),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--sampled", type=float, default=8.0, metavar="SECONDS", help="what is broken down (default %(default)g)"
    )
    add_common_options(parser, Common(runs=1, window_s=2.5, warm_up_s=1.0))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("breakdown", options, _measure, show)


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    seconds = seconds_of("--sampled", options.sampled, SECONDS_MIN)
    async with place(bench) as here, AsyncExitStack() as stack:
        for workers in sorted({planned.workers for planned in LOADS}):
            slots = bench.common.slots if workers == 1 else SLOTS_OF_TWO
            cluster = await here.cluster(f"breakdown-{workers}", workers, slots=slots)
            of_cluster = [planned for planned in LOADS if planned.workers == workers]
            loads = [
                Load(
                    planned.name,
                    Settings(
                        keys=bench.common.keys,
                        n_slots=slots,
                        zipf=planned.zipf,
                        multi_partition=planned.multi_partition,
                    ),
                )
                for planned in of_cluster
            ]
            ready = await stack.enter_async_context(subjects(bench, deployment_of(cluster), loads, check=cluster.check))
            for subject, planned in zip(ready, of_cluster, strict=True):
                rate = IDLE_RATE if planned.idle else float(f"{BUSY_SHARE * await subject.warmed():.3g}")
                result = await bench.quiet(partial(subject.over_time, rate, seconds))
                found.append(measured(planned.name, result))


def measured(load: str, result: Result) -> Measured:
    """Of the workers' own counters in the window. Raises `StepFailed` if none of its epochs was timed in detail."""
    workers = result.counters.get("worker", {})
    sampled = workers.get("styx_sampled_transactions_total", 0.0)
    transactions = sum(value for name, value in workers.items() if name.startswith("styx_transactions_total{"))
    if not sampled or not transactions:
        raise StepFailed(f"{load}: no transaction was in an epoch that was timed in detail; --sampled is too short")
    steps = {match[1]: value for name, value in workers.items() if (match := _STEP_SUM.fullmatch(name))}
    epochs = workers.get("styx_epoch_transactions_count", 0.0)
    return Measured(
        load=load,
        throughput=result.throughput,
        p50_us=result.answered.p50_us,
        epoch_size=workers.get("styx_epoch_transactions_sum", 0.0) / epochs if epochs else 0.0,
        sampled=round(sampled),
        parts_us={
            part: workers.get(f"styx_sampled_seconds_total{{part={part}}}", 0.0) / sampled * 1e6 for part in PARTS
        },
        steps_us={step: steps.get(step, 0.0) / transactions * 1e6 for step in STEPS},
        cpu_us=result.cpu_us,
    )


def show(found: Sequence[Measured]) -> Shown:
    """As three tables and two charts."""
    loads = [each.load for each in found]
    roles = sorted({role for each in found for role in each.cpu_us})
    tables = [
        _table("workers' time by part, µs a transaction", loads, PARTS, [each.parts_us for each in found]),
        _table("workers' time by an epoch's step, µs a transaction", loads, STEPS, [each.steps_us for each in found]),
        _table("processor time by process, µs a transaction", loads, roles, [each.cpu_us for each in found]),
        text_table(
            ("the load", *loads),
            [
                ("transactions/s", *(f"{each.throughput:.0f}" for each in found)),
                ("median latency, ms", *(f"{each.p50_us / 1e3:.1f}" for each in found)),
                ("transactions an epoch", *(f"{each.epoch_size:.1f}" for each in found)),
                ("transactions timed", *(str(each.sampled) for each in found)),
            ],
        ),
    ]
    parts = {each.load: [_percent(each.parts_us, part) for part in PARTS] for each in found}
    steps = {each.load: [_percent(each.steps_us, step) for step in STEPS] for each in found}
    names = [step.replace("_", " ") for step in STEPS]
    draw = partial(grouped_bars, y_label="% of the epochs' time")
    return Shown(
        "\n\n".join(tables),
        {
            "breakdown": partial(draw, groups=PARTS, series=parts, title="Workers' time by what they do"),
            "breakdown-steps": partial(draw, groups=names, series=steps, title="Workers' time by an epoch's step"),
        },
    )


def _table(title: str, loads: Sequence[str], names: Sequence[str], each_us: Sequence[Mapping[str, float]]) -> str:
    """Microseconds, and the share of the column's sum."""
    rows = [(name, *(f"{us.get(name, 0.0):.1f} ({_percent(us, name):.0f} %)" for us in each_us)) for name in names]
    return text_table((title, *loads), [*rows, ("in all", *(f"{sum(us.values()):.1f}" for us in each_us))])


def _percent(us: Mapping[str, float], name: str) -> float:
    return 100 * us.get(name, 0.0) / max(sum(us.values()), 1e-9)
