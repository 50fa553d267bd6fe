"""How late a replica is: the time from the close of an epoch to its place there, at a given rate of writes.

    python -m benchmarks.replica_lag --writes 20000 --seconds 30

Starts Kafka and a cluster of two workers with a replica, all on this machine. Transactions write rows of a table, many
each, at a steady rate. It prints the rate that was reached, p50 and p99 of the lag by the bounds of the replica's
histogram, how often the replica was dropped, and the processor time of each process. All clocks are this machine's; the
lag includes what processes wait for the processor.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from random import Random
from typing import Any, Final, NamedTuple

import aiohttp

from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.idle import processor_seconds
from proof.cluster.services import local_services, working_directory
from styx.client.base import Client
from styx.testing.patience import PATIENCE_SECONDS

ROWS_EACH: Final = 100
"""Rows that one transaction writes."""
SHELVES: Final = 64
PLACES: Final = 2_000
"""Rows of a shelf."""


class Told(NamedTuple):
    """How often a snapshot had to help, and how many epochs had at most so many seconds of lag."""

    dropped: int
    counts: dict[float, int]


class Load:
    """Writes `rate` rows a second until it is told to stop. `written`: rows whose transaction has ended."""

    def __init__(self, client: Client, rate: float) -> None:
        self.written = 0
        self.stopped = False
        self._client = client
        self._rate = rate
        self._rng = Random(1)

    async def run(self) -> None:
        """Sends each transaction when it is due, whatever became of the others."""
        began_s, sent = time.monotonic(), 0
        async with asyncio.TaskGroup() as group:
            while not self.stopped:
                await asyncio.sleep(max(0.0, began_s + sent * ROWS_EACH / self._rate - time.monotonic()))
                group.create_task(self._write(sent))
                sent += 1

    async def _write(self, number: int) -> None:
        first = self._rng.randrange(PLACES - ROWS_EACH)
        parameters = (self._rng.randrange(SHELVES), "fill", first, ROWS_EACH, number)
        await self._client.call("shelf", *parameters, timeout=PATIENCE_SECONDS)
        self.written += ROWS_EACH


class Replica:
    """What the replica says of itself."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def status(self) -> dict[str, Any]:
        """Its status."""
        async with self._session.get(f"{self._url}/status") as response:
            found: dict[str, Any] = await response.json()
            return found

    async def told(self) -> Told:
        """Its metrics."""
        async with self._session.get(f"{self._url}/metrics") as response:
            lines = (await response.text()).splitlines()
        [dropped] = [line.split()[1] for line in lines if line.startswith("styx_replica_dropped_total ")]
        bucket = re.compile(r'styx_replica_lag_seconds_bucket\{le="(.+)"\} (.+)')
        counts = {float(found[1]): int(float(found[2])) for line in lines if (found := bucket.match(line))}
        return Told(int(float(dropped)), counts)

    async def follows(self) -> None:
        """Returns when it follows epochs."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    if (await self.status())["follows"] == "epochs":
                        return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.1)


async def measure(cluster: ClusterUnderTest, writes: float, seconds: float) -> None:
    """Measures, and prints."""
    await cluster.start()
    await cluster.settled()
    await cluster.start_replica()
    async with cluster.client() as client, aiohttp.ClientSession() as session:
        replica, load = Replica(session, cluster.replica_url), Load(client, writes)
        loading = asyncio.ensure_future(load.run())
        await replica.follows()
        first = await replica.told()
        used = {child.name: processor_seconds(child.pid) for child in cluster.children}
        began_s, before = time.monotonic(), load.written
        await asyncio.sleep(seconds)
        took_s = time.monotonic() - began_s
        rate = (load.written - before) / took_s
        spent = {child.name: processor_seconds(child.pid) - used[child.name] for child in cluster.children}
        last = await replica.told()
        load.stopped = True
        await loading
        cluster.check()
    counts = {bound: count - first.counts[bound] for bound, count in last.counts.items()}
    print(f"{rate:,.0f} rows a second written, of {writes:,.0f} wanted, in transactions of {ROWS_EACH}")
    print(f"lag of {max(counts.values())} epochs: p50 up to {at(counts, 0.5)}, p99 up to {at(counts, 0.99)}")
    print(f"dropped {last.dropped - first.dropped} times")
    for name, processor_s in sorted(spent.items()):
        print(f"{name:20} {processor_s / took_s:6.2f} cores")


def at(counts: dict[float, int], share: float) -> str:
    """The bound below which such a share of the epochs is, of the bounds of the replica's histogram."""
    wanted = share * max(counts.values())
    return f"{1e3 * min(bound for bound, count in counts.items() if count >= wanted):g} ms"


def main() -> None:
    """Measures what the arguments say."""
    parser = argparse.ArgumentParser(prog="benchmarks.replica_lag", description=__doc__.partition("\n")[0])
    parser.add_argument("--writes", type=float, default=20_000.0, help="rows that are written a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the lag is measured")
    given = parser.parse_args()
    directory = working_directory("replica-lag")
    with local_services() as services:
        options = ClusterOptions(
            app="benchmarks.replica_lag_app:app",
            name=f"lag-{time.time_ns()}",
            kafka=services.kafka_address,
            store=f"file://{directory}/store",
            directory=directory,
            keep_log=False,
        )
        asyncio.run(run(options, given.writes, given.seconds))


async def run(options: ClusterOptions, writes: float, seconds: float) -> None:
    """Starts the cluster, and ends it."""
    async with ClusterUnderTest(options) as cluster:
        await measure(cluster, writes, seconds)


if __name__ == "__main__":
    main()
