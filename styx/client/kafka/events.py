"""Events straight from the topics of a deployment: all partitions of one topic, in the serial order.

An event is given when a mark behind it stands in each partition, a fraction of a second after its commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from styx.errors import BadArguments, EventsCut, EventsReleased
from styx.kafka.address import KafkaAddress
from styx.kafka.event_consumer import EventConsumer
from styx.kafka.event_merge import EventMerge, Unreadable, message_of, place_of
from styx.model.event_seen import BEGINNING, END, EventMessage
from styx.model.event_topic import event_topic_name

WAIT_SECONDS: Final = 0.5
"""How long one look for new records takes at most."""
MARK_SECONDS_MAX: Final = 30.0
"""How long a reader that does not follow waits for the mark behind the last event."""
PROBE_SECONDS_MAX: Final = 15.0
"""How long Kafka may take to give the record at an offset."""
BACK_RECORDS: Final = 100
"""A reader begins so many records before the place that it has found: marks may be a little late in their partition."""


class KafkaEvents:
    """An `EventLog` of the app `app_name` behind the brokers at `address`. Readers are cut off when it is `closed`."""

    def __init__(self, address: KafkaAddress, app_name: str, closed: Callable[[], bool] = bool) -> None:
        self._closed = closed
        self._address = address
        self._app_name = app_name

    async def read(self, event: str, after: str | None, follow: bool) -> AsyncIterator[list[EventMessage]]:
        """As `EventSource.read`. Raises `BadArguments` if there is no such topic."""
        async with self._consumer(event) as consumer:
            self._check_there(consumer, event)
            ends, behind = consumer.ends, None if after == END else after
            begin = ends if after == END else await self._found(consumer, event, after)
            consumer.seek(begin)
            yield []
            merge = EventMerge(consumer.firsts, behind)
            quiet_until = asyncio.get_running_loop().time() + MARK_SECONDS_MAX
            while True:
                if self._closed():
                    raise EventsCut(f"the client was closed: read {event!r} on behind the last cursor")
                consumer.only(merge.wanted)
                for partition, records in (await consumer.take(WAIT_SECONDS)).items():
                    merge.take(partition, self._read(event, records))
                ready = merge.ready()
                if ready:
                    yield ready
                if follow:
                    continue
                if not merge.gathered and await self._at(consumer, ends):
                    return
                if asyncio.get_running_loop().time() > quiet_until and await self._at(consumer, ends):
                    raise EventsCut(
                        f"no mark came behind the last events of {event!r} within {MARK_SECONDS_MAX:g} s, so their "
                        "order is not known yet: do the workers run?"
                    )

    async def last(self, event: str) -> str:
        """As `EventLog.last`."""
        async with self._consumer(event) as consumer:
            self._check_there(consumer, event)
            ends = {each: end for each, end in consumer.ends.items() if end > consumer.firsts[each]}
            places = [await self._last_place(consumer, event, each, end) for each, end in ends.items()]
            return min(places, default=BEGINNING)

    def _consumer(self, event: str) -> EventConsumer:
        return EventConsumer(self._address, event_topic_name(self._app_name, event))

    def _check_there(self, consumer: EventConsumer, event: str) -> None:
        if not consumer.firsts:
            raise BadArguments(f"app {self._app_name!r} has no event {event!r}, or it is not deployed yet")

    async def _at(self, consumer: EventConsumer, ends: dict[int, int]) -> bool:
        """Whether all is read that was there when the reader began."""
        for partition, end in ends.items():
            if await consumer.position(partition) < end:
                return False
        return True

    def _read(self, event: str, records: list[object]) -> list[EventMessage | int]:
        try:
            return [message_of(event, record) for record in records]
        except Unreadable as error:
            raise EventsCut(f"a record cannot be read: {error}") from None

    # Places ------------------------------------------------------------------------------------------------

    async def _found(self, consumer: EventConsumer, event: str, after: str | None) -> dict[int, int]:
        """For each partition an offset a little before the first event behind the cursor. Raises `EventsReleased`."""
        if after is None:
            return dict(consumer.firsts)
        found = {}
        for partition, first in consumer.firsts.items():
            end = consumer.ends[partition]
            if first and after != BEGINNING:
                at, place = await self._probe(consumer, event, partition, first, end)
                if at >= end or place > after:
                    raise EventsReleased(
                        f"events of {event!r} behind {after} may be gone: partition {partition} of their topic begins "
                        f"at offset {first}, behind it. Read on from there (after=None), and ask the app for what was "
                        "missed"
                    )
            low, high = first, end
            while high - low > BACK_RECORDS:
                middle = (low + high) // 2
                at, place = await self._probe(consumer, event, partition, middle, end)
                if at >= end or place > after:
                    high = middle
                else:
                    low = at + 1
            found[partition] = max(first, low - BACK_RECORDS)
        return found

    async def _probe(
        self, consumer: EventConsumer, event: str, partition: int, offset: int, end: int
    ) -> tuple[int, str]:
        """(offset, place) of the first committed record from an offset on; the end and "" if none is before that."""
        consumer.only([partition])
        consumer.seek({partition: offset})
        deadline = asyncio.get_running_loop().time() + PROBE_SECONDS_MAX
        while asyncio.get_running_loop().time() < deadline:
            records = (await consumer.take(WAIT_SECONDS, [partition])).get(partition)
            if records:
                return records[0].offset, place_of(self._read(event, records[:1])[0])
            if await consumer.position(partition) >= end:
                return end, ""
        raise EventsCut(f"Kafka gave no record of {event!r} within {PROBE_SECONDS_MAX:g} s")

    async def _last_place(self, consumer: EventConsumer, event: str, partition: int, end: int) -> str:
        """The place of the last record of a partition that can be seen."""
        offset = max(consumer.firsts[partition], end - BACK_RECORDS)
        consumer.only([partition])
        consumer.seek({partition: offset})
        last = BEGINNING
        while True:
            records = (await consumer.take(WAIT_SECONDS, [partition])).get(partition)
            if not records:
                return last
            last = max(last, *map(place_of, self._read(event, records)))
