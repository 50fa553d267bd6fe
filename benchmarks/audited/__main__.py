"""`python -m benchmarks.audited`: `styx audit` follows clusters of real processes whose workers, coordinator, gateway,
broker and store are struck, under random programs, transfers between accounts and TPC-C, one after the other.

It ends with 0 if every interval that was judged agrees, and some were; with 1 if anything differs, could not be judged
at all, or a process ended by itself; with 2 for an option that cannot be. What was left out, because its snapshots had
gone while servers were away, is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.audited.loads import LOADS
from benchmarks.audited.run import FAULTS, Ran, Wanted, endless, ran, told
from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.services import LocalServices, local_services, working_directory
from proof.cluster.timed_faults import OnServers
from styx.testing.history import SerializabilityViolation

OK: Final = 0
FAILED: Final = 1
WORKERS_MAX: Final = 16


def main(words: list[str] | None = None) -> int:
    """Runs it, and prints what was found; returns the exit status."""
    options = _options(words)
    directory, status = working_directory("audited"), OK
    seconds = options.minutes * 60 / len(options.loads)
    with local_services() as services:
        for number, name in enumerate(options.loads):
            print(f"{name}:", flush=True)
            try:
                found = asyncio.run(_ran(options, name, seconds, services, directory / f"{number}-{name}"))
            except (ChildFailed, SerializabilityViolation, TimeoutError) as failure:
                print(f"FAILED: {failure}")
                return FAILED
            print("\n".join(_lines(found)), flush=True)
            status = FAILED if found.found.wrong else status
    return status


async def _ran(options: argparse.Namespace, name: str, seconds: float, services: LocalServices, directory: Path) -> Ran:
    load, began_s = LOADS[name], time.monotonic()
    cluster = ClusterUnderTest(
        ClusterOptions(
            app=load.app,
            name=f"audited-{name}",
            kafka=services.kafka_address,
            store=f"audited-{name}",
            s3_endpoint=services.s3_endpoint,
            directory=directory,
            workers=options.workers,
            snapshot_interval_s=options.snapshot_interval,
            keep_log=False,
        )
    )
    processes = OnServers(cluster, services.kafka, services.minio, Random(f"{options.seed} {name}"), lambda: None)
    # Faults are drawn apart, so that their order does not hang on the requests.
    faults = endless(Random(options.seed), options.faults)

    def say(text: str) -> None:
        print(f"  [{timedelta(seconds=int(time.monotonic() - began_s))}] {text}", flush=True)

    return await ran(load, processes, faults, Wanted(seconds, options.every, options.rate), say)


def _lines(found: Ran) -> list[str]:
    struck = ", ".join(f"{count} {fault}" for fault, count in sorted(Counter(found.struck).items()))
    return [
        f"  faults    {len(found.struck)}: {struck}",
        f"  clients   got {found.replies} replies",
        f"  audit     {told(found.found)}",
        *(f"  WRONG     {line}" for line in found.found.wrong),
        f"  verdict   {'FAILED' if found.found.wrong else 'passed'}",
    ]


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.audited", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names, faults = ",".join(LOADS), ",".join(FAULTS)
    parser.add_argument("--minutes", type=float, default=60.0, help="of all loads together (default 60)")
    parser.add_argument("--loads", default=names, metavar="NAME,…", help=f"(default {names})")
    parser.add_argument("--faults", default=faults, metavar="NAME,…", help=f"(default {faults})")
    parser.add_argument("--every", type=float, default=60.0, help="seconds from fault to fault (default 60)")
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second (default 40)")
    parser.add_argument("--workers", type=int, default=2, help="of each cluster (default 2)")
    parser.add_argument("--snapshot-interval", type=float, default=10.0, help="in seconds (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="decides requests, faults and victims (default 1)")
    options = parser.parse_args(words)
    options.loads, options.faults = options.loads.split(","), options.faults.split(",")
    for name in options.loads:
        if name not in LOADS:
            parser.error(f"there is no load {name!r}; there are {names}")
    for name in options.faults:
        if name not in FAULTS:
            parser.error(f"there is no fault {name!r}; there are {faults}")
    for name, value, least in (
        ("--minutes", options.minutes, 0.1),
        ("--every", options.every, 1.0),
        ("--rate", options.rate, 1.0),
        ("--snapshot-interval", options.snapshot_interval, 1.0),
    ):
        if not least <= value <= 100_000:
            parser.error(f"{name} is from {least:g} to 100000, got {value:g}")
    if not 1 <= options.workers <= WORKERS_MAX:
        parser.error(f"--workers is from 1 to {WORKERS_MAX}, got {options.workers}")
    return options


if __name__ == "__main__":
    sys.exit(main())
