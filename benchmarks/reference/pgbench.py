"""`python -m benchmarks.reference pgbench`: the same transfers in PostgreSQL by pgbench, its own load generator in C.

It is the strongest line of PostgreSQL: prepared statements, a thread for each processor, no Python anywhere. It runs
under SERIALIZABLE, and pgbench repeats what could not be serialized. It is measured twice, with `synchronous_commit`
on, which keeps an answered transaction through a crash of the machine, and off, which may lose the last ones, as Kafka
may, whose brokers acknowledge before the disk has anything. Accounts are uniform: pgbench has no Zipf exponent below 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.reference import line
from benchmarks.reference.pgbench_run import DURABILITIES, Figures, Load, best_connections, measured
from benchmarks.reference.postgres import check_connections
from benchmarks.reference.postgres_server import PostgresServer, postgres_server
from benchmarks.reference.postgres_tuning import SIZES
from benchmarks.ycsbt.settings import Settings
from styx.errors import ConfigurationError

SECONDS_MAX: Final = 3600.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--keys", type=int, default=10_000, metavar="N", help="accounts (default %(default)s)")
    add("--duration", type=float, default=10.0, metavar="SECONDS", help="of each window (default %(default)g)")
    add(
        "--rates",
        default="",
        metavar="N,N,...",
        help="also at these rates, for processor time at equal rates (default: only as fast as it can)",
    )
    add(
        "--connections",
        type=int,
        metavar="N",
        help=f"(default: the best of {', '.join(map(str, SIZES))}, tried first for each durability)",
    )
    add("--turns", type=int, default=1, metavar="N", help="windows of each kind, in turns (default %(default)s)")
    add("--out", type=Path, metavar="FILE", help="write the figures there, as JSON")


def run(options: argparse.Namespace) -> int:
    """Measures and prints; the exit status."""
    return line.run_command(_run(options))


async def _run(options: argparse.Namespace) -> int:
    rates = check(options)
    rows: list[Figures] = []
    for turn in range(options.turns):
        # The other way round in each second turn, so that a drift of the machine is the same for both.
        for durability in sorted(DURABILITIES, reverse=turn % 2 == 0):
            with postgres_server({"synchronous_commit": durability}) as server:
                rows += await _of(server, durability, options, rates)
    print(table(rows))
    if options.out is not None:
        options.out.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
    return line.FAILED if any(each.wrong for each in rows) else line.OK


async def _of(
    server: PostgresServer, durability: str, options: argparse.Namespace, rates: list[float]
) -> list[Figures]:
    accounts, connections = Settings(keys=options.keys), options.connections
    if connections is None:
        connections = await best_connections(server, accounts, line.say)
    rows = []
    for rate in (None, *rates):
        rows.append(await measured(server, accounts, Load(connections, options.duration, rate)))
        line.say(row_of(rows[-1]))
    return rows


def check(options: argparse.Namespace) -> list[float]:
    """The given rates; raises `ConfigurationError` for what cannot be."""
    check_connections(options.connections, 1)
    for name, value, least, most in (
        ("--duration", options.duration, 1.0, SECONDS_MAX),
        ("--turns", options.turns, 1, 100),
        ("--keys", options.keys, 2, 100_000_000),
    ):
        if not least <= value <= most:
            raise ConfigurationError(f"{name} is a number from {least:g} to {most:g}, got {value:g}")
    if options.out is not None and not options.out.parent.is_dir():
        raise ConfigurationError(f"--out {options.out}: there is no directory {options.out.parent}")
    rates = line.rates_of(options.rates)
    if not all(rate > 0 for rate in rates):
        raise ConfigurationError(f"--rates {options.rates}: these are numbers above 0")
    return rates


def table(rows: list[Figures]) -> str:
    """A line for each window, with what an answer means there."""
    header = (
        f"{'an answered transaction':<26} {'asked/s':>8} {'rate/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'again':>7} "
        f"{'conns':>5}  µs of processor a transaction"
    )
    return "\n".join([header, *map(row_of, rows), *dict.fromkeys(each.slow for each in rows if each.slow)])


def row_of(each: Figures) -> str:
    """One window."""
    cpu = ", ".join(f"{role} {us:.1f}" for role, us in sorted(each.cpu_us.items()))
    return (
        f"{DURABILITIES[each.synchronous_commit]:<26} {'most' if each.asked is None else f'{each.asked:.0f}':>8} "
        f"{each.rate:>8.0f} {each.p50_us / 1e3:>8.2f} {each.p99_us / 1e3:>8.2f} {each.again:>7.2%} "
        f"{each.connections:>5}  {cpu}{'  MONEY IS MISSING' if each.wrong else ''}"
    )
