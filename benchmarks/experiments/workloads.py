"""The cost of a transaction of each kind: functions, messages between workers, workers' processor time, latency.

Each kind runs alone, at a moderate rate: a share of the throughput with few requests under way. Kinds of the same data
set run one after the other on one cluster, whose state is audited in the end.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any, Final, Protocol

import msgspec

from benchmarks.driver import options as driver_options
from benchmarks.driver.deployment.own_cluster import BenchmarkCluster, deployment_of
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.result import Result
from benchmarks.driver.session import Generators, MakeWorkload, Session
from benchmarks.driver.target import Outcome
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.medians import median
from benchmarks.experiments.numbers import workers_of, workers_shown
from benchmarks.experiments.place import place
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import IN_FLIGHT_MAX, SATURATING_RATE, Subject, audit_or_fail
from benchmarks.experiments.text_table import text_table
from benchmarks.experiments.workload_table import DATA_SETS, DataSet, Kind
from styx.errors import ConfigurationError

FEW_IN_FLIGHT: Final = 250
"""About an epoch of one worker: what keeps it busy, and is answered soon even if transactions are long."""
RATE_SHARE: Final = 0.5
"""Of what is managed so."""
RATE_TRIES: Final = 3
LOWER: Final = 0.7
"""From one try to the next, if the rate is not held."""
TIMEOUT_SECONDS: Final = 60.0
HEADINGS: Final = (
    *("data", "kind", "workers", "at/s", "aborted", "calls", "messages", "workers' µs each", "p50 ms", "p99 ms"),
)


class Measured(msgspec.Struct, kw_only=True):
    """One kind on so many workers: what was seen at `rate`, a figure each run.

    `calls` (functions, the request's own included), `messages` between workers and `cpu_us` of all workers are for one
    transaction; `aborted` is a share of the transactions.
    """

    data: str
    kind: str
    workers: int
    rate: float
    aborted: list[float] = []
    calls: list[float] = []
    messages: list[float] = []
    cpu_us: list[float] = []
    p50_us: list[int] = []
    p99_us: list[int] = []


class Opened(Protocol):
    """A data set that is loaded."""

    def __call__(self, kind: Kind) -> AbstractAsyncContextManager[Subject]:
        """One of its kinds, ready to be measured."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--workers", default="1", metavar="N,N", help="clusters of so many (default %(default)s)")
    add(
        "--only",
        default="",
        metavar="WORD,WORD",
        help="data sets whose names have one of these words; there are " + "; ".join(each.name for each in DATA_SETS),
    )
    add_common_options(parser, Common(runs=3, window_s=3.0, warm_up_s=1.0))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("workloads", options, _measure, show)


def chosen(words: str) -> list[DataSet]:
    """Of the table; raises `ConfigurationError` if there are none."""
    wanted = [word.strip().lower() for word in words.split(",")]
    found = [each for each in DATA_SETS if any(word in each.name.lower() for word in wanted)]
    if not found:
        raise ConfigurationError(f"--only {words}: there are {'; '.join(each.name for each in DATA_SETS)}")
    return found


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    sizes, data_sets = workers_of(options.workers), chosen(options.only)
    async with place(bench) as here:
        for number, data_set in enumerate(data_sets):
            for workers in sizes:
                module = import_module(f"{data_set.package}.options")
                given = [options_of(module, data_set, kind, workers, bench.common.slots) for kind in data_set.kinds]
                app = module.make_workload(given[0]).app_target
                cluster = await here.cluster(f"workloads-{number}-{workers}", workers, app=app)
                async with data_set_on(bench, cluster, data_set, module.make_workload, given) as opened:
                    for kind in data_set.kinds:
                        async with opened(kind) as subject:
                            if not found:
                                await subject.warmed()
                            measured = Measured(data=data_set.name, kind=kind.name, workers=workers, rate=0.0)
                            await at_a_moderate_rate(bench, subject, kind, measured)
                            found.append(measured)
                await cluster.end()


