"""`python -m benchmarks.reference postgres`: the same transfers in PostgreSQL, which a user would use instead.

A server of its own as durable as by default (fsync, synchronous commit), SERIALIZABLE, each transfer one statement and
one round trip on a pool of asyncpg connections, prepared. Transactions that could not be serialized are repeated by the
client, and counted. Without --connections several sizes of the pool are tried first, and the best one is taken.
"""

from __future__ import annotations

import argparse
from typing import Final

from asyncpg import PostgresError

from benchmarks.driver.result import SearchResult
from benchmarks.driver.target import Outcome
from benchmarks.reference import line
from benchmarks.reference.postgres_deployment import Counted, counted, postgres_deployment
from benchmarks.reference.postgres_server import CONNECTIONS_MAX, PostgresServer, postgres_server
from benchmarks.reference.postgres_tuning import SIZES, best, tried
from benchmarks.ycsbt.options import make_workload
from styx.errors import ConfigurationError

RATES_DEFAULT: Final = "1000"
RESERVED_CONNECTIONS: Final = 20
"""Of the server's, for filling, counting, auditing and the server itself."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--connections",
        type=int,
        metavar="N",
        help=f"of all clients together (default: the best of {', '.join(map(str, SIZES))}, tried first)",
    )
    parser.set_defaults(on="postgres", workers=1, slots=1)
    line.add_options(parser, RATES_DEFAULT)


def run(options: argparse.Namespace) -> int:
    """Measures and prints; the exit status."""
    try:
        return line.run_command(_run(options))
    except PostgresError as error:
        line.say(f"PostgreSQL says: {error}")
        return line.FAILED


async def _run(options: argparse.Namespace) -> int:
    line.check(options)
    check_connections(options.connections, options.clients)
    workload = make_workload(options)
    with postgres_server() as server:
        connections = options.connections
        if connections is None:
            rates = await tried(server, workload)
            connections = best(rates)
            shown = ", ".join(f"{size}: {rate:.0f}/s" for size, rate in rates.items())
            line.say(f"connections, always busy: {shown}; {connections} are taken")
        deployed = postgres_deployment(server, workload, connections, options.clients)
        return await line.measure_line(options, make_workload, deployed, lambda result: _note(server, result))


def check_connections(connections: int | None, clients: int) -> None:
    """Raises `ConfigurationError` for a number that the server or the clients could not use."""
    most = CONNECTIONS_MAX - RESERVED_CONNECTIONS
    if connections is not None and not clients <= connections <= most:
        raise ConfigurationError(
            f"--connections is a number from that of the clients ({clients}) to {most}, got {connections}"
        )


async def _note(server: PostgresServer, result: SearchResult) -> None:
    line.add_to_audit(result, retries(await counted(server), aborted(result)))


def aborted(result: SearchResult) -> int:
    """Transactions that their function has aborted, over all steps."""
    outcomes = [each for step in result.steps for each in (step.result.outcomes, step.result.outside)]
    return sum(each.get(Outcome.ABORTED, 0) for each in outcomes)


def retries(server: Counted, aborted: int) -> str:
    """What the server has rolled back and nobody had asked it to: each of these the client has repeated."""
    repeated = server.rolled_back - aborted
    share = repeated / max(server.committed + aborted, 1)
    return (
        f"{repeated} transactions were repeated because they could not be serialized, {share:.2%} of those that ended; "
        f"{server.deadlocks} of them were deadlocks"
    )
