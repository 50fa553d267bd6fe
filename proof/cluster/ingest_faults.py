"""An ingest under faults: a foreign topic with bad records, read while every process and the broker are killed in turn.

    python -m proof.cluster.ingest_faults --records 1000000

Each good record has to arrive once and in order, and each bad one has to be set aside. The exit status is 1 if not.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.ingest_app import TOPIC_PREFIX
from proof.cluster.services import Service, local_services, working_directory
from styx.testing.patience import PATIENCE_SECONDS

ACCOUNTS: Final = 400
PARTITIONS: Final = 4
POISON_EVERY: Final = 100
"""One of so many records is bad."""
FAULTS: Final = ("ingest", "worker 0", "coordinator", "ingest", "worker 1", "broker")
PAUSE_SECONDS: Final = 1.5
"""From the beginning of a portion's writing to its fault."""
PORTION_RECORDS: Final = 20_000
"""Written around one fault, or fewer, so that each kind of fault happens."""
_POISON: Final = (
    b"{",
    b'{"account": 1}',
    b'{"account": "one", "number": 1}',
    None,
    b"\xff\xfe",
    b'{"account": 99999999999999999999999, "number": 1}',
)


class IngestRun(NamedTuple):
    """What came of a run; `good` and `bad` records were written, `problems` says what was wrong in the end."""

    good: int
    bad: int
    seconds: float
    faults: int
    problems: list[str]


def written(number: int) -> tuple[int, bytes | None, bool]:
    """Partition, value, and whether it is good, of the record with this number."""
    account = number % ACCOUNTS
    if number % POISON_EVERY == POISON_EVERY // 2:
        return account % PARTITIONS, _POISON[number // POISON_EVERY % len(_POISON)], False
    return account % PARTITIONS, b'{"account":%d,"number":%d}' % (account, number), True


async def write_topic(kafka: str, topic: str, begin: int, end: int) -> None:
    """Writes the records with these numbers once each, whatever happens to the broker meanwhile."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka, enable_idempotence=True, linger_ms=5, max_batch_size=65_536)
    await producer.start()
    try:
        for first in range(begin, end, 5_000):
            sent = [
                await producer.send(topic, value, key=b"others", partition=partition)
                for partition, value, _ in map(written, range(first, min(end, first + 5_000)))
            ]
            await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def make_topic(kafka: str, topic: str, partitions: int = PARTITIONS) -> None:
    """Makes a topic."""
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, 1)])
    finally:
        await admin.close()


async def run_ingest_faults(
    cluster: ClusterUnderTest,
    kafka: Service,
    topic: str,
    count: int,
    faults: tuple[str, ...] = FAULTS,
    tell: Callable[[str], None] = lambda _: None,
) -> IngestRun:
    """Writes `count` records, and reads them with a cluster that has not been started, through faults until the end."""
    await make_topic(cluster.options.kafka, topic)
    await cluster.start()
    await cluster.start_ingest()
    began_s = time.monotonic()
    rounds = max(len(faults), count // PORTION_RECORDS)
    bounds = [count * number // rounds for number in range(rounds + 1)]
    for number, fault in enumerate(islice(cycle(faults), rounds)):
        writing = asyncio.create_task(write_topic(cluster.options.kafka, topic, bounds[number], bounds[number + 1]))
        await asyncio.sleep(PAUSE_SECONDS)
        await _strike(cluster, kafka, fault)
        tell(f"{fault} killed at {time.monotonic() - began_s:.0f} s, with {bounds[number + 1]:,} records on their way")
        await writing
    await _taken(cluster, topic, count)
    seconds = time.monotonic() - began_s
    bad = sum(not written(number)[2] for number in range(count))
    return IngestRun(count - bad, bad, seconds, rounds, await _problems(cluster, topic, count, bad))


async def _strike(cluster: ClusterUnderTest, kafka: Service, fault: str) -> None:
    kind, _, place = fault.partition(" ")
    if kind == "broker":
        await asyncio.to_thread(kafka.kill)
        await asyncio.to_thread(kafka.start)
    elif kind == "worker":
        await cluster.replace_worker(int(place))
    elif kind == "coordinator":
        await cluster.replace_coordinator()
    else:
        assert cluster.ingest is not None, "it was started"
        await cluster.ingest.kill()
        await cluster.start_ingest()


async def _positions(client: Any, topic: str) -> list[Any]:
    asked = [client.call("numbers", (topic, each), "position", timeout=PATIENCE_SECONDS) for each in range(PARTITIONS)]
    return await asyncio.gather(*asked)


async def _taken(cluster: ClusterUnderTest, topic: str, count: int) -> None:
    """Returns when all records are taken and handled."""
    while True:
        try:
            async with cluster.client() as client:
                while True:
                    cluster.check()
                    found = [each[0] for each in await _positions(client, topic)]
                    if None not in found and sum(each["settled"] for each in found) == count:
                        return
                    await asyncio.sleep(0.5)
        except (OSError, TimeoutError):
            await asyncio.sleep(0.5)  # the last fault may not be over: another client is made


async def _problems(cluster: ClusterUnderTest, topic: str, count: int, bad: int) -> list[str]:
    wanted: dict[int, list[int]] = {account: [0, 0, 0] for account in range(ACCOUNTS)}
    for number in range(count):
        if written(number)[2]:
            of_account = wanted[number % ACCOUNTS]
            of_account[0] += 1
            of_account[1] += number
    problems = []
    async with cluster.client() as client:
        for account, expected in wanted.items():
            found = await client.call("ledger", account, "read", timeout=PATIENCE_SECONDS)
            if found != expected:
                problems.append(f"account {account} has (count, sum, out of order) {found}, not {expected}")
        positions = await _positions(client, topic)
    aside = sum(each[1] for each in positions)
    if aside != bad:
        problems.append(f"{aside} records were set aside, not {bad}")
    if lost := sum(each[0]["lost"] for each in positions):
        problems.append(f"{lost} offsets were lost")
    return problems


async def _main(records: int) -> int:
    directory = working_directory("ingest")
    with local_services() as services:
        name = f"ingest-{secrets.token_hex(4)}"
        options = ClusterOptions(
            app="proof.cluster.ingest_app:app",
            name=name,
            kafka=services.kafka_address,
            store=f"file://{directory}/store",
            directory=directory,
        )
        async with ClusterUnderTest(options) as cluster:
            told: Callable[[str], None] = lambda text: print(text, flush=True)  # noqa: E731
            run = await run_ingest_faults(cluster, services.kafka, TOPIC_PREFIX, records, tell=told)
    print(f"{run.good:,} good and {run.bad:,} bad records, {run.faults} faults, {run.seconds:.0f} s", flush=True)
    for problem in run.problems[:20]:
        print(f"wrong: {problem}", flush=True)
    print("verdict: " + ("each record once" if not run.problems else f"{len(run.problems)} problems"), flush=True)
    return 1 if run.problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    sys.exit(asyncio.run(_main(parser.parse_args().records)))
