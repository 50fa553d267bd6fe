"""The source of an ingest: a topic at somebody else's brokers, read without a consumer group. It stores no offsets.

Only records of committed transactions are read. A position that the topic does not have is an error, never a jump. It
looks up what is there and reads it, and decides nothing.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from styx.errors import EngineFailed, describe
from styx.kafka.address import KafkaAddress
from styx.kafka.offsets import END, FIRST, list_offsets
from styx.kafka.session import KafkaSession
from styx.kafka.topic_look import Look, look_at

ANSWER_SECONDS_MAX: Final = 30.0
"""A question without an answer for longer means a connection that is lost, whatever it says."""
READ_RECORDS_MAX: Final = 2_000
"""Records of all partitions that are read at once."""
PARTITION_BYTES_MAX: Final = 512 * 1024
"""Of one partition in one answer, unless a single batch is larger; so much is in memory for each."""
WAIT_MS: Final = 200


T = TypeVar("T")


class OutOfRange(Exception):
    """These partitions do not have the offset at which they are to be read."""

    def __init__(self, partitions: list[int]) -> None:
        super().__init__(f"partitions {partitions}")
        self.partitions = partitions


class SourceRecord(Protocol):
    """A record as aiokafka gives it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class Source(Protocol):
    """What a `TopicFeed` reads. All may raise `OSError`, after which the source is closed and opened anew."""

    async def open(self) -> None:
        """Connects; `close` has to follow."""

    async def close(self) -> None:
        """Disconnects."""

    async def look(self) -> Look | None:
        """The topic now, None if there is none."""

    async def bounds(self, partition: int) -> Bounds:
        """What the partition has."""

    def read_from(self, positions: dict[int, int]) -> None:
        """Reads these partitions, and no others, from their offsets."""

    def pause(self, partition: int) -> None:
        """Reads nothing of it until it is resumed."""

    def resume(self, partition: int) -> None:
        """Reads on."""

    async def read(self) -> dict[int, list[SourceRecord]]:
        """The next records of partitions that are not paused; waits a little for some. Raises `OutOfRange`."""

    async def reached(self, partition: int) -> int:
        """The offset that is read next of a partition that is not paused: before it stands nothing that `read` has yet
        to give.
        """


class Bounds(NamedTuple):
    """The first offset that a partition has, and the one behind its last record."""

    first: int
    end: int


class KafkaSource:
    """A `Source`: one topic behind `address`."""

    def __init__(self, address: KafkaAddress, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._session: KafkaSession | None = None
        self._consumer: Any = None

    async def open(self) -> None:
        """As `Source.open`. Raises `ConfigurationError` for a login that is refused."""
        self._session = KafkaSession(self._address)
        await self._session.open()
        self._consumer = AIOKafkaConsumer(
            **self._address.reader_options(),
            client_id="styx-ingest",
            max_partition_fetch_bytes=PARTITION_BYTES_MAX,
            fetch_max_wait_ms=WAIT_MS,
            metadata_max_age_ms=5_000,
        )
        try:
            await self._answered(self._consumer.start())
        except KafkaError as error:
            raise ConnectionError(f"{self._session}: {error}") from None

    async def close(self) -> None:
        """As `Source.close`."""
        consumer, self._consumer = self._consumer, None
        session, self._session = self._session, None
        if consumer is not None:
            with suppress(KafkaError, OSError):  # it was lost already
                await self._answered(consumer.stop())
        if session is not None:
            await session.close()

    async def look(self) -> Look | None:
        """As `Source.look`."""
        assert self._session is not None, "opened before"
        return await self._answered(look_at(self._session, self._topic))

    async def bounds(self, partition: int) -> Bounds:
        """As `Source.bounds`."""
        session, place = self._session, (self._topic, partition)
        assert session is not None, "opened before"
        session.track(self._topic)
        if session.leader(*place) is None:
            await session.refresh()
        try:
            first = (await self._answered(list_offsets(session, [place], FIRST)))[place]
            return Bounds(first, (await self._answered(list_offsets(session, [place], END)))[place])
        except ConnectionError:
            await session.refresh()
            raise

    def read_from(self, positions: dict[int, int]) -> None:
        """As `Source.read_from`."""
        places = {each: TopicPartition(self._topic, each) for each in positions}
        self._consumer.assign(list(places.values()))
        for each, offset in positions.items():
            self._consumer.seek(places[each], offset)

    def pause(self, partition: int) -> None:
        """As `Source.pause`."""
        self._consumer.pause(TopicPartition(self._topic, partition))

    def resume(self, partition: int) -> None:
        """As `Source.resume`."""
        self._consumer.resume(TopicPartition(self._topic, partition))

    async def read(self) -> dict[int, list[SourceRecord]]:
        """As `Source.read`."""
        try:
            found = await self._answered(self._consumer.getmany(timeout_ms=WAIT_MS, max_records=READ_RECORDS_MAX))
        except OffsetOutOfRangeError as error:
            raise OutOfRange(sorted(each.partition for each in error.args[0])) from None
        except KafkaError as error:
            raise EngineFailed(f"{self._session}: {self._topic} cannot be read: {error}") from None
        except (ValueError, LookupError, ArithmeticError, EOFError, zlib.error) as error:
            # What aiokafka cannot unpack. It has dropped the records before it, so nothing is read on from there.
            raise EngineFailed(f"{self._topic} has records that cannot be unpacked: {describe(error)}") from None
        return {place.partition: records for place, records in found.items()}

    async def reached(self, partition: int) -> int:
        """As `Source.reached`."""
        reached: int = await self._answered(self._consumer.position(TopicPartition(self._topic, partition)))
        return reached

    async def _answered(self, question: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await question
        except TimeoutError:
            raise ConnectionError(f"{self._session} has not answered for {ANSWER_SECONDS_MAX:g} s") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # aiokafka gives up its own tasks when it loses a broker, and lets those feel it who wait for them.
            raise ConnectionError(f"{self._session} was lost") from None
