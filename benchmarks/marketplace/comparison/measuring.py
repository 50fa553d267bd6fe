"""One window of one line: fresh data, the closed loop, and the check of what is left."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.dev import styx_dev
from benchmarks.driver.deployment.own_cluster import ClusterShape, own_cluster
from benchmarks.driver.options import CLUSTER_SLOTS_DEFAULT, plan_of
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.result import Result
from benchmarks.driver.session import Generators, Session
from benchmarks.marketplace.comparison.figures import POSTGRES, STYX, Figures, answered
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.driving.workload import Marketplace
from benchmarks.marketplace.options import make_workload
from benchmarks.marketplace.postgres.consistency import checked
from benchmarks.marketplace.postgres.filling import fill
from benchmarks.marketplace.postgres.serving import Shape, served
from benchmarks.reference.postgres_accounting import counted
from benchmarks.reference.postgres_server import PostgresServer

Say = Callable[[str], None]
SIZES: Final = (2, 4, 8, 16, 32)
"""Connections that are tried."""
TRY_SECONDS: Final = 2.0
TRY_WARM_UP_SECONDS: Final = 1.0
SNAPSHOT_SECONDS: Final = 10.0
_IN_CONFLICT: Final = "styx_lock_phase_transactions_total"


class Asked(NamedTuple):
    """What is to be measured: the command's options with one exponent, and how to tell what happens."""

    options: argparse.Namespace
    zipf: float
    turn: int
    say: Say

    def fresh(self) -> argparse.Namespace:
        """The options of a run of its own, whose checkouts have other names than those of all other runs."""
        return argparse.Namespace(
            **{**vars(self.options), "seller_zipf": self.zipf, "run_name": None, "mirror_file": None}
        )


async def styx_figures(asked: Asked) -> Figures:
    """On a new deployment, gone afterwards. Raises what deployments and clients raise."""
    options = asked.fresh()
    workload = make_workload(options)
    async with _deployed(options, workload) as deployment:
        session = _session(workload, options, deployment, asked.say)
        await session.load()
        result, witnesses = await _window(session, plan_of(options, 1.0), options)
        if not options.no_audit:
            asked.say("auditing")
            result.audit = await session.audit(witnesses)
    conflicts = sum(
        value for role in result.counters.values() for name, value in role.items() if name.startswith(_IN_CONFLICT)
    )
    transactions = result.throughput * result.window_s
    return Figures(line=STYX, zipf=asked.zipf, turn=asked.turn, again=conflicts / max(transactions, 1), result=result)


async def postgres_figures(asked: Asked, server: PostgresServer, connections: int) -> Figures:
    """On the server, whose tables are filled anew. Raises what deployments and clients raise."""
    plan = plan_of(asked.options, 1.0)
    result, witnesses = await _on_postgres(asked, server, connections, plan)
    undone, _ = await counted(server)
    if not asked.options.no_audit:
        result.audit = await checked(server.connection(), record_of(witnesses))
    return Figures(
        line=POSTGRES, zipf=asked.zipf, turn=asked.turn, again=undone / max(answered(result), 1), result=result
    )


async def best_connections(asked: Asked, server: PostgresServer) -> int:
    """The number of connections with the highest rate, each tried for a short time; the option's, if it is given."""
    options = asked.options
    if options.connections is not None:
        given: int = options.connections
        return given
    rates: dict[int, float] = {}
    for size in (each for each in SIZES if options.processes <= each <= max(options.concurrency, options.processes)):
        plan = LoadPlan(
            rate=1.0,
            duration_s=TRY_SECONDS,
            warm_up_s=TRY_WARM_UP_SECONDS,
            clients=options.clients,
            seed=options.seed,
            concurrency=options.concurrency,
        )
        result, _ = await _on_postgres(asked, server, size, plan)
        rates[size] = result.throughput
    best = max(rates, key=lambda size: rates[size])
    shown = ", ".join(f"{size}: {rate:.0f}/s" for size, rate in rates.items())
    asked.say(f"PostgreSQL, Zipf {asked.zipf:g}: connections {shown}; {best} are taken")
    return best


async def _on_postgres(
    asked: Asked, server: PostgresServer, connections: int, plan: LoadPlan
) -> tuple[Result, list[Any]]:
    options = asked.fresh()
    workload = make_workload(options)
    await fill(server.connection(), workload.initial())
    async with served(server, Shape(options.processes, connections, options.checkout)) as deployment:
        return await _window(_session(workload, options, deployment, asked.say), plan, options)


async def _window(session: Session, plan: LoadPlan, options: argparse.Namespace) -> tuple[Result, list[Any]]:
    async with session.clients(plan, options.timeout) as clients:
        result = await session.measure(clients, plan)
        return result, await clients.witnesses()


def _deployed(options: argparse.Namespace, workload: Marketplace) -> AbstractAsyncContextManager[Deployment]:
    if options.on == "dev":
        return styx_dev(workload)
    shape = ClusterShape(options.workers, CLUSTER_SLOTS_DEFAULT, SNAPSHOT_SECONDS, through_gateway=True)
    return own_cluster(workload.app_target, workload.app.name, shape)


def _session(workload: Marketplace, options: argparse.Namespace, deployment: Deployment, say: Say) -> Session:
    return Session(workload, Generators(make_workload, options), deployment, lambda _, __: None, say)
