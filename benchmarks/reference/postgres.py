"""`python -m benchmarks.reference postgres`: the same transfers in PostgreSQL, the alternative for a user.

It starts a new server with the default durability (fsync, synchronous commit), under SERIALIZABLE. Each transfer is one
prepared statement and one round trip on a pool of connections: asyncpg's pool, used as its documentation shows, or a
pool that does less for each statement. The client repeats and counts transactions that could not be serialized. Without
--connections several pool sizes are tried first, and the best is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from asyncpg import PostgresError

from benchmarks.driver.result import SearchResult
from benchmarks.driver.target import ANSWERED, Outcome
from benchmarks.reference import line
from benchmarks.reference.postgres_accounting import counted
from benchmarks.reference.postgres_bank import TRANSFERS
from benchmarks.reference.postgres_client import ACCESS_DEFAULT, POOLS, Access
from benchmarks.reference.postgres_deployment import postgres_deployment
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
        "--pool",
        choices=POOLS,
        default=ACCESS_DEFAULT.pool,
        help="asyncpg's own, or dedicated connections without a task and a reset for each statement, "
        "which is the fairest to the server (default %(default)s)",
    )
    parser.add_argument(
        "--statement",
        choices=TRANSFERS,
        default=ACCESS_DEFAULT.transfer,
        help="a transfer: one UPDATE of both rows, or a call of a PL/pgSQL function that reads the debtor's balance "
        "and updates one row after the other, without or with locks in the order of keys (default %(default)s)",
    )
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
        access = Access(options.pool, options.statement)
        connections, rates = options.connections, {}
        if connections is None:
            rates = await tried(server, workload, access=access)
            connections = max(best(rates), options.clients)
            line.say(f"connections, always busy: {_shown(rates)}; {connections} are taken")
        deployed = postgres_deployment(server, workload, connections, options.clients, access)
        return await line.measure_line(options, make_workload, deployed, lambda result: _note(server, rates, result))


def check_connections(connections: int | None, clients: int) -> None:
    """Raises `ConfigurationError` for a number that the server or the clients could not use."""
    most = CONNECTIONS_MAX - RESERVED_CONNECTIONS
    if connections is not None and not clients <= connections <= most:
        raise ConfigurationError(
            f"--connections is a number from that of the clients ({clients}) to {most}, got {connections}"
        )


async def _note(server: PostgresServer, rates: Mapping[int, float], result: SearchResult) -> None:
    facts = result.deployment
    facts["connections_tried"] = {str(size): round(rate) for size, rate in rates.items()}
    line.add_to_audit(result, access_used(facts["pool"], facts["statement"], facts["connections"], rates))
    rolled_back, deadlocks = await counted(server)
    aborted = answered(result, Outcome.ABORTED)
    line.add_to_audit(result, retries(rolled_back - aborted, answered(result, *ANSWERED), deadlocks))


def access_used(pool: str, statement: str, connections: int, rates: Mapping[int, float]) -> str:
    """Which pool, of what size, sent what; `rates` are those of the sizes that were tried."""
    tries = f"tried, always busy: {_shown(rates)}" if rates else "as asked for"
    return f"pool {pool} with {connections} connections ({tries}), statement {statement}"


def answered(result: SearchResult, *outcomes: Outcome) -> int:
    """Requests with these outcomes, over all steps and their warm-ups."""
    counts = [each for step in result.steps for each in (step.result.outcomes, step.result.outside)]
    return sum(each.get(outcome, 0) for each in counts for outcome in outcomes)


def retries(repeated: int, ended: int, deadlocks: int) -> str:
    """`repeated` is what the server has rolled back and nobody had asked it to: each of these the client repeats."""
    return (
        f"{repeated} transactions were repeated because they could not be serialized, {repeated / max(ended, 1):.2%} "
        f"of the {ended} that ended; {deadlocks} of them were deadlocks"
    )


def _shown(rates: Mapping[int, float]) -> str:
    return ", ".join(f"{size}: {rate:.0f}/s" for size, rate in rates.items())
