"""The committed records of one event's topic, in order within each partition: aiokafka's consumer, with errors as ours.

It belongs to no consumer group and stores no offset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Self

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from aiokafka.structs import TopicPartition

from styx.errors import EventsCut, EventsReleased
from styx.kafka.address import KafkaAddress
from styx.kafka.offsets import END, FIRST, list_offsets
from styx.kafka.session import KafkaSession

FETCH_BYTES_MAX: Final = 1024 * 1024
"""One partition's part of an answer, unless a single record is larger."""
REQUEST_SECONDS: Final = 15.0
RECORDS_MAX: Final = 500
"""Records that are taken at once, of all partitions."""


class EventConsumer:
    """Of one topic; use it as `async with`. `firsts` and `ends` are the retained offsets of each partition when it was
    opened; both are empty if there is no such topic. Every method raises `EventsCut` if Kafka does not answer.
    """

    def __init__(self, address: KafkaAddress, topic: str) -> None:
        self.firsts: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self._address = address
        self._topic = topic
        self._consumer: Any = None

    async def __aenter__(self) -> Self:
        try:
            await self._look()
            if self.firsts:
                await self._start()
        except (KafkaError, OSError) as error:
            await self.__aexit__()
            raise self._cut(error) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaError):
                await consumer.stop()

    async def _start(self) -> None:
        self._consumer = AIOKafkaConsumer(
            **self._address.reader_options(),
            client_id="styx-events",
            max_partition_fetch_bytes=FETCH_BYTES_MAX,
            request_timeout_ms=int(REQUEST_SECONDS * 1000),
        )
        await self._consumer.start()
        self._consumer.assign([self._place(each) for each in self.firsts])

    async def _look(self) -> None:
        session = KafkaSession(self._address)
        try:
            await session.open([self._topic])
            places = [(self._topic, each) for each in sorted(session.partitions(self._topic))]
            firsts, ends = await list_offsets(session, places, FIRST), await list_offsets(session, places, END)
            self.firsts = {place[1]: firsts[place] for place in places}
            self.ends = {place[1]: ends[place] for place in places}
        finally:
            await session.close()

    def seek(self, offsets: Mapping[int, int]) -> None:
        """The next records of these partitions are those from there on."""
        for partition, offset in offsets.items():
            self._consumer.seek(self._place(partition), offset)

    async def position(self, partition: int) -> int:
        """The offset behind all records that `take` has given, and behind what it has passed over."""
        try:
            at: int = await self._consumer.position(self._place(partition))
        except KafkaError as error:
            raise self._cut(error) from None
        return at

    async def take(self, wait_seconds: float, partitions: Iterable[int] | None = None) -> dict[int, list[Any]]:
        """The next records by partition, of these or of all, none if none come in time. Raises `EventsReleased`."""
        wanted = self.firsts if partitions is None else partitions
        try:
            found = await self._consumer.getmany(
                *[self._place(each) for each in wanted], timeout_ms=int(wait_seconds * 1000), max_records=RECORDS_MAX
            )
        except OffsetOutOfRangeError as error:
            raise EventsReleased(
                f"{self._topic}: a reader was too slow, and events that it had not read are gone: {error}"
            ) from None
        except KafkaError as error:
            raise self._cut(error) from None
        return {place.partition: records for place, records in found.items()}

    def only(self, partitions: Collection[int]) -> None:
        """From now on takes records of these partitions alone."""
        self._consumer.resume(*[self._place(each) for each in partitions])
        self._consumer.pause(*[self._place(each) for each in self.firsts if each not in partitions])

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

    def _cut(self, error: Exception) -> EventsCut:
        return EventsCut(f"the topic {self._topic} cannot be read now: {str(error) or type(error).__name__}")
