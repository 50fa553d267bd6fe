"""What reads of the latest epoch cost the writers of a cluster: turns with reads and without them, in pairs.

    python -m benchmarks.read_cost --reads 10000 --pairs 4 --window 10
    python -m benchmarks.read_cost --reads 2000 --writes 500

A cluster of its own, with Kafka and MinIO, runs transfers between accounts: as many as it can, or `--writes` a second.
Reads come from a process of their own. Each turn gives the writers' rate, the reads' rate, and the processor time of
the workers. Turns go without-with-with-without, so that a drift cancels out. One turn before them does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from benchmarks.driver.counters import fetch, growth
from benchmarks.driver.deployment.own_cluster import BenchmarkCluster, ClusterShape, benchmark_cluster
from benchmarks.driver.processes import sample
from benchmarks.read_cost.figures import Turn, cost_of
from benchmarks.read_cost.reader import Seen
from proof.bank import INITIAL_BALANCE, account
from proof.cluster.child import ChildProcess
from proof.cluster.faults import APP
from proof.cluster.load import Planned
from proof.cluster.recovery_time import transfers
from proof.cluster.services import working_directory
from styx.client.base import Client

SENDERS: Final = 256
"""Requests under way at once, without `--writes`."""
SETTLE_SECONDS: Final = 3.0
"""From a turn's start to its window."""
SECONDS_MAX: Final = 60.0
WORKER: Final = "worker"
LOADED_AT_ONCE: Final = 5_000

Tell = Callable[[str], None]


async def run(options: argparse.Namespace, directory: Path, tell: Tell) -> list[Turn]:
    """All turns that count."""
    shape = ClusterShape(options.workers, options.slots, 10.0, through_gateway=False)
    async with benchmark_cluster(APP, "reads", shape, directory) as cluster, cluster.client() as client:
        accounts = ((f"a{number}", INITIAL_BALANCE) for number in range(options.keys))
        await client.load(cluster.app.operator(account.name), accounts, timeout=SECONDS_MAX)
        async with _writing(client, transfers(Random(options.seed), options.keys), options.writes):
            await _turn(cluster, options, reading=True, tell=lambda _: None)
            return [
                await _turn(cluster, options, reading=number % 4 in (1, 2), tell=tell)
                for number in range(2 * options.pairs)
            ]


async def _turn(cluster: BenchmarkCluster, options: argparse.Namespace, *, reading: bool, tell: Tell) -> Turn:
    reader = await _reader(cluster, options) if reading else None
    await asyncio.sleep(SETTLE_SECONDS)
    urls = cluster.urls()[WORKER]
    first, before = sample({WORKER: cluster.pids()[WORKER]}), await asyncio.to_thread(fetch, urls)
    await asyncio.sleep(options.window)
    last, after = sample({WORKER: cluster.pids()[WORKER]}), await asyncio.to_thread(fetch, urls)
    cluster.check()
    counted = growth({WORKER: urls}, before, after)[WORKER]
    seconds = last.at_s - first.at_s
    used = [last.roles[WORKER][pid].cpu_s - usage.cpu_s for pid, usage in first.roles[WORKER].items()]
    turn = Turn(
        reading,
        _sum(counted, "styx_transactions_total") / seconds,
        _sum(counted, "styx_reads_total") / seconds,
        sum(used) / seconds,
    )
    told = f"{turn.transactions:7.0f} transactions/s, {turn.reads:7.0f} reads/s, workers {turn.cores:.2f} processors"
    if reader is not None:
        await reader.stop()
        seen = msgspec.json.decode(reader.log.read_text().splitlines()[-1], type=Seen)
        told += f"; reads p50 {seen.p50_us / 1e3:.1f} ms p99 {seen.p99_us / 1e3:.1f} ms, {seen.refused} refused"
    tell(told)
    return turn


def _sum(counted: dict[str, float], name: str) -> float:
    return sum(value for each, value in counted.items() if each.partition("{")[0] == name)


async def _reader(cluster: BenchmarkCluster, options: argparse.Namespace) -> ChildProcess:
    module = ["-m", "benchmarks.read_cost.reader", f"127.0.0.1:{cluster.coordinator_port}", cluster.url]
    directory = cluster.options.directory
    environment = {"STYX_SECRET": cluster.options.secret, "PYTHONPATH": ":".join(filter(None, sys.path))}
    return await ChildProcess.start("reader", [*module, str(options.reads), str(options.keys)], environment, directory)


@asynccontextmanager
async def _writing(client: Client, make: Callable[[], Planned], rate: float | None) -> AsyncIterator[None]:
    """Transfers go on as long as the context does: all that can be answered, or at a rate."""
    if rate is None:
        senders = [asyncio.create_task(_send_on(client, make)) for _ in range(SENDERS)]
    else:
        senders = [asyncio.create_task(_send_at(client, make, rate))]
    try:
        yield
    finally:
        for sender in senders:
            sender.cancel()
        await asyncio.wait(senders)


async def _send_on(client: Client, make: Callable[[], Planned]) -> None:
    while True:
        await _send(client, make())


async def _send_at(client: Client, make: Callable[[], Planned], rate: float) -> None:
    loop = asyncio.get_running_loop()
    under_way: set[asyncio.Task[None]] = set()
    due_s = loop.time()
    try:
        while True:
            due_s += 1 / rate
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            task = asyncio.create_task(_send(client, make()))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
    finally:
        for task in under_way:
            task.cancel()


async def _send(client: Client, planned: Planned) -> None:
    await client.request(planned.operator, planned.key, planned.function, *planned.arguments, timeout=SECONDS_MAX)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.read_cost", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--reads", type=float, default=10_000.0, metavar="N", help="a second (default 10000)")
    add("--writes", type=float, metavar="N", help="a second (default: as many as are answered, 256 at once)")
    add("--pairs", type=int, default=4, help="of turns with and without reads (default 4)")
    add("--window", type=float, default=10.0, metavar="SECONDS", help="that are counted in each turn (default 10)")
    add("--workers", type=int, default=2, help="default 2")
    add("--slots", type=int, default=16, help="default 16")
    add("--keys", type=int, default=100_000, help="accounts (default 100000)")
    add("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    turns = asyncio.run(run(options, working_directory("read-cost"), lambda line: print(line, flush=True)))
    cost = cost_of(turns, options.workers)
    print(
        f"with {cost.reads:.0f} reads/s the writers have {cost.rate:.1%} of their rate; a transaction takes "
        f"{cost.transaction_us:.0f} µs of the workers' processor time and a read {cost.read_us:.0f} µs, so that "
        f"{options.workers} workers with a processor each have {cost.left:.1%} of it left"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
