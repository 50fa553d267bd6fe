"""`python -m benchmarks.reference echo`: client, Kafka, a process that only echoes, Kafka, client.

It is the upper bound for an engine with the same clients, the same log, and the same code to read and write the log.
Processor time is given separately for the echo process, the broker and the clients.
"""

from __future__ import annotations

import argparse
from typing import Final

from benchmarks.driver.options import CLUSTER_SLOTS_DEFAULT
from benchmarks.driver.result import SearchResult
from benchmarks.reference import line
from benchmarks.reference.echo_deployment import echo_deployment
from benchmarks.reference.echo_workload import Echoed
from benchmarks.ycsbt.options import make_workload as make_ycsbt

RATES_DEFAULT: Final = "20000,10000,5000,1000,100"
"""The highest rate comes first, because a new broker needs load to become fast."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--slots",
        type=int,
        default=CLUSTER_SLOTS_DEFAULT,
        metavar="N",
        help="partitions of the requests topic (default %(default)s)",
    )
    parser.set_defaults(on="echo", workers=1)
    line.add_options(parser, RATES_DEFAULT)


def run(options: argparse.Namespace) -> int:
    """Measures and prints; the exit status."""
    return line.run_command(_run(options))


async def _run(options: argparse.Namespace) -> int:
    line.check(options)
    workload = make_workload(options)
    return await line.measure_line(options, make_workload, echo_deployment(workload.app, options.slots), _nothing)


def make_workload(options: argparse.Namespace) -> Echoed:
    """Also in client processes; raises `ConfigurationError`."""
    return Echoed(make_ycsbt(options))


async def _nothing(_: SearchResult) -> None:
    """There is no more to say of an echo."""
