"""The command `compare`: both lines in turns, for uniform and for skewed sellers, at one concurrency level.

Both are behind HTTP, get the same requests from the same clients, and keep each answered transaction through a crash.
Payments are in the transaction of their checkout, and are all approved.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from asyncpg import PostgresError

from benchmarks.driver import options as driver_options
from benchmarks.driver.clients import ClientFailed
from benchmarks.driver.command import quieten
from benchmarks.driver.one_at_a_time import run_load
from benchmarks.driver.session import Say
from benchmarks.driver.summary import audit_lines
from benchmarks.experiments.turns import turns
from benchmarks.marketplace import settings
from benchmarks.marketplace.comparison.figures import POSTGRES, STYX, Figures, table
from benchmarks.marketplace.comparison.measuring import Asked, best_connections, postgres_figures, styx_figures
from benchmarks.marketplace.options import add_options, make_workload
from benchmarks.marketplace.postgres.checking_out import FORMS
from benchmarks.marketplace.postgres.serving import SETTINGS
from benchmarks.marketplace.record import Kind
from benchmarks.reference.postgres_server import CONNECTIONS_MAX, PostgresServer, postgres_server
from proof.cluster.child import ChildFailed
from styx.errors import ConfigurationError, StyxError

OK: Final = 0
FAILED: Final = 1
"""Something broke, a request failed, or a check found something."""
USAGE: Final = 2
INTERRUPTED: Final = 130
MIX: Final = "checkout-price"
ZIPF: Final = 1.2
TURNS_MAX: Final = 100
CONNECTIONS_OF_OTHERS: Final = 20
"""Of the server's, for filling, counting and checking."""
HERE: Final = (Kind.CHECKOUT, Kind.PRICE)
"""The transactions that both lines have."""


def main(words: Sequence[str]) -> int:
    """Runs the command; returns the exit status."""
    quieten()
    try:
        options = _parser().parse_args(words)
        check(options)
        return run_load(_compare(options))
    except ConfigurationError as error:
        return _told(str(error), USAGE)
    except (StyxError, ClientFailed, ChildFailed, PostgresError, OSError) as error:
        return _told(f"{type(error).__name__}: {error}", FAILED)
    except KeyboardInterrupt:
        return _told("interrupted", INTERRUPTED)


def check(options: argparse.Namespace) -> None:
    """Raises `ConfigurationError` for options and settings that leave nothing to compare."""
    driver_options.plan_of(options, 1.0)
    mix = make_workload(options).settings["planned"]
    for wrong, message in (
        (options.loaded, "--loaded: both lines get new data for each window"),
        (options.provider or settings.PROVIDER, "the payment provider: both lines approve each payment themselves"),
        (settings.REJECTED, "MARKETPLACE_REJECTED: both lines approve each payment"),
        (settings.PAYMENT != "together", "MARKETPLACE_PAYMENT: it is `together` here, as it is in PostgreSQL"),
        (settings.REPLICATION != "together", "MARKETPLACE_REPLICATION: it is `together` here, as in PostgreSQL"),
        (not {*mix} <= {*HERE}, f"--mix {options.mix}: PostgreSQL has {' and '.join(HERE)} alone"),
        (options.resent, "--resent: each checkout is sent once"),
        (not 1 <= options.turns <= TURNS_MAX, f"--turns is a number from 1 to {TURNS_MAX}, got {options.turns}"),
        (not 1 <= options.processes <= 64, f"--processes is a number from 1 to 64, got {options.processes}"),
        (
            not 1 <= options.workers <= driver_options.CLUSTER_SLOTS_DEFAULT,
            f"--workers is a number from 1 to {driver_options.CLUSTER_SLOTS_DEFAULT}, got {options.workers}",
        ),
    ):
        if wrong:
            raise ConfigurationError(message)
    most = CONNECTIONS_MAX - CONNECTIONS_OF_OTHERS
    if options.connections is not None and not options.processes <= options.connections <= most:
        raise ConfigurationError(
            f"--connections is a number from that of the processes ({options.processes}) to {most}, "
            f"got {options.connections}"
        )


def zipfs_of(options: argparse.Namespace) -> list[float]:
    """Uniform first, then the exponent that was asked for."""
    return [0.0, options.seller_zipf] if options.seller_zipf else [0.0]


async def _compare(options: argparse.Namespace) -> int:
    rows: list[Figures] = []
    with postgres_server({**SETTINGS, "synchronous_commit": options.synchronous_commit}) as server:
        for zipf in zipfs_of(options):
            rows += await _turns(options, server, zipf, _say)
    print(table(rows))
    for each in rows:
        if each.wrong:
            print(f"{each.line}, Zipf {each.zipf:g}, turn {each.turn}: errors {each.result.errors}")
            print("\n".join(audit_lines(each.result.audit)))
    if options.out is not None:
        _write(options.out, rows)
    return FAILED if any(each.wrong for each in rows) else OK


async def _turns(options: argparse.Namespace, server: PostgresServer, zipf: float, say: Say) -> list[Figures]:
    rows: list[Figures] = []
    connections = await best_connections(Asked(options, zipf, 0, say), server)
    for number, order in turns(options.turns, (STYX, POSTGRES)):
        for line in order:
            asked = Asked(options, zipf, number, say)
            say(f"{line}, Zipf {zipf:g}, turn {number}")
            rows.append(
                await styx_figures(asked) if line == STYX else await postgres_figures(asked, server, connections)
            )
            say(f"{line}: {rows[-1].result.throughput:.0f}/s")
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.marketplace compare", description=__doc__)
    group = parser.add_argument_group("the two lines")
    add = group.add_argument
    add("--concurrency", type=int, default=16, metavar="N", help="requests under way at once (default %(default)s)")
    add("--turns", type=int, default=1, metavar="N", help="windows of each line and skew (default %(default)s)")
    add(
        "--on",
        choices=("dev", "cluster"),
        default="dev",
        help="ours: one process of `styx dev`, or a cluster with Kafka, MinIO and a gateway (default %(default)s)",
    )
    add("--workers", type=int, default=2, metavar="N", help="of --on cluster (default %(default)s)")
    add("--processes", type=int, default=2, metavar="N", help="uvicorn's, of FastAPI (default %(default)s)")
    add(
        "--connections",
        type=int,
        metavar="N",
        help="of FastAPI's processes together to PostgreSQL (default: the best of some numbers, tried first)",
    )
    add(
        "--checkout",
        choices=FORMS,
        default="function",
        help="PostgreSQL's: one call of a function in the database, or a transaction of several statements with the "
        "rules in Python (default %(default)s)",
    )
    add(
        "--synchronous-commit",
        choices=("on", "off"),
        default="on",
        help="PostgreSQL's; off may lose the last answered transactions in a crash of the machine, as ours never does "
        "(default %(default)s)",
    )
    driver_options.add_load_options(parser)
    add_options(parser)
    parser.set_defaults(mix=MIX, seller_zipf=ZIPF)
    return parser


def _write(path: Path, rows: list[Figures]) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _told(text: str, status: int) -> int:
    _say(text)
    return status
