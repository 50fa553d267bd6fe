"""Appending to a real broker: order, offsets, commits in between, and the largest record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from styx.kafka.appender import Appender
from styx.kafka.appends import RECORD_BYTES_MAX, size_of
from styx.kafka.errors import AppendFailed
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import Topics
from styx.log.base import Stream
from styx.testing.patience import PATIENCE_SECONDS
from tests.kafka.blocking import in_thread, numbers, read_all, record, records
from tests.kafka.conftest import N_SLOTS
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_partitions_keep_their_order(appender: Appender, reader: KafkaReader, topics: Topics) -> None:
    futures = [
        appender.append(topics.requests, slot, records(range(first, first + 7)))
        for first in range(0, 7 * 200, 7)
        for slot in range(N_SLOTS)
    ]
    ends = await asyncio.gather(*futures)
    assert ends == [first + 7 for first in range(0, 7 * 200, 7) for _ in range(N_SLOTS)]
    for slot in range(N_SLOTS):
        assert numbers(await read_all(reader, Stream.REQUESTS, slot)) == list(range(1400))


@pytest.mark.usefixtures("frequent_commits")
async def test_commits_neither_lose_nor_reorder_and_leave_gaps(
    owner_of: Callable[[str], Appender], reader: KafkaReader, topics: Topics, failures: list[BaseException]
) -> None:
    appender = owner_of("worker")
    await appender.start(topics)
    ends = []
    for number in range(150):
        future = appender.append(topics.epochs, 0, [record(number)])
        if number % 3 == 2:
            ends.append((number, await future))
    read = await read_all(reader, Stream.EPOCHS, 0)
    assert numbers(read) == list(range(150))
    assert [(number, read[number].offset + 1) for number, _ in ends] == ends
    assert read[-1].offset > 150, "no control record of a commit stands between the records"
    assert failures == []


async def test_the_largest_record_is_taken(appender: Appender, reader: KafkaReader, topics: Topics) -> None:
    largest = bytes(RECORD_BYTES_MAX - size_of((None, b"", [])))
    assert await appender.append(topics.replies, 1, [(None, largest, [])]) == 1
    assert (await read_all(reader, Stream.REPLIES, 1))[0].payload == largest


async def test_stop_ends_the_transaction(
    owner_of: Callable[[str], Appender], reader: KafkaReader, topics: Topics
) -> None:
    appender = owner_of("worker")
    await appender.start(topics)
    appender.append(topics.epochs, 0, [record(1)])
    await appender.stop()
    # Its record, and the one that ends its transaction: the broker writes that one soon after it has answered.
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await in_thread(lambda: reader.bounds(Stream.EPOCHS, 0)) == (0, 2):
                return
            await asyncio.sleep(0.05)


async def test_a_transactional_id_that_the_broker_does_not_take(
    kafka: RealKafka, monkeypatch: pytest.MonkeyPatch, failures: list[BaseException]
) -> None:
    monkeypatch.setattr("styx.kafka.transaction.TRANSACTION_SECONDS_MAX", 10_000.0)
    appender = Appender(kafka.bootstrap, transactional_id="worker", on_failure=failures.append)
    with pytest.raises(AppendFailed, match=r"refuses to start a producer as 'worker': InvalidTransactionTimeout"):
        await appender.start()
    assert failures == []
