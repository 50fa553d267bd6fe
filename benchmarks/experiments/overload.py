"""`python -m benchmarks.experiments overload`: twice the load that can be served, for a minute, and what becomes of it.

For each workload, once from clients of Kafka and once through a gateway: the highest rate, with so many requests under
way that the deployment is never idle; then an open loop at twice that rate; then one at half of it. What is answered
must stay at the highest rate, memory flat, what cannot be served refused at once, and service normal two seconds later.
Exit status 0: all of it holds everywhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import msgspec

from benchmarks.driver.deployment.own_cluster import ClusterShape, own_cluster
from benchmarks.driver.plan import TIMEOUT_SECONDS_DEFAULT, LoadPlan
from benchmarks.driver.result import Result
from benchmarks.driver.session import Generators, Session
from benchmarks.driver.workload import Workload
from benchmarks.experiments.bench import Bench, Step, StepFailed
from benchmarks.experiments.overload_judge import Finding, findings
from benchmarks.experiments.place import SNAPSHOT_SECONDS
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.subject import FINE_SECONDS, IN_FLIGHT_MAX, audit_or_fail
from benchmarks.experiments.text_table import text_table
from benchmarks.tpcc.settings import Settings as TpcCSettings
from benchmarks.tpcc.workload import TpcC
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.errors import ConfigurationError

TIMES: Final = 2.0
AFTER_SHARE: Final = 0.5
"""Of the highest rate: the load that comes after, which a normal deployment hardly notices."""
FIRST_AT_ONCE: Final = 200
"""Requests under way when the highest rate is first measured. Then there are twice as many, or as many as were answered
in `AT_ONCE_SECONDS`, until that brings no more.
"""
AT_ONCE_SECONDS: Final = 0.4
MORE: Final = 1.05
ACTIVE_SECONDS_MIN: Final = 2.0
WORKLOADS: Final = ("uniform", "zipf", "tpcc")
WAYS: Final = ("kafka", "http")
ZIPF: Final = 0.99
HEADINGS: Final = ("load", "from", "what", "measured", "bound", "holds")


class Overloaded(msgspec.Struct, frozen=True, kw_only=True):
    """One workload on one way: the highest rate in transactions a second, and what was found past it."""

    workload: str
    way: str
    highest: float
    findings: list[Finding]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add(
        "--over-time",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long twice the load comes (default %(default)g)",
    )
    add("--workload", action="append", choices=WORKLOADS, help="only this one; repeatable (default: all)")
    add("--way", action="append", choices=WAYS, help="only from clients of Kafka, or over HTTP (default: both)")
    add("--warehouses", type=int, default=10, metavar="N", help="of TPC-C (default %(default)s)")
    add_common_options(parser, Common(runs=1, window_s=5.0, warm_up_s=2.0, clients=2))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    return carry_out("overload", options, _measure, show)


def workload_of(options: argparse.Namespace) -> Workload:
    """Of `options.kind`, in client processes as well. Raises `ConfigurationError`."""
    if options.kind == "tpcc":
        return TpcC(TpcCSettings(warehouses=options.warehouses, mix="new-order-payment"))
    return YcsbT(Settings(keys=options.keys, n_slots=options.slots, zipf=ZIPF if options.kind == "zipf" else 0.0))


async def _measure(bench: Bench, options: argparse.Namespace, found: list[Overloaded]) -> None:
    if options.over_time < ACTIVE_SECONDS_MIN:
        raise ConfigurationError(f"--over-time is a number from {ACTIVE_SECONDS_MIN:g} on, got {options.over_time:g}")
    asked = [
        (argparse.Namespace(**{**vars(options), "kind": kind}), way)
        for kind in options.workload or WORKLOADS
        for way in options.way or WAYS
    ]
    for each, _ in asked:
        workload_of(each)
    for each, way in asked:
        found.append(await _past_the_limit(bench, each, way))
    wrong = [f"{one.workload} from {one.way}: {each.what}" for one in found for each in one.findings if not each.holds]
    if wrong:
        raise StepFailed("; ".join(wrong))


async def _past_the_limit(bench: Bench, options: argparse.Namespace, way: str) -> Overloaded:
    workload, name = workload_of(options), f"{options.kind} from {way}"
    shape = ClusterShape(1, bench.common.slots, SNAPSHOT_SECONDS, through_gateway=way == "http")

    def say(text: str) -> None:
        bench.say(f"{name}: {text}")

    async with own_cluster(workload.app_target, workload.app.name, shape) as deployment:
        session = Session(workload, Generators(workload_of, options), deployment, lambda _, __: None, say)
        await session.load()
        async with session.clients(_plan(bench, 1.0), TIMEOUT_SECONDS_DEFAULT) as clients:
            since = await session.replies_end()

            async def step(plan: LoadPlan) -> Result:
                result = await session.measure(clients, plan)
                bench.steps.append(Step(subject=name, result=result))
                return result

            highest, at_once, more = 0.0, FIRST_AT_ONCE, True
            while more and at_once < IN_FLIGHT_MAX:
                rate = (await step(_plan(bench, 1.0, concurrency=at_once))).throughput
                more = rate > MORE * highest
                highest = max(highest, rate)
                at_once = max(2 * at_once, int(highest * AT_ONCE_SECONDS))
            if not highest:
                raise StepFailed(f"{name}: nothing was answered")
            say(f"highest rate {highest:.0f}/s")
            past = await step(_plan(bench, TIMES * highest, seconds=options.over_time))
            after = await step(_plan(bench, AFTER_SHARE * highest, warm_up_s=0.0))
            witnesses = await clients.witnesses()
        if bench.common.audit:
            await audit_or_fail(name, session, witnesses, since)
    judged = findings(highest, past, after)
    for each in judged:
        say(f"{each.what}: {each.measured}, {'holds' if each.holds else 'DOES NOT HOLD'}")
    return Overloaded(workload=options.kind, way=way, highest=highest, findings=judged)


def _plan(
    bench: Bench,
    rate: float,
    *,
    seconds: float | None = None,
    warm_up_s: float | None = None,
    concurrency: int | None = None,
) -> LoadPlan:
    common = bench.common
    return LoadPlan(
        rate=rate,
        duration_s=common.window_s if seconds is None else seconds,
        warm_up_s=common.warm_up_s if warm_up_s is None else warm_up_s,
        interval_s=FINE_SECONDS,
        clients=common.clients,
        in_flight_max=IN_FLIGHT_MAX,
        concurrency=concurrency,
    )


def show(found: Sequence[Overloaded]) -> Shown:
    """A row for each finding."""
    rows = [
        (one.workload, one.way, each.what, each.measured, each.bound, "yes" if each.holds else "NO")
        for one in found
        for each in one.findings
    ]
    tops = [f"{one.workload} from {one.way}: highest rate {one.highest:.0f}/s" for one in found]
    return Shown("\n".join([text_table(HEADINGS, rows), *tops]), {})
