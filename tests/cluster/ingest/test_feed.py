"""A feed on an engine in memory: whatever happens to topic, brokers and feed, each record counts once and in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from styx.cluster.ingest import feed as feed_module
from styx.cluster.ingest.feed import TopicFeed
from styx.model.ingest import Ingest
from styx.testing import embedded_cluster
from styx.testing.fixture import EmbeddedCluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.cluster.ingest.fake_source import FakeRecord, FakeTopic
from tests.model.ingest_app import TOPIC, made_app, pay

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGAIN_SECONDS", "LOOK_SECONDS", "BUSY_SECONDS"):
        monkeypatch.setattr(feed_module, name, 0.01)


def topic_of(*counts: int) -> FakeTopic:
    """A topic with so many records in each partition; their numbers are their offsets, their account the partition."""
    topic = FakeTopic([[] for _ in counts])
    for partition, count in enumerate(counts):
        write(topic, partition, count)
    return topic


def write(topic: FakeTopic, partition: int, count: int) -> None:
    for _ in range(count):
        topic.write(partition, pay(f"p{partition}", topic.end(partition)))


@asynccontextmanager
async def feeding(cluster: EmbeddedCluster, ingest: Ingest, topic: FakeTopic) -> AsyncIterator[TopicFeed]:
    feed = TopicFeed(cluster.engine, ingest, topic.source)
    running = asyncio.create_task(feed.run())
    try:
        yield feed
        if running.done():
            running.result()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.005)


async def position(cluster: EmbeddedCluster, partition: int = 0) -> Any:
    return (await cluster.call("payments", (TOPIC, partition), "position"))[0]


async def until_settled(cluster: EmbeddedCluster, taken: int, partition: int = 0) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (found := await position(cluster, partition)) is None or found["settled"] < taken:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def paid(cluster: EmbeddedCluster, partition: int = 0) -> Any:
    return cluster.entity("account", f"p{partition}") or []


async def test_all_partitions_are_read_in_order() -> None:
    app, ingest = made_app()
    topic = topic_of(300, 0, 120)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic) as feed:
        for partition, count in enumerate((300, 0, 120)):
            await until_settled(cluster, count, partition)
            assert paid(cluster, partition) == list(range(count))
        write(topic, 1, 5)
        await until_settled(cluster, 5, 1)
        await until(lambda: [lane.end - lane.position.next for lane in feed.lanes.values()] == [0, 0, 0])
        assert feed.counts.records == 425
        assert feed.there
        assert feed.failing is None


async def test_a_feed_goes_on_where_the_last_one_was_killed() -> None:
    app, ingest = made_app()
    topic = topic_of(2_000)
    async with embedded_cluster(app) as cluster:
        for taken in (100, 700, 1_500, 2_000):
            async with feeding(cluster, ingest, topic):
                await until_settled(cluster, taken)
        assert paid(cluster) == list(range(2_000))


async def test_two_feeds_at_once_are_harmless() -> None:
    app, ingest = made_app()
    topic = topic_of(1_000, 1_000)
    async with embedded_cluster(app) as cluster:
        async with feeding(cluster, ingest, topic), feeding(cluster, ingest, topic):
            for partition in range(2):
                await until_settled(cluster, 1_000, partition)
        assert paid(cluster, 0) == paid(cluster, 1) == list(range(1_000))


async def test_latest_begins_at_the_end_once() -> None:
    app, ingest = made_app(start="latest")
    topic = topic_of(50, 60)
    async with embedded_cluster(app) as cluster:
        async with feeding(cluster, ingest, topic) as feed:
            await until(lambda: feed.there)
            write(topic, 0, 3)
            await until_settled(cluster, 3, 0)
        write(topic, 1, 4)  # while nobody reads
        topic.records.append([])
        topic.first.append(0)
        write(topic, 2, 7)  # a partition that is new has only new records
        async with feeding(cluster, ingest, topic):
            await until_settled(cluster, 4, 1)
            await until_settled(cluster, 7, 2)
        assert [paid(cluster, each) for each in range(3)] == [[50, 51, 52], [60, 61, 62, 63], list(range(7))]


async def test_new_partitions_are_read_from_their_beginning(caplog: pytest.LogCaptureFixture) -> None:
    app, ingest = made_app()
    topic = topic_of(10)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until_settled(cluster, 10)
        topic.records.append([])
        topic.first.append(0)
        write(topic, 1, 20)
        await until_settled(cluster, 20, 1)
        assert paid(cluster, 1) == list(range(20))
    assert "has 2 partitions now" in caplog.text


async def test_what_was_deleted_before_it_was_read_is_told(caplog: pytest.LogCaptureFixture) -> None:
    app, ingest = made_app()
    topic = topic_of(100)
    async with embedded_cluster(app) as cluster:
        async with feeding(cluster, ingest, topic):
            await until_settled(cluster, 100)
        write(topic, 0, 100)
        topic.delete_before(0, 150)
        async with feeding(cluster, ingest, topic):
            await until_settled(cluster, 150)
        assert paid(cluster) == [*range(100), *range(150, 200)]
        found = await position(cluster)
        assert (found["lost"], found["gaps"]) == (50, [[100, 150]])
    assert "offsets 100 to 149 of bank.payments, partition 0, were deleted before they were read" in caplog.text


async def test_a_topic_that_is_deleted_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    app, ingest = made_app()
    topic = topic_of(10)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic) as feed:
        await until_settled(cluster, 10)
        topic.topic_id = ""
        await until(lambda: feed.failing == "there is no topic bank.payments")
        topic.topic_id = "t1"
        write(topic, 0, 5)
        await until_settled(cluster, 15)
        assert feed.failing is None
        assert paid(cluster) == list(range(15))
    assert "the topic bank.payments was deleted; it goes on as soon as it can" in caplog.text


@pytest.mark.parametrize("count", [3, 10, 40])
async def test_a_topic_that_was_made_anew_is_read_from_its_beginning(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    app, ingest = made_app()
    topic = topic_of(10)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until_settled(cluster, 10)
        topic.records[0], topic.topic_id = [], "t2"
        write(topic, 0, count)  # in one turn: whether it is shorter, as long or longer than the one before
        await until_settled(cluster, 10 + count)
        assert paid(cluster) == [*range(10), *range(count)]
    assert "was deleted and made anew: what stood in partition 0 from offset 10 on was not read" in caplog.text


async def test_a_topic_without_ids_is_read_as_well(caplog: pytest.LogCaptureFixture) -> None:
    app, ingest = made_app()
    topic = topic_of(10)
    source = topic.source
    told = False

    class Nameless:
        def __init__(self) -> None:
            self._source = source()

        async def look(self) -> Any:
            look = await self._source.look()
            return None if look is None else look._replace(topic_id=topic.topic_id if told else "")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._source, name)

    topic.source = Nameless  # type: ignore[method-assign, assignment]
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until_settled(cluster, 10)
        assert paid(cluster) == list(range(10))
        told = True  # the brokers have another version now, and then one of them does not
        write(topic, 0, 5)
        await until_settled(cluster, 15)
        told = False
        write(topic, 0, 5)
        await until(lambda: "the brokers show no id any more of the topic" in caplog.text)
        assert (await position(cluster))["taken"] == 15
        told = True
        await until_settled(cluster, 20)
        assert paid(cluster) == list(range(20))


async def test_brokers_that_lost_records_are_believed_after_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feed_module, "SHORT_SECONDS", 0.05)
    app, ingest = made_app()
    topic = topic_of(10)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until_settled(cluster, 10)
        lost = topic.records[0][7:]
        topic.records[0] = topic.records[0][:7]
        await until(lambda: "ends at offset 7, but records before offset 10 were taken" in caplog.text)
        write(topic, 0, 4)
        await until_settled(cluster, 14)
        assert paid(cluster) == [*range(10), 7, 8, 9, 10]
        assert len(lost) == 3


async def test_a_leader_that_is_behind_changes_nothing() -> None:
    app, ingest = made_app()
    topic = topic_of(10)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until_settled(cluster, 10)
        whole = topic.records[0]
        topic.records[0] = whole[:7]
        looks = topic.looks
        await until(lambda: topic.looks > looks + 5)
        topic.records[0] = whole
        write(topic, 0, 2)
        await until_settled(cluster, 12)
        assert paid(cluster) == list(range(12))


async def test_brokers_that_are_away_are_waited_for() -> None:
    app, ingest = made_app()
    topic = topic_of(500)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic) as feed:
        for taken in (50, 200, 400):
            await until_settled(cluster, taken)
            topic.away = True
            await until(lambda: "nobody answers there" in (feed.failing or ""))
            topic.away = False
        await until_settled(cluster, 500)
        assert paid(cluster) == list(range(500))
        assert feed.counts.losses == 3


async def test_gaps_of_a_compacted_topic_are_passed_over() -> None:
    app, ingest = made_app()
    topic = topic_of(100)
    topic.records[0] = [each for each in topic.records[0] if each.offset % 3 == 0]
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until_settled(cluster, 34)
        assert paid(cluster) == list(range(0, 100, 3))
        assert (await position(cluster))["lost"] == 0


async def test_bad_records_and_large_ones_keep_nobody() -> None:
    app, ingest = made_app()
    topic = topic_of(10)
    topic.write(0, None)
    topic.records[0].append(FakeRecord(11, 0, b"k" * 2_000_000, b"v" * 2_000_000, (("h", b"x" * 2_000_000),)))
    topic.write(0, b"{")
    write(topic, 0, 5)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until_settled(cluster, 18)
        assert paid(cluster) == [*range(10), *range(13, 18)]
        assert (await cluster.call("payments", (TOPIC, 0), "position"))[1] == 3


async def test_an_app_without_the_ingest_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    app, ingest = made_app()
    other, _ = made_app()
    other.operators["payments"].served = True
    topic = topic_of(10)
    async with embedded_cluster(app) as cluster:
        cluster.engine.app, kept = other, cluster.engine.app
        async with feeding(cluster, ingest, topic) as feed:
            await until(lambda: "is no ingest any more" in (feed._sender.failing or ""))
            cluster.engine.app = kept
            await until_settled(cluster, 10)
            assert feed.failing is None
        assert paid(cluster) == list(range(10))


async def test_a_feed_says_once_what_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "styx.ingest")
    app, ingest = made_app()
    topic = topic_of(1)
    topic.topic_id = ""
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic):
        await until(lambda: topic.looks > 10)
        topic.topic_id = "t1"
        await until_settled(cluster, 1)
    told = [record.message for record in caplog.records if record.name == "styx.ingest"]
    assert told == [
        "ingest payments: there is no topic bank.payments; it goes on as soon as it can",
        "ingest payments reads bank.payments, 1 partitions",
    ]


async def test_what_no_reader_is_given_is_no_lag() -> None:
    """The last offsets are marks of transactions, or what these have aborted; one partition has nothing else."""
    app, ingest = made_app()
    topic = topic_of(20, 0)
    topic.marks = {0: 25, 1: 9}
    async with embedded_cluster(app) as cluster:
        async with feeding(cluster, ingest, topic) as feed:
            await until(lambda: {n: each.position.next for n, each in feed.lanes.items()} == {0: 25, 1: 9})
            assert [each.end - each.position.next for each in feed.lanes.values()] == [0, 0]
            assert paid(cluster) == list(range(20))
        topic.delete_before(0, 25)
        topic.first[1] = 9
        async with feeding(cluster, ingest, topic) as feed:
            await until(lambda: feed.there)
            assert [(await position(cluster, each))["lost"] for each in range(2)] == [0, 0], "nothing was"


async def test_who_was_led_to_another_topic_comes_back() -> None:
    app, ingest = made_app()
    topic = topic_of(10)
    async with embedded_cluster(app) as cluster, feeding(cluster, ingest, topic) as feed:
        await until_settled(cluster, 10)
        await cluster.call("payments", (TOPIC, 0), "renew", "seen long ago", 0)
        await until(lambda: feed.there and feed.lanes and feed.lanes[0].position.former == ["seen long ago"])
        write(topic, 0, 5)
        await until_settled(cluster, 15)
        assert paid(cluster) == list(range(15))
