"""Ingests on a real broker and a cluster of real processes: faults, and what can happen to a topic of others."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.structs import TopicPartition

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.ingest_app import TOPIC_PREFIX
from proof.cluster.ingest_faults import run_ingest_faults
from styx import App, Ingest
from styx.cluster.ingest.feed import TopicFeed
from styx.cluster.ingest.source import KafkaSource
from styx.kafka.address import KafkaAddress
from styx.testing import embedded_cluster
from styx.testing.fixture import EmbeddedCluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.model.ingest_app import made_app, pay
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
RECORDS = 10_000


def test_each_record_once_through_faults(kafka_of_its_own: RealKafka, tmp_path: Path) -> None:
    options = ClusterOptions(
        app="proof.cluster.ingest_app:app",
        name=f"ingest-{secrets.token_hex(4)}",
        kafka=kafka_of_its_own.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path,
    )

    async def main() -> None:
        async with ClusterUnderTest(options) as cluster:
            run = await run_ingest_faults(cluster, kafka_of_its_own, TOPIC_PREFIX, RECORDS)
        assert run.problems == []
        assert (run.good, run.bad) == (9_900, 100)
        assert run.faults == 6

    asyncio.run(main())


class Others:
    """A topic of others, with an engine in memory that reads it."""

    def __init__(self, kafka: RealKafka, admin: AIOKafkaAdminClient, topic: str, cluster: EmbeddedCluster) -> None:
        self.admin, self.topic, self.cluster = admin, topic, cluster
        self.address = KafkaAddress(kafka.bootstrap)

    async def write(self, *values: bytes, partition: int = 0, transaction: str = "", commit: bool = True) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.address.bootstrap, transactional_id=transaction or None, compression_type="gzip"
        )
        await producer.start()
        try:
            if transaction:
                await producer.begin_transaction()
            for value in values:
                await producer.send_and_wait(self.topic, value, partition=partition)
            if transaction:
                await (producer.commit_transaction() if commit else producer.abort_transaction())
        finally:
            await producer.stop()

    async def position(self, partition: int = 0) -> Any:
        return (await self.cluster.call("payments", (self.topic, partition), "position"))[0]

    async def until_settled(self, count: int, partition: int = 0) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (found := await self.position(partition)) is None or found["settled"] < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def paid(self, account: str = "a") -> Any:
        return self.cluster.entity("account", account)

    @asynccontextmanager
    async def feeding(self) -> AsyncIterator[TopicFeed]:
        ingest = self.cluster.engine.app.operators["payments"]
        assert isinstance(ingest, Ingest)
        feed = TopicFeed(self.cluster.engine, ingest, lambda: KafkaSource(self.address, self.topic))
        running = asyncio.create_task(feed.run())
        try:
            yield feed
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def others(kafka: RealKafka, **given: Any) -> AsyncIterator[Others]:
    topic = f"others.{secrets.token_hex(4)}"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, 1)])
        made: App = made_app(topic=topic, **given)[0]
        async with embedded_cluster(made) as cluster:
            yield Others(kafka, admin, topic, cluster)
    finally:
        await admin.close()


def payments(begin: int, end: int) -> list[bytes]:
    return [pay("a", number) for number in range(begin, end)]


async def without_lag(feed: TopicFeed, end: int) -> None:
    """Waits until all is taken to this offset, at which the partition ends."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not feed.lanes or (feed.lanes[0].position.next, feed.lanes[0].end) != (end, end):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def test_records_of_aborted_transactions_are_nobodys(kafka: RealKafka) -> None:
    async def main() -> None:
        async with others(kafka) as topic, topic.feeding() as feed:
            await topic.write(*payments(0, 5))
            await topic.write(*payments(5, 8), transaction=f"t-{topic.topic}", commit=False)
            await topic.write(*payments(8, 12), transaction=f"t-{topic.topic}")
            await topic.until_settled(9)
            assert topic.paid() == [*range(5), *range(8, 12)]
            # Its last offset is a transaction's mark.
            await without_lag(feed, 14)


def test_a_topic_with_aborted_transactions_only_has_no_lag(kafka: RealKafka) -> None:
    async def main() -> None:
        async with others(kafka) as topic, topic.feeding() as feed:
            for _ in range(2):
                await topic.write(*payments(0, 3), transaction=f"t-{topic.topic}", commit=False)
            await without_lag(feed, 8)
            assert topic.paid() is None
            await topic.write(*payments(0, 1))
            await topic.until_settled(1)
            assert (await topic.position())["next"] == 9

    asyncio.run(main())


def test_a_topic_that_was_truncated_tells_what_is_lost(kafka: RealKafka) -> None:
    async def main() -> None:
        async with others(kafka) as topic:
            await topic.write(*payments(0, 5))
            async with topic.feeding():
                await topic.until_settled(5)
            await topic.write(*payments(5, 20))
            place = TopicPartition(topic.topic, 0)
            await topic.admin.delete_records({place: RecordsToDelete(before_offset=12)})
            async with topic.feeding():
                await topic.until_settled(13)
                assert topic.paid() == [*range(5), *range(12, 20)]
                found = await topic.position()
                assert (found["lost"], found["gaps"]) == (7, [[5, 12]])

    asyncio.run(main())


def test_a_topic_that_was_made_anew_and_one_that_grows(kafka: RealKafka) -> None:
    async def main() -> None:
        async with others(kafka) as topic, topic.feeding() as feed:
            await topic.write(*payments(0, 5))
            await topic.until_settled(5)
            await topic.admin.delete_topics([topic.topic])
            async with asyncio.timeout(PATIENCE_SECONDS):
                while feed.there:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                while True:
                    answer = await topic.admin.create_topics([NewTopic(topic.topic, 1, 1)])
                    if answer.topic_errors[0][1] == 0:
                        break
                    await asyncio.sleep(0.05)
            await topic.write(*payments(0, 9))
            await topic.until_settled(14)
            assert topic.paid() == [*range(5), *range(9)]
            await topic.admin.create_partitions({topic.topic: NewPartitions(2)})
            await topic.write(*payments(100, 103), partition=1)
            await topic.until_settled(3, 1)
            assert topic.paid() == [*range(5), *range(9), 100, 101, 102]

    asyncio.run(main())


def test_two_readers_of_one_topic(kafka: RealKafka) -> None:
    async def main() -> None:
        async with others(kafka) as topic, topic.feeding(), topic.feeding():
            for begin in range(0, 1_000, 250):
                await topic.write(*payments(begin, begin + 250))
            await topic.until_settled(1_000)
            assert topic.paid() == list(range(1_000))

    asyncio.run(main())
