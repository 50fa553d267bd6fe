"""The reader of the log in Kafka, for threads that may block: a recovery reads all records in order (§7.1).

It belongs to no consumer group and stores no offset. It fetches the next records while it decodes the last ones. It
waits for an unreachable broker, but not for ever.

Any process may append requests. Only the engine appends to the other topics, and always in a transaction, by which it
is fenced; there, a record outside of a transaction is a stranger's, and is skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from styx.kafka.address import KafkaAddress
from styx.kafka.errors import OFFSET_OUT_OF_RANGE
from styx.kafka.offsets import END, FIRST, check, grouped, list_offsets
from styx.kafka.session import RETRY_SECONDS, KafkaSession
from styx.kafka.topics import TID_HEADER, Topics
from styx.kafka.wire import Chunk, Damaged, chunks_of, fetch_request
from styx.log.base import LogCorrupt, LogTruncated, Record, Stream

READ_SECONDS_MAX: Final = 60.0
"""The longest wait for an answer, an unreachable broker included."""
FETCH_BYTES_MAX: Final = 8 * 1024 * 1024
"""One answer; two of them are in memory at once."""

_WAIT_MS: Final = 100

_log = logging.getLogger(__name__)

T = TypeVar("T")


class KafkaReader:
    """A `LogReader`, for threads without an event loop. It connects at the first question.

    `strangers` counts the strangers' records that were skipped, each of them once.

    Every method raises `ConnectionError` after `READ_SECONDS_MAX` without an answer, and `EngineFailed` if the broker
    refuses.
    """

    def __init__(self, address: KafkaAddress | str, topics: Topics) -> None:
        self.strangers = 0
        self._strangers_end: dict[tuple[str, int], int] = {}
        self._address = address
        self._topics = topics
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._session: KafkaSession | None = None
        self._connecting = asyncio.Lock()

    def bounds(self, stream: Stream, partition: int) -> tuple[int, int]:
        """The first retained offset and the one behind the last record."""
        return self._bounds(self._topics.of(stream), [partition])[partition]

    def bounds_of(self, stream: Stream) -> dict[int, tuple[int, int]]:
        """`bounds` of every partition, with two requests in all."""
        return self._bounds(self._topics.of(stream), None)

    def read(self, stream: Stream, partition: int, first_offset: int) -> Iterator[Record]:
        """The records from `first_offset` on, as of this call, in order and verified. Offsets may have gaps.

        Raises `LogTruncated` if they were released, also while reading, and `LogCorrupt` on a bad checksum or if the
        partition ends before `first_offset`, since a known offset means that there was a record.
        """
        topic = self._topics.of(stream)
        first, end = self.bounds(stream, partition)
        if first_offset < first:
            raise LogTruncated(f"{topic}, partition {partition} begins at offset {first}, not {first_offset}.")
        self._check_end(stream, partition, first_offset, end)
        return self._read(stream, partition, first_offset, end)

    def replies_of(self, first_offsets: Mapping[int, int]) -> Iterator[tuple[int, int, int, bytes]]:
        """(partition, offset, TID, record) of the replies of several partitions at once, each in order.

        Each begins at its first offset, or at the first retained reply. Records stay encoded. Raises `LogCorrupt` as
        `read`.
        """
        bounds = self._bounds(self._topics.replies, list(first_offsets))
        for partition, first_offset in first_offsets.items():
            self._check_end(Stream.REPLIES, partition, first_offset, bounds[partition][1])
        spans = {
            partition: (max(offset, bounds[partition][0]), bounds[partition][1])
            for partition, offset in first_offsets.items()
        }
        return self._replies(spans)

    def ends_of(self, topic: str) -> dict[int, int]:
        """The end of each partition of a topic of events. Raises `ConnectionError` if there is no such topic."""
        return {partition: end for partition, (_, end) in self._bounds(topic, None).items()}

    def firsts_of(self, topic: str) -> dict[int, int]:
        """The first retained offset of each partition of a topic of events. Raises as `ends_of`."""
        return {partition: first for partition, (first, _) in self._bounds(topic, None).items()}

    def committed_of(
        self, topic: str, first_offsets: Mapping[int, int], *, fenced: bool = True
    ) -> Iterator[tuple[int, Any]]:
        """(partition, record) of a topic of events, of committed transactions alone, each partition in order, from its
        first offset or the first retained record on. Call it behind a fence, when no transaction can be open there; if
        it is not `fenced`, the records of open ones are left out.

        A partition that ends before its first offset was made anew, or has lost records, and is read from its
        beginning: nothing but its readers depends on it. That is logged.

        A single broker that was killed can have lost the mark of a transaction's end. Its records count as not
        committed: whoever reads committed records does not get them either. That is logged, too.

        Raises `LogCorrupt` on a bad checksum.
        """
        bounds = self._bounds(topic, list(first_offsets))
        spans = {}
        for partition, offset in first_offsets.items():
            first, end = bounds[partition]
            if offset > end:
                told = (topic, partition, end, offset)
                _log.error(
                    "%s, partition %d, ends at offset %d, and had events up to offset %d: Kafka has lost them, or the "
                    "topic was deleted. They stay lost; newer events go there",
                    *told,
                )
            spans[partition] = (max(first, offset if offset <= end else 0), end)
        open_records: dict[tuple[int, int], list[Any]] = {}
        for partition, position, chunk in self._chunks(topic, spans):
            try:
                for producer, committed, records in chunk.by_producer():
                    if committed is None:
                        wanted = [each for each in records if position <= each.offset < spans[partition][1]]
                        open_records.setdefault((partition, producer), []).extend(wanted)
                    elif committed:
                        for record in open_records.pop((partition, producer), ()):
                            yield partition, record
                    else:
                        open_records.pop((partition, producer), None)
            except Damaged as damage:
                raise LogCorrupt(str(damage), file=topic, partition=partition, offset=position) from None
        lost = sum(map(len, open_records.values()))
        if lost and fenced:
            _log.error(
                "%s has %d events in transactions whose end is not in the log: the broker has lost it. They are "
                "emitted again; who reads committed records may wait there for ever. See docs/services.md, Restarts",
                topic,
                lost,
            )

    def close(self) -> None:
        """Disconnects. Iterators with records left fail."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._disconnect(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _read(self, stream: Stream, partition: int, first_offset: int, end: int) -> Iterator[Record]:
        for _, position, chunk in self._chunks(self._topics.of(stream), {partition: (first_offset, end)}):
            for record in self._verified(stream, partition, position, chunk):
                if record.offset >= end:
                    break
                yield Record(record.offset, record.timestamp * 1000, record.value or b"")

    def _replies(self, spans: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, int, int, bytes]]:
        for partition, position, chunk in self._chunks(self._topics.replies, spans):
            end = spans[partition][1]
            for record in self._verified(Stream.REPLIES, partition, position, chunk):
                if record.offset >= end:
                    break
                for name, value in record.headers:
                    if name == TID_HEADER:
                        yield partition, record.offset, int.from_bytes(value, "big"), record.value or b""

    def _verified(self, stream: Stream, partition: int, position: int, chunk: Chunk) -> Iterator[Any]:
        def stranger(offset: int) -> None:
            self._pass_over(self._topics.of(stream), partition, offset)

        try:
            yield from chunk.records(position, None if stream is Stream.REQUESTS else stranger)
        except Damaged as damage:
            raise self._corrupt(stream, partition, position, str(damage)) from None

    def _pass_over(self, topic: str, partition: int, offset: int) -> None:
        place = topic, partition
        if place not in self._strangers_end:
            _log.warning(
                "%s, partition %d, offset %d: a record that is not this app's was passed over; others there are "
                "counted only. Let nobody but the processes of the cluster write into this topic",
                topic,
                partition,
                offset,
            )
        if offset >= self._strangers_end.get(place, 0):
            self._strangers_end[place] = offset + 1
            self.strangers += 1

    def _check_end(self, stream: Stream, partition: int, offset: int, end: int) -> None:
        if offset > end:
            raise self._corrupt(
                stream, partition, offset, f"it ends at offset {end}, but records before offset {offset} are known"
            )

    def _corrupt(self, stream: Stream, partition: int, offset: int, problem: str) -> LogCorrupt:
        return LogCorrupt(problem, file=self._topics.of(stream), stream=stream, partition=partition, offset=offset)

    def _chunks(self, topic: str, spans: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, int, Chunk]]:
        """(partition, position of the fetch, chunk), until every span is read."""
        positions = {partition: first for partition, (first, end) in spans.items() if first < end}
        if not positions:
            return
        under_way = self._submit(self._fetch(topic, dict(positions)))
        while positions:
            chunks = under_way.result()
            ready = []
            for partition, chunk in chunks.items():
                position = positions[partition]
                if chunk.code == OFFSET_OUT_OF_RANGE:
                    raise LogTruncated(f"{topic}, partition {partition}: offset {position} was released meanwhile.")
                if chunk.data:
                    # At the end of the dictionary: partitions without room in this answer come first the next time.
                    del positions[partition]
                    following = chunk.next_offset(position)
                    if following < spans[partition][1]:
                        positions[partition] = following
                ready.append((partition, position, chunk))
            if positions:
                under_way = self._submit(self._fetch(topic, dict(positions)))
            yield from ready

    def _bounds(self, topic: str, partitions: list[int] | None) -> dict[int, tuple[int, int]]:
        bounds: dict[int, tuple[int, int]] = self._submit(self._list_bounds(topic, partitions)).result()
        return bounds

    async def _list_bounds(self, topic: str, partitions: list[int] | None) -> dict[int, tuple[int, int]]:
        async def ask(session: KafkaSession) -> dict[int, tuple[int, int]]:
            if topic not in self._topics and not session.partitions(topic):  # one of events
                session.track(topic)
                await session.refresh()
            keys = [(topic, each) for each in (session.partitions(topic) if partitions is None else partitions)]
            if not keys:
                raise ConnectionError(f"{session} has no topic {topic}")
            firsts, ends = await asyncio.gather(list_offsets(session, keys, FIRST), list_offsets(session, keys, END))
            return {key[1]: (firsts[key], ends[key]) for key in keys}

        return await self._persistently(ask)

    async def _fetch(self, topic: str, positions: dict[int, int]) -> dict[int, Chunk]:
        async def ask(session: KafkaSession) -> dict[int, Chunk]:
            by_leader = grouped(session, {(topic, partition): offset for partition, offset in positions.items()})
            requests = (
                fetch_request(
                    topic,
                    dict(topics[topic]),
                    wait_ms=_WAIT_MS,
                    bytes_max=FETCH_BYTES_MAX,
                    partition_bytes_max=FETCH_BYTES_MAX,
                )
                for topics in by_leader.values()
            )
            answers = await asyncio.gather(*map(session.send, by_leader, requests))
            chunks = {partition: chunk for answer in answers for partition, chunk in chunks_of(answer).items()}
            for partition, chunk in chunks.items():
                if chunk.code != OFFSET_OUT_OF_RANGE:
                    check(session, topic, partition, chunk.code)
            return chunks

        return await self._persistently(ask)

    async def _persistently(self, ask: Callable[[KafkaSession], Awaitable[T]]) -> T:
        deadline = asyncio.get_running_loop().time() + READ_SECONDS_MAX
        while True:
            try:
                return await ask(await self._connected())
            except ConnectionError:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
                if self._session is not None:
                    await self._session.refresh()

    async def _connected(self) -> KafkaSession:
        async with self._connecting:
            if self._session is None:
                session = KafkaSession(self._address)
                try:
                    await session.open(self._topics)
                except BaseException:
                    await session.close()
                    raise
                self._session = session
            return self._session

    async def _disconnect(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if self._session is not None:
            await self._session.close()
            self._session = None
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _submit(self, question: Coroutine[Any, Any, T]) -> Any:
        """Runs a coroutine on the reader's own loop, in the reader's own thread."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._connecting = asyncio.Lock()
                self._thread = Thread(target=self._loop.run_forever, name="styx-kafka-reader", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(question, self._loop)
