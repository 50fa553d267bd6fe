"""A real cluster whose processes and broker are killed: who reads the topics of events with an ordinary Kafka consumer
gets every event of every committed transaction once, in the serial order, and consistent cuts.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from proof.cluster import ClusterOptions, ClusterUnderTest
from styx import NotSent, TransactionAborted
from styx.client.base import Client
from styx.kafka.event_topics import event_topic
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
ACCOUNTS, SENDERS, EACH = 8, 10, 70
ISOLATIONS = {"stops": ("read_committed", "read_uncommitted"), "is killed": ("read_uncommitted",)}


class Read(NamedTuple):
    """A record of a topic; `mark` is the epoch of a mark, -1 of an event."""

    partition: int
    key: bytes | None
    value: Any
    mark: int
    headers: dict[str, str]

    @property
    def place(self) -> tuple[int, int, str]:
        return int(self.headers["styx-epoch"]), int(self.headers["styx-phase"]), self.headers["styx-id"]


async def read_all(bootstrap: str, topic: str, n_slots: int, isolation: str) -> list[Read]:
    """All records of a topic, each partition in order, as far as it goes now."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest")
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for number in range(n_slots)]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[Read] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any([await consumer.position(each) < ends[each] for each in partitions]):
                for partition, records in (await consumer.getmany(timeout_ms=200)).items():
                    for record in records:
                        headers = {name: value.decode() for name, value in record.headers}
                        value = None if record.value is None else json.loads(record.value)
                        mark = int(headers.get("styx-mark", -1))
                        found.append(Read(partition.partition, record.key, value, mark, headers))
        return found
    finally:
        await consumer.stop()


async def call(client: Client, *arguments: Any, **options: Any) -> Any:
    """A call that waits while the broker is away."""
    while True:
        try:
            return await client.call("account", *arguments, timeout=PATIENCE_SECONDS, **options)
        except NotSent:
            await asyncio.sleep(0.5)


def events_of(records: list[Read]) -> list[Read]:
    """The events, without the marks; each partition is found to be in order, and its marks to hold."""
    for partition in {record.partition for record in records}:
        there = [record for record in records if record.partition == partition]
        events = [record for record in there if record.mark < 0]
        assert [event.place for event in events] == sorted({event.place for event in events})
        for at, record in enumerate(there):
            if record.mark >= 0:
                assert (record.key, record.value) == (None, None)
                behind = [each.place[0] for each in there[at:] if each.mark < 0]
                assert min(behind, default=record.mark + 1) > record.mark, "an event stands behind its epoch's mark"
    return [record for record in records if record.mark < 0]


def without_repeated(records: list[Read]) -> list[Read]:
    """What a reader of uncommitted records has when it leaves out what is not behind the last place it has seen."""
    seen: dict[int, tuple[int, int, str]] = {}
    kept: list[Read] = []
    for record in records:
        if record.mark >= 0:
            kept.append(record)
        elif record.place > seen.get(record.partition, (-1, 0, "")):
            seen[record.partition] = record.place
            kept.append(record)
    return kept


def check(moved_records: list[Read], settled_records: list[Read], committed: list[str], counts: dict[int, int]) -> None:
    """Every event of every committed transfer is there once, in the serial order of its key; marks go to the end."""
    moved, settled = events_of(moved_records), events_of(settled_records)
    assert sorted(each.value["name"] for each in moved) == sorted([*committed, *committed])
    for who, count in counts.items():
        of_account = [each for each in moved if each.value["account"] == who]
        assert [each.value["number"] for each in of_account] == list(range(1, count + 1)), "not in the serial order"
        assert {each.key for each in of_account} <= {b"%d" % who}
    assert sorted(each.value for each in settled) == sorted(committed)
    assert {each.headers["styx-version"] for each in settled} == {"2"}
    assert {json.loads(each.headers["styx-key"])[0] for each in settled} == {"bank"}
    last = max(each.place[0] for each in [*moved, *settled])
    for records in (moved_records, settled_records):
        for partition in {each.partition for each in records}:
            marks = [each.mark for each in records if each.partition == partition and each.mark >= 0]
            assert max(marks, default=-1) >= last, f"partition {partition} has no mark behind the last event"


@pytest.mark.parametrize("broker", ["stops", "is killed"])
def test_an_ordinary_consumer_reads_each_event_once(kafka_of_its_own: RealKafka, tmp_path: Path, broker: str) -> None:
    """A broker that is killed can lose the end of a transaction for good (docs/services.md): then who reads committed
    records waits for ever, and only who reads uncommitted ones is looked at.
    """
    kafka = kafka_of_its_own

    async def main() -> None:
        options = ClusterOptions(
            app="proof.cluster.events_app:app",
            name=f"events-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path,
        )
        committed: list[str] = []
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:

                async def sends(who: int) -> None:
                    for number in range(EACH):
                        name, to = f"{who}-{number}", (who + 1 + number) % ACCOUNTS
                        arguments = (who % ACCOUNTS, "transfer", to, name)
                        try:
                            await call(client, *arguments, idempotency_key=name)
                            committed.append(name)
                        except TransactionAborted:
                            assert number % 7 == 6
                        await asyncio.sleep(0.05)

                async def strikes() -> None:
                    for place in range(options.workers):
                        await asyncio.sleep(0.8)
                        await cluster.replace_worker(place)
                    await cluster.replace_coordinator()
                    await asyncio.sleep(1.0)
                    await asyncio.to_thread(kafka.kill if broker == "is killed" else kafka.stop)
                    await asyncio.to_thread(kafka.start)

                await asyncio.gather(*map(sends, range(SENDERS)), strikes())
                counts = {who: await call(client, who, "told") for who in range(ACCOUNTS)}
            await asyncio.sleep(1.0)

            topics = [event_topic(options.name, each) for each in ("account-moved", "settled")]
            for isolation in ISOLATIONS[broker]:
                moved, settled = [await read_all(kafka.bootstrap, topic, options.slots, isolation) for topic in topics]
                if isolation == "read_uncommitted":
                    moved, settled = without_repeated(moved), without_repeated(settled)
                check(moved, settled, committed, counts)

    asyncio.run(main())
