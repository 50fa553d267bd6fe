"""Measures the cost of snapshots: throughput with and without them, in turns on one cluster under one load.

    python -m proof.cluster.snapshot_cost --pairs 4 --window 10

In each turn the coordinator is started anew, with a short interval or one that never ends. The senders wait for their
replies (closed loop), so the throughput is the cluster's highest. Turns go with-without-without-with, so that a drift
cancels out. One turn before them does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from random import Random
from statistics import median
from typing import Final, NamedTuple

from proof.bank import INITIAL_BALANCE, account
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP
from proof.cluster.load import Planned
from proof.cluster.recorded import newest_manifest
from proof.cluster.recovery_time import transfers
from proof.cluster.services import local_services, working_directory
from styx.client.base import Client

SENDERS: Final = 256
"""Requests under way at once."""
NEVER_SECONDS: Final = 100_000.0
SETTLE_SECONDS: Final = 3.0
"""The time from a turn's start to its window."""
REQUEST_SECONDS_MAX: Final = 60.0


class Turn(NamedTuple):
    """Committed and aborted transactions a second in one window, and the epochs of snapshots completed in it."""

    snapshots: bool
    per_second: float
    completed: int


class Cost(NamedTuple):
    """All turns; `ratio` is the median throughput with snapshots by that without."""

    turns: list[Turn]

    @property
    def ratio(self) -> float:
        with_them = median(turn.per_second for turn in self.turns if turn.snapshots)
        return with_them / median(turn.per_second for turn in self.turns if not turn.snapshots)


async def measure(
    cluster: ClusterUnderTest,
    keys: int,
    pairs: int,
    window_s: float,
    rng: Random,
    tell: Callable[[Turn], None] = lambda _: None,
) -> Cost:
    """Measures `pairs` pairs of turns on a cluster that has not been started."""
    turns: list[Turn] = []
    await cluster.start()
    async with cluster.client() as client:
        accounts = ((f"a{number}", INITIAL_BALANCE) for number in range(keys))
        await client.load(cluster.app.operator(account.name), accounts, timeout=REQUEST_SECONDS_MAX)
        replied = [0]
        senders = [asyncio.create_task(_send(client, transfers(rng, keys), replied)) for _ in range(SENDERS)]
        await _turn(cluster, True, window_s, replied)
        for number in range(2 * pairs):
            turns.append(await _turn(cluster, number % 4 in (0, 3), window_s, replied))
            tell(turns[-1])
        for sender in senders:
            sender.cancel()
        await asyncio.wait(senders)
    return Cost(turns)


async def _turn(cluster: ClusterUnderTest, snapshots: bool, window_s: float, replied: list[int]) -> Turn:
    loop = asyncio.get_running_loop()
    assert cluster.coordinator is not None
    await cluster.coordinator.stop()
    await cluster.start_coordinator(None if snapshots else NEVER_SECONDS)
    before = replied[0]
    while replied[0] < before + SENDERS:  # noqa: ASYNC110 - the senders only count
        await asyncio.sleep(0.1)
    await asyncio.sleep(SETTLE_SECONDS)
    seen: set[int] = set()
    store = await asyncio.to_thread(cluster.open_store)
    first = await asyncio.to_thread(newest_manifest, store)
    start_s, before = loop.time(), replied[0]
    while loop.time() < start_s + window_s:
        await asyncio.sleep(0.2)
        newest = await asyncio.to_thread(newest_manifest, store)
        if newest is not None and (first is None or newest.epoch > first.epoch):
            seen.add(newest.epoch)
    return Turn(snapshots, (replied[0] - before) / (loop.time() - start_s), len(seen))


async def _send(client: Client, make: Callable[[], Planned], replied: list[int]) -> None:
    while True:
        planned = make()
        try:
            await client.request(
                planned.operator, planned.key, planned.function, *planned.arguments, timeout=REQUEST_SECONDS_MAX
            )
        except (ConnectionError, TimeoutError):
            continue
        replied[0] += 1


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.snapshot_cost", description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=4, help="of turns with and without snapshots (default 4)")
    parser.add_argument("--window", type=float, default=10.0, help="seconds that are counted in each turn (default 10)")
    parser.add_argument("--snapshot-interval", type=float, default=2.0, help="seconds (default 2)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    directory = working_directory("snapshots")

    def tell(turn: Turn) -> None:
        what = f"{turn.completed} snapshots" if turn.snapshots else "without"
        print(f"{what:<14} {turn.per_second:8.0f} transactions/s", flush=True)

    with local_services() as services:
        cluster = ClusterUnderTest(
            ClusterOptions(
                app=APP,
                name="snapshots",
                kafka=services.kafka_address,
                store="snapshots",
                s3_endpoint=services.s3_endpoint,
                directory=directory,
                snapshot_interval_s=options.snapshot_interval,
            )
        )

        async def run() -> Cost:
            async with cluster:
                return await measure(cluster, options.keys, options.pairs, options.window, Random(options.seed), tell)

        cost = asyncio.run(run())
    print(f"with snapshots: {cost.ratio:.1%} of the throughput without")
    return 0


if __name__ == "__main__":
    sys.exit(main())
