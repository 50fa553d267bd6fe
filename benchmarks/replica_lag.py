"""How late a replica is: the time from the close of an epoch to its place there, at a given rate of writes.

    python -m benchmarks.replica_lag --writes 20000 --seconds 30

Starts Kafka and a cluster of two workers with a replica, all on this machine. Transactions write rows of a table, many
each, at a steady rate. Meanwhile the replica is asked for the lag of its newest epoch, over and over. It prints the
rate that was reached, p50 and p99 of the lag, how often the replica was dropped, and the processor time of each
process. All clocks are this machine's, so the lag is exact; it includes what processes wait for the processor.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from random import Random
from typing import Any, Final

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
ASK_SECONDS: Final = 0.01
"""Between two questions."""


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
        self.lags: list[float] = []
        self._session = session
        self._url = url

    async def status(self) -> dict[str, Any]:
        """Its status."""
        async with self._session.get(f"{self._url}/status") as response:
            found: dict[str, Any] = await response.json()
            return found

    async def dropped(self) -> int:
        """How often a snapshot had to help."""
        async with self._session.get(f"{self._url}/metrics") as response:
            lines = (await response.text()).splitlines()
        [line] = [line for line in lines if line.startswith("styx_replica_dropped_total ")]
        return int(float(line.split()[1]))

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

    async def watch(self, seconds: float) -> None:
        """Asks for the lag of the newest epoch, once for each epoch that is seen."""
        end_s, seen = time.monotonic() + seconds, -1
        while time.monotonic() < end_s:
            told = await self.status()
            if told["epoch"] != seen and told["lag_s"] is not None:
                seen = told["epoch"]
                self.lags.append(told["lag_s"])
            await asyncio.sleep(ASK_SECONDS)


async def measure(cluster: ClusterUnderTest, writes: float, seconds: float) -> None:
    """Measures, and prints."""
    await cluster.start()
    await cluster.settled()
    await cluster.start_replica()
    async with cluster.client() as client, aiohttp.ClientSession() as session:
        replica, load = Replica(session, cluster.replica_url), Load(client, writes)
        loading = asyncio.ensure_future(load.run())
        await replica.follows()
        before_dropped = await replica.dropped()
        used = {child.name: processor_seconds(child.pid) for child in cluster.children}
        began_s, before = time.monotonic(), load.written
        await replica.watch(seconds)
        took_s = time.monotonic() - began_s
        rate = (load.written - before) / took_s
        spent = {child.name: processor_seconds(child.pid) - used[child.name] for child in cluster.children}
        dropped = await replica.dropped() - before_dropped
        load.stopped = True
        await loading
        cluster.check()
    lags = sorted(replica.lags)
    print(f"{rate:,.0f} rows a second written, of {writes:,.0f} wanted, in transactions of {ROWS_EACH}")
    print(f"lag of {len(lags)} epochs: p50 {1e3 * at(lags, 0.5):.1f} ms, p99 {1e3 * at(lags, 0.99):.1f} ms")
    print(f"dropped {dropped} times")
    for name, processor_s in sorted(spent.items()):
        print(f"{name:20} {processor_s / took_s:6.2f} cores")


def at(ordered: list[float], share: float) -> float:
    """A quantile."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


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
