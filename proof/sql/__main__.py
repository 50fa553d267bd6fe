"""The command: `python -m proof.sql --queries 1000 --kills 8`; the exit status is 1 if an answer is wrong."""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time
from random import Random

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP
from proof.cluster.services import local_services, working_directory
from proof.sql.run import Recorded, RunOptions, recorded


async def run(cluster: ClusterUnderTest, options: RunOptions, rng: Random) -> Recorded:
    """Runs, and ends all processes."""
    async with cluster:
        return await recorded(cluster, options, rng)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.sql", description=__doc__)
    parser.add_argument("--queries", type=int, default=1_000, help="random queries (default 1000)")
    parser.add_argument("--kills", type=int, default=8, help="processes that are killed meanwhile (default 8)")
    parser.add_argument("--rate", type=float, default=60.0, help="requests a second (default 60)")
    parser.add_argument("--workers", type=int, default=3, help="default 3")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    directory = working_directory("sql")
    with local_services() as services:
        cluster = ClusterUnderTest(
            ClusterOptions(
                app=APP,
                name="sql",
                kafka=services.kafka_address,
                store="sql",
                s3_endpoint=services.s3_endpoint,
                directory=directory,
                workers=options.workers,
                snapshot_interval_s=1.0,
            )
        )
        began_s = time.monotonic()
        wanted = RunOptions(options.queries, options.kills, rate=options.rate)
        found = asyncio.run(run(cluster, wanted, Random(options.seed)))
    print(f"killed: {', '.join(found.killed) or 'none'}; attempts without an answer: {found.away}", flush=True)
    print(f"requests: {found.audit.records}; epochs recorded twice: {len(found.twice)}", flush=True)
    try:
        judged = found.judged()
    except AssertionError as failure:
        print(f"FAILED: {failure}")
        return 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{judged.answers} answers equal the serial replay at {judged.epochs} epochs: {judged.three} over three "
        f"operators, {judged.groups} with groups, {judged.windows} with windows, {judged.filled} with rows; "
        f"{judged.uncounted} not counted, {judged.large} too large; wall {time.monotonic() - began_s:.0f} s, processor "
        f"of the processes {used.ru_utime + used.ru_stime:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
