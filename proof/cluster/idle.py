"""What an idle cluster costs whose calls for later are all far away: processor time of each process, and epochs.

    python -m proof.cluster.idle --calls 10000 --seconds 120

The figures are for an hour. The exit status is 1 if an epoch was begun while nothing was due.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from proof.cluster.cluster import ClusterUnderTest
from proof.cluster.given_calls import given_for_later
from proof.cluster.services import local_services, working_directory
from proof.cluster.waiting_calls import EACH, cluster_options
from styx.cli.facts_client import fetch_status
from styx.testing.patience import PATIENCE_SECONDS

HOUR_SECONDS: Final = 3600.0
QUIET_SECONDS: Final = 5.0
"""For so long no epoch must have begun before it counts."""
_USER, _SYSTEM = 13, 14
"""Fields of /proc/PID/stat, in ticks."""


class Idle(NamedTuple):
    """Seconds of processor time an hour, by process, and the epochs that were begun meanwhile."""

    processor: dict[str, float]
    epochs: int


def processor_seconds(pid: int) -> float:
    """What a process has used since it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[_USER - 2]) + int(fields[_SYSTEM - 2])
    return ticks / os.sysconf("SC_CLK_TCK")


async def measure(cluster: ClusterUnderTest, calls: int, seconds: float) -> Idle:
    """Starts a cluster, gives calls that are due a day later, waits until nothing happens, and measures."""
    await cluster.start()
    async with cluster.client() as client:
        for number in range(calls // EACH):
            await client.call("giver", number, "give", EACH, timeout=PATIENCE_SECONDS)
    before = await _quiet(cluster)
    assert await asyncio.to_thread(given_for_later, cluster) == calls // EACH * EACH
    used = {child.name: processor_seconds(child.pid) for child in cluster.children}
    await asyncio.sleep(seconds)
    hourly = HOUR_SECONDS / seconds
    processor = {child.name: (processor_seconds(child.pid) - used[child.name]) * hourly for child in cluster.children}
    return Idle(processor, await _epoch(cluster) - before)


async def _epoch(cluster: ClusterUnderTest) -> int:
    return (await asyncio.to_thread(fetch_status, cluster.facts_url)).epoch


async def _quiet(cluster: ClusterUnderTest) -> int:
    """The epoch behind which none has begun for some seconds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        epoch = await _epoch(cluster)
        while True:
            await asyncio.sleep(QUIET_SECONDS)
            now = await _epoch(cluster)
            if now == epoch:
                return epoch
            epoch = now


async def _main(calls: int, seconds: float) -> int:
    directory = working_directory("idle")
    with local_services() as services:
        options = cluster_options(services.kafka_address, directory, "idle", services.s3_endpoint)
        async with ClusterUnderTest(options) as cluster:
            found = await measure(cluster, calls, seconds)
    for name, used in found.processor.items():
        print(f"{name}: {used:.1f} s of processor time an hour, {used / HOUR_SECONDS:.2%} of a processor")
    print(f"{found.epochs} epochs in {seconds:g} s, with {calls:,} calls that wait")
    return 1 if found.epochs else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="default 10,000")
    parser.add_argument("--seconds", type=float, default=120.0, help="of measurement (default 120)")
    given = parser.parse_args()
    sys.exit(asyncio.run(_main(given.calls, given.seconds)))
