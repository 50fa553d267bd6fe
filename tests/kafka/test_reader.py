"""Reading a real broker's log: all of it, from the middle, across what was released, and when something is wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from styx.kafka.appender import Appender
from styx.kafka.offsets import LogEnds
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import Topics
from styx.kafka.wire import Chunk, Damaged
from styx.log.base import LogCorrupt, LogTruncated, Stream
from tests.kafka.blocking import in_thread, numbers, read_all, record, records
from tests.kafka.conftest import N_SLOTS
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def reply_tids(reader: KafkaReader, first_offset: int = 0) -> list[tuple[int, int]]:
    """(offset, TID) of the replies of the first partition."""
    return [(offset, tid) for _, offset, tid, _ in reader.replies_of({0: first_offset})]


async def test_an_empty_partition(reader: KafkaReader) -> None:
    assert await in_thread(lambda: reader.bounds(Stream.EPOCHS, 0)) == (0, 0)
    assert await in_thread(lambda: reader.bounds_of(Stream.REQUESTS)) == dict.fromkeys(range(N_SLOTS), (0, 0))
    assert await read_all(reader, Stream.EPOCHS, 0) == []
    assert await in_thread(lambda: reply_tids(reader)) == []


async def test_records_come_with_offset_time_and_payload(
    appender: Appender, reader: KafkaReader, topics: Topics
) -> None:
    before = time.time_ns() // 1_000_000 * 1000
    await appender.append(topics.requests, 1, records(range(1000)))
    after = time.time_ns() // 1000
    read = await read_all(reader, Stream.REQUESTS, 1, 990)
    assert [each.offset for each in read] == numbers(read) == list(range(990, 1000))
    assert all(before <= each.timestamp_us <= after for each in read)


async def test_what_is_appended_after_the_call_is_not_read(
    appender: Appender, reader: KafkaReader, topics: Topics
) -> None:
    await appender.append(topics.requests, 0, records(range(10)))
    read = await in_thread(lambda: reader.read(Stream.REQUESTS, 0, 0))
    await appender.append(topics.requests, 0, records(range(10, 20)))
    assert numbers(await in_thread(lambda: list(read))) == list(range(10))


async def test_many_fetches_give_every_record_once(
    appender: Appender, reader: KafkaReader, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("styx.kafka.reader.FETCH_BYTES_MAX", 2000)
    monkeypatch.setattr(appender._producer, "_batch_bytes_max", 700)
    for partition in (0, 1):
        await appender.append(topics.replies, partition, records(range(1000)))
    assert numbers(await read_all(reader, Stream.REPLIES, 0, 3)) == list(range(3, 1000))
    tids = await in_thread(lambda: list(reader.replies_of({0: 5, 1: 800})))
    by_partition = {each: [(offset, tid) for partition, offset, tid, _ in tids if partition == each] for each in (0, 1)}
    assert by_partition == {0: [(n, n) for n in range(5, 1000)], 1: [(n, n) for n in range(800, 1000)]}


async def test_open_transactions_are_read_and_control_records_are_not(
    owner_of: Callable[[str], Appender], reader: KafkaReader, topics: Topics
) -> None:
    for number in range(3):
        # Each takes the former one's transaction over, which the broker aborts.
        owner = owner_of("worker")
        await owner.start(topics)
        await owner.append(topics.epochs, 0, [record(number)])
    read = await read_all(reader, Stream.EPOCHS, 0)
    assert [(each.offset, int(each.payload)) for each in read] == [(0, 0), (2, 1), (4, 2)]
    assert numbers(await read_all(reader, Stream.EPOCHS, 0, 1)) == [1, 2]


async def test_a_log_that_ends_with_control_records_is_read_to_its_end(
    owner_of: Callable[[str], Appender], reader: KafkaReader, topics: Topics
) -> None:
    owner = owner_of("worker")
    await owner.start(topics)
    await owner.append(topics.replies, 0, [record(7)])
    await owner.stop()
    assert await in_thread(lambda: reader.bounds(Stream.REPLIES, 0)) == (0, 2)
    assert numbers(await read_all(reader, Stream.REPLIES, 0)) == [7]
    assert await read_all(reader, Stream.REPLIES, 0, 1) == []
    assert await in_thread(lambda: reply_tids(reader)) == [(0, 7)]


async def test_released_records_are_said_to_be(
    kafka: RealKafka, appender: Appender, reader: KafkaReader, topics: Topics
) -> None:
    await appender.append(topics.epochs, 0, records(range(10)))
    await appender.append(topics.replies, 0, records(range(10)))
    await _release(kafka, topics, {(topics.epochs, 0): 4, (topics.replies, 0): 4})
    assert await in_thread(lambda: reader.bounds(Stream.EPOCHS, 0)) == (4, 10)
    assert numbers(await read_all(reader, Stream.EPOCHS, 0, 4)) == list(range(4, 10))
    with pytest.raises(LogTruncated, match="begins at offset 4, not 3"):
        await read_all(reader, Stream.EPOCHS, 0, 3)
    # Replies are released by time, whatever anybody knows of them.
    assert await in_thread(lambda: [tid for _, tid in reply_tids(reader, 1)]) == list(range(4, 10))


async def test_a_reader_overtaken_by_a_release_says_so(
    kafka: RealKafka, appender: Appender, reader: KafkaReader, topics: Topics
) -> None:
    await appender.append(topics.epochs, 0, records(range(10)))
    read = await in_thread(lambda: reader.read(Stream.EPOCHS, 0, 0))
    await _release(kafka, topics, {(topics.epochs, 0): 4})
    with pytest.raises(LogTruncated, match="released meanwhile"):
        await in_thread(lambda: list(read))


async def test_a_known_offset_beyond_the_end_means_that_records_are_gone(
    appender: Appender, reader: KafkaReader, topics: Topics
) -> None:
    await appender.append(topics.epochs, 0, records(range(3)))
    assert await read_all(reader, Stream.EPOCHS, 0, 3) == []
    with pytest.raises(LogCorrupt, match=r"ends at offset 3, but records before offset 4 are known.*Bring back"):
        await read_all(reader, Stream.EPOCHS, 0, 4)
    with pytest.raises(LogCorrupt, match="ends at offset 0"):
        await in_thread(lambda: reader.replies_of({0: 1}))


async def test_replies_without_a_tid_are_passed_over(appender: Appender, reader: KafkaReader, topics: Topics) -> None:
    await appender.append(topics.replies, 0, [(b"key", b"from somebody else", []), record(5)])
    assert await in_thread(lambda: reply_tids(reader)) == [(1, 5)]


async def test_strangers_records_are_passed_over_and_counted_once(
    kafka: RealKafka, appender: Appender, reader: KafkaReader, topics: Topics, failures: list[BaseException]
) -> None:
    stranger = Appender(kafka.bootstrap, on_failure=failures.append)
    await stranger.start(topics)
    for topic in (topics.requests, topics.epochs, topics.replies):
        await appender.append(topic, 0, records(range(2)))
        await stranger.append(topic, 0, records(range(100, 103)))
        await appender.append(topic, 0, records(range(2, 4)))
    await stranger.stop()
    for _ in range(2):
        assert numbers(await read_all(reader, Stream.EPOCHS, 0)) == [0, 1, 2, 3]
        assert await in_thread(lambda: [tid for _, tid in reply_tids(reader)]) == [0, 1, 2, 3]
    assert numbers(await read_all(reader, Stream.REQUESTS, 0)) == [0, 1, 100, 101, 102, 2, 3]
    assert reader.strangers == 6
    assert not failures


async def test_it_is_for_several_threads_and_connects_again_after_close(
    appender: Appender, reader: KafkaReader, topics: Topics
) -> None:
    for slot in range(N_SLOTS):
        await appender.append(topics.requests, slot, records(range(slot * 100, slot * 100 + 100)))
    for _ in range(2):
        reads = await asyncio.gather(*(read_all(reader, Stream.REQUESTS, slot) for slot in range(N_SLOTS)))
        assert [numbers(read) for read in reads] == [list(range(s * 100, s * 100 + 100)) for s in range(N_SLOTS)]
        await in_thread(reader.close)


async def test_a_broker_that_is_not_there_is_said_so(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.kafka.reader.READ_SECONDS_MAX", 0.2)
    reader = KafkaReader("127.0.0.1:1", topics)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        await in_thread(lambda: reader.bounds(Stream.EPOCHS, 0))
    await in_thread(reader.close)


async def test_a_changed_byte_is_noticed(
    appender: Appender, reader: KafkaReader, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    await appender.append(topics.epochs, 0, [(None, b"some payload", [])])
    verified = Chunk.records
    monkeypatch.setattr(
        Chunk,
        "records",
        lambda self, at, stranger: verified(self._replace(data=self.data.replace(b"some", b"sane")), at, stranger),
    )
    with pytest.raises(LogCorrupt, match="checksum of the batch at offset 0 is wrong"):
        await read_all(reader, Stream.EPOCHS, 0)
    with pytest.raises(Damaged):
        list(verified(Chunk(0, 1, b"\0" * 8 + (61).to_bytes(4, "big") + b"\0" * 4 + b"\2" + b"\1" * 56), 0))


async def _release(kafka: RealKafka, topics: Topics, offsets: dict[tuple[str, int], int]) -> None:
    ends = LogEnds(kafka.bootstrap, topics)
    await ends.open()
    await ends.release(offsets)
    await ends.close()
