"""`python -m benchmarks.reference http`: `styx dev` beside FastAPI, asyncpg and PostgreSQL, in turns.

Both answer the same transfers of the same clients. PostgreSQL has its best form, one call of a PL/pgSQL function: under
SERIALIZABLE, repeated until it is serialized, and under READ COMMITTED, with its rows locked in the order of their
keys, which is right for transfers, but not for functions that do not know their rows before. `styx dev` is always
serializable, and keeps each answered transaction through a crash of the machine; so does PostgreSQL, unless
`--synchronous-commit off` says otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import msgspec

from benchmarks.driver import options as driver_options
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.dev import styx_dev
from benchmarks.driver.environment import processors
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.result import Result
from benchmarks.driver.session import CLIENT_ROLE, Generators, Session
from benchmarks.driver.summary import slow_phase
from benchmarks.driver.workload import Workload
from benchmarks.reference import line
from benchmarks.reference.fastapi_deployment import Served, fastapi
from benchmarks.reference.http_application import TRANSFER_VARIABLE
from benchmarks.reference.pgbench_run import DURABILITIES
from benchmarks.reference.postgres import check_connections
from benchmarks.reference.postgres_deployment import fill
from benchmarks.reference.postgres_server import postgres_server
from benchmarks.reference.postgres_tuning import best
from benchmarks.ycsbt.options import add_options as add_workload_options
from benchmarks.ycsbt.options import make_workload
from styx.embedded_engine.options import N_SLOTS_DEFAULT
from styx.errors import ConfigurationError

APPLICATION: Final = "benchmarks.reference.http_application:make_app"
STYX: Final = "styx dev"
SIZES: Final = (4, 8, 16, 32)
"""Connections that are tried."""
TRY_SECONDS: Final = 1.5
TURNS_MAX: Final = 100


class Form(NamedTuple):
    """How PostgreSQL is asked: a transaction's isolation, and a name in the bank's `TRANSFERS`."""

    isolation: str
    transfer: str


FORMS: Final = {
    "SERIALIZABLE": Form("serializable", "function"),
    "READ COMMITTED, ordered locks": Form("read committed", "ordered"),
}


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one line."""

    line: str
    turn: int
    result: Result

    @property
    def server_us(self) -> float:
        """Processor time of all servers for a transaction, in microseconds; the client's is not in it."""
        return sum(us for role, us in self.result.cpu_us.items() if role != CLIENT_ROLE)

    @property
    def wrong(self) -> bool:
        """Whether requests were missed, or the state is not what the clients were told."""
        audit = self.result.audit
        return bool(self.result.missed or (audit is not None and audit.violations))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--concurrency", type=int, default=64, metavar="N", help="requests under way at once (default %(default)s)")
    add("--turns", type=int, default=1, metavar="N", help="windows of each line (default %(default)s)")
    add("--processes", type=int, default=processors(), metavar="N", help="uvicorn's (default %(default)s)")
    add("--connections", type=int, metavar="N", help="of all its processes (default: the best of some, tried first)")
    add("--synchronous-commit", choices=tuple(DURABILITIES), default="on", help="PostgreSQL's (default %(default)s)")
    driver_options.add_load_options(parser)
    add_workload_options(parser)
    parser.set_defaults(on="http", workers=1, slots=N_SLOTS_DEFAULT)


def run(options: argparse.Namespace) -> int:
    """Measures and prints; the exit status."""
    return line.run_command(_run(options))


async def _run(options: argparse.Namespace) -> int:
    check(options)
    rows: list[Window] = []
    lines = (STYX, *FORMS)
    sizes = {name: await _connections(options, name) for name in FORMS}
    for turn in range(options.turns):
        for name in lines if turn % 2 == 0 else reversed(lines):
            plan = driver_options.plan_of(options, 1.0)
            result = await _window(options, name, sizes.get(name, 0), plan, audited=not options.no_audit)
            rows.append(Window(line=name, turn=turn + 1, result=result))
            line.say(row_of(rows[-1]))
    print(table(rows, options.synchronous_commit))
    if options.out is not None:
        options.out.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
    return line.FAILED if any(each.wrong for each in rows) else line.OK


def check(options: argparse.Namespace) -> None:
    """Raises `ConfigurationError` for what cannot be."""
    if options.loaded:
        raise ConfigurationError("--loaded: each window gets new data")
    for name, value, most in (("--turns", options.turns, TURNS_MAX), ("--processes", options.processes, 64)):
        if not 1 <= value <= most:
            raise ConfigurationError(f"{name} is a number from 1 to {most}, got {value}")
    check_connections(options.connections, options.processes)
    driver_options.plan_of(options, 1.0)


async def _connections(options: argparse.Namespace, name: str) -> int:
    if options.connections is not None:
        given: int = options.connections
        return given
    rates = {}
    for size in SIZES:
        plan = LoadPlan(
            rate=1.0, duration_s=TRY_SECONDS, warm_up_s=0.5, clients=options.clients, concurrency=options.concurrency
        )
        rates[size] = (await _window(options, name, size, plan, audited=False)).throughput
    line.say(f"{name}: connections {', '.join(f'{size}: {rate:.0f}/s' for size, rate in rates.items())}")
    return best(rates)


async def _window(options: argparse.Namespace, name: str, connections: int, plan: LoadPlan, *, audited: bool) -> Result:
    workload = make_workload(options)
    async with _deployed(options, workload, name, connections) as deployment:
        session = Session(workload, Generators(make_workload, options), deployment, lambda _, __: None, line.say)
        if name == STYX:
            await session.load()
        async with session.clients(plan, options.timeout) as clients:
            result = await session.measure(clients, plan)
            witnesses = await clients.witnesses()
        if audited:
            result.audit = await session.audit(witnesses)
        return result


@asynccontextmanager
async def _deployed(
    options: argparse.Namespace, workload: Workload, name: str, connections: int
) -> AsyncIterator[Deployment]:
    if name == STYX:
        async with styx_dev(workload) as deployment:
            yield deployment
        return
    form = FORMS[name]
    settings = {"default_transaction_isolation": form.isolation, "synchronous_commit": options.synchronous_commit}
    with postgres_server(settings) as server:
        await fill(server, workload)
        environment = {TRANSFER_VARIABLE: form.transfer}
        async with fastapi(server, Served(APPLICATION, options.processes, connections, environment, {})) as deployment:
            yield deployment


def table(rows: list[Window], synchronous_commit: str) -> str:
    """A line for each window, and what an answer means on both sides."""
    header = f"{'line':<32} {'rate/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'server µs':>10} {'wrong':>6}"
    meaning = f"an answer means: {STYX}, {DURABILITIES['on']}; PostgreSQL, {DURABILITIES[synchronous_commit]}"
    slow = dict.fromkeys(each for row in rows for each in slow_phase(row.result))
    return "\n".join([header, *map(row_of, rows), meaning, *slow])


def row_of(each: Window) -> str:
    """One window."""
    result = each.result
    return (
        f"{each.line:<32} {result.throughput:>8.0f} {result.answered.p50_us / 1e3:>8.1f} "
        f"{result.answered.p99_us / 1e3:>8.1f} {each.server_us:>10.0f} {'YES' if each.wrong else 'no':>6}"
    )