def options_of(module: Any, data_set: DataSet, kind: Kind, workers: int, slots: int) -> argparse.Namespace:
    """As if they stood on the command line of the workload's own command."""
    parser = argparse.ArgumentParser(prog=f"{data_set.name}: {kind.name}")
    driver_options.add_deployment_options(parser)
    module.add_options(parser)
    words = ["--on", "cluster", "--workers", str(workers), "--slots", str(slots)]
    options = parser.parse_args([*words, *data_set.words.split(), *kind.words.split()])
    driver_options.check(options)
    return options


@asynccontextmanager
async def data_set_on(
    bench: Bench,
    cluster: BenchmarkCluster,
    data_set: DataSet,
    make_workload: MakeWorkload,
    options: Sequence[argparse.Namespace],
) -> AsyncIterator[Opened]:
    """Loads it, and audits behind the block; `options` are those of its kinds. Raises `StepFailed`."""
    deployment, workers = deployment_of(cluster), workers_shown(cluster.options.workers)
    witnesses: list[Any] = []

    def session_of(number: int) -> Session:
        def say(text: str) -> None:
            bench.say(f"{data_set.name}: {text}")

        given = options[number]
        return Session(make_workload(given), Generators(make_workload, given), deployment, lambda _, __: None, say)

    @asynccontextmanager
    async def opened(kind: Kind) -> AsyncIterator[Subject]:
        number = data_set.kinds.index(kind)
        session = session_of(number)
        # With seeds of their own, no two kinds make the same requests.
        plan = LoadPlan(rate=1.0, clients=bench.common.clients, in_flight_max=IN_FLIGHT_MAX, seed=number + 1)
        async with session.clients(plan, TIMEOUT_SECONDS) as clients:
            yield Subject(bench, f"{data_set.name}: {kind.name}, {workers}", session, clients, cluster.check)
            witnesses.extend(await clients.witnesses())

    first = session_of(0)
    await first.load()
    since = await first.replies_end()
    yield opened
    if bench.common.audit:
        bench.say(f"{data_set.name}: auditing")
        await audit_or_fail(data_set.name, first, witnesses, since)


async def at_a_moderate_rate(bench: Bench, subject: Subject, kind: Kind, measured: Measured) -> None:
    """Adds a figure each run to `measured`. Raises `StepFailed` if no rate that was tried is held."""
    rate = kind.rate
    if rate is None:
        busy = await subject.run(SATURATING_RATE, in_flight=FEW_IN_FLIGHT // bench.common.clients)
        rate = RATE_SHARE * busy.throughput
    for tries_left in reversed(range(RATE_TRIES)):
        measured.rate = float(f"{rate:.3g}")
        try:
            results = [await subject.at(measured.rate) for _ in range(bench.common.runs)]
        except StepFailed:
            if not tries_left:
                raise
            rate *= LOWER
        else:
            for result in results:
                _note(measured, result)
            return


def _note(measured: Measured, result: Result) -> None:
    replied = sum(result.outcomes.values())
    measured.aborted.append(result.outcomes.get(Outcome.ABORTED, 0) / max(replied, 1))
    measured.calls.append(result.calls or 0.0)
    measured.messages.append(result.peer.get("messages", 0.0))
    measured.cpu_us.append(result.cpu_us["worker"])
    measured.p50_us.append(result.answered.p50_us)
    measured.p99_us.append(result.answered.p99_us)


def show(found: Sequence[Measured]) -> Shown:
    """As a table; of several runs the medians, and of the processor time the range, too."""
    return Shown(text_table(HEADINGS, [_row(each) for each in found]), {})


def _row(each: Measured) -> tuple[str, ...]:
    aborted, calls, messages, cpu_us, p50_us, p99_us = (
        median(values) or 0.0
        for values in (each.aborted, each.calls, each.messages, each.cpu_us, each.p50_us, each.p99_us)
    )
    return (
        each.data,
        each.kind,
        str(each.workers),
        f"{each.rate:g}",
        f"{aborted:.1%}",
        f"{calls:.2f}",
        f"{messages:.2f}",
        f"{cpu_us:.0f} ({min(each.cpu_us):.0f}-{max(each.cpu_us):.0f})",
        f"{p50_us / 1e3:.1f}",
        f"{p99_us / 1e3:.1f}",
    )
