"""The topics of events in Kafka: how they are named and made, and what of them counts as committed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from styx.errors import ConfigurationError
from styx.kafka.appender import Appender
from styx.kafka.event_topics import ensure_event_topics, event_settings, event_topic, existing_event_topics
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import ensure_topics, topics_of
from styx.kafka.transaction import fence
from tests.real_services import RealKafka

N_SLOTS = 3


def test_names() -> None:
    assert event_topic("bank", "order-paid") == "styx.bank.events.order-paid"
    with pytest.raises(ConfigurationError, match=r"would have the Kafka topic .* give the event a shorter name"):
        event_topic("b" * 200, "e" * 50)


def test_a_topic_keeps_events_for_a_week_or_as_the_event_says() -> None:
    assert event_settings(N_SLOTS).configuration["retention.ms"] == str(7 * 86_400_000)
    assert event_settings(N_SLOTS, timedelta(days=90)).configuration["retention.ms"] == str(90 * 86_400_000)
    assert event_settings(N_SLOTS, timedelta(microseconds=1)).configuration["retention.ms"] == "1"


@pytest.mark.slow
def test_topics_are_made_once_and_found(kafka: RealKafka) -> None:
    async def main() -> None:
        app = f"bank-{uuid4().hex[:8]}"
        await ensure_topics(kafka.bootstrap, topics_of(app), N_SLOTS, 1)
        assert await existing_event_topics(kafka.bootstrap, app) == []
        for _ in range(2):
            made = await ensure_event_topics(kafka.bootstrap, app, ["a", "b"], N_SLOTS)
            assert made == {"a": event_topic(app, "a"), "b": event_topic(app, "b")}
        assert await existing_event_topics(kafka.bootstrap, app) == [event_topic(app, "a"), event_topic(app, "b")]
        with pytest.raises(ConfigurationError, match="exists with 3 partitions, but 4 are configured"):
            await ensure_event_topics(kafka.bootstrap, app, ["a"], N_SLOTS + 1)

    asyncio.run(main())


@pytest.mark.slow
def test_only_what_is_committed_is_read(kafka: RealKafka) -> None:
    """And a taken over producer can append no more, nor commit what it had appended."""

    async def main() -> None:
        app = f"bank-{uuid4().hex[:8]}"
        topics = topics_of(app)
        await ensure_topics(kafka.bootstrap, topics, N_SLOTS, 1)
        [topic] = (await ensure_event_topics(kafka.bootstrap, app, ["a"], N_SLOTS)).values()
        name, failed = f"styx.{app}.events.0", asyncio.Event()
        appender = Appender(kafka.bootstrap, transactional_id=name, on_failure=lambda _: failed.set())
        await appender.start([topic])
        await appender.append(topic, 1, [(b"k", b"1", [])])
        committed = asyncio.Event()
        appender.commit(committed.set)
        await committed.wait()
        await appender.append(topic, 1, [(b"k", b"2", []), (None, None, [("styx-mark", b"7")])])
        await appender.append(topic, 2, [(b"k", b"3", [])])
        [identity] = await fence(kafka.bootstrap, [name])

        reader = KafkaReader(kafka.bootstrap, topics)

        def values(firsts: dict[int, int]) -> list[tuple[int, bytes | None]]:
            return [(partition, record.value) for partition, record in reader.committed_of(topic, firsts)]

        assert await asyncio.to_thread(values, {0: 0, 1: 0, 2: 0}) == [(1, b"1")]
        appender.append(topic, 1, [(b"k", b"4", [])]).add_done_callback(lambda future: future.exception())
        await failed.wait()

        newer = Appender(kafka.bootstrap, transactional_id=name, identity=identity, on_failure=lambda _: None)
        await newer.start([topic])
        end = await newer.append(topic, 1, [(b"k", b"2", [])])
        await newer.stop()
        assert await asyncio.to_thread(values, {0: 0, 1: 1, 2: 0}) == [(1, b"2")]
        ends = await asyncio.to_thread(reader.ends_of, topic)
        assert ends[1] >= end
        assert await asyncio.to_thread(values, {1: ends[1]}) == []
        assert await asyncio.to_thread(values, {1: ends[1] + 5}) == [(1, b"1"), (1, b"2")], "a topic made anew"
        await asyncio.to_thread(reader.close)

    asyncio.run(main())
