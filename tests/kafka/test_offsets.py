"""Ends of partitions, and releasing records, on a real broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from styx.kafka.appender import Appender
from styx.kafka.offsets import LogEnds
from styx.kafka.topics import Topics, topics_of
from tests.kafka.blocking import records
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
async def ends(kafka: RealKafka, topics: Topics) -> AsyncIterator[LogEnds]:
    ends = LogEnds(kafka.bootstrap, topics)
    await ends.open()
    yield ends
    await ends.close()


async def test_ends_follow_what_is_appended(ends: LogEnds, appender: Appender, topics: Topics) -> None:
    both = [(topics.replies, 1), (topics.epochs, 0)]
    assert await ends.ends(both) == dict.fromkeys(both, 0)
    await appender.append(topics.replies, 1, records(range(5)))
    assert await ends.ends(both) == {(topics.replies, 1): 5, (topics.epochs, 0): 0}


async def test_releasing_what_is_released_or_not_there_is_harmless(
    ends: LogEnds, appender: Appender, topics: Topics
) -> None:
    all_three = [(topics.requests, slot) for slot in range(3)]
    for topic, slot in all_three:
        await appender.append(topic, slot, records(range(10)))
    await ends.release({(topics.requests, 0): 6, (topics.requests, 1): 11, (topics.requests, 2): 0})
    await ends.release({(topics.requests, 0): 3})
    assert await ends.firsts(all_three) == {
        (topics.requests, 0): 6,
        (topics.requests, 1): 0,
        (topics.requests, 2): 0,
    }


async def test_a_partition_that_does_not_exist(ends: LogEnds, topics: Topics) -> None:
    with pytest.raises(ConnectionError, match="partition 9 has no leader now, or does not exist"):
        await ends.ends([(topics.epochs, 9)])


async def test_a_broker_that_is_not_there() -> None:
    ends = LogEnds("127.0.0.1:1", topics_of("bank"))
    with pytest.raises(ConnectionError, match="cannot be reached"):
        await ends.open()
    await ends.close()
