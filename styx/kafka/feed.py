"""Feeds a worker with the requests of its slots, as they come into Kafka (§5.1).

A slot is a partition of the requests topic. Never skips a record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress
from styx.kafka.fetch import Chunk, Damaged
from styx.kafka.session import KafkaSession
from styx.kafka.tail import Tail
from styx.log.base import LogCorrupt, LogTruncated, Record, Stream

SLOT_BYTES_MAX: Final = 256 * 1024
"""One slot's part of an answer."""

Deliver = Callable[[dict[int, list[Record]]], None]


class RequestFeed(Tail):
    """For one event loop, which it calls `deliver` and, at most once, `on_failure` on.

    `pause_s` says how long the taker has no use for more, after a delivery: fetching at every arrival meanwhile would
    keep both sides busy with small answers.
    """

    def __init__(
        self,
        address: KafkaAddress | str,
        topic: str,
        *,
        deliver: Deliver,
        on_failure: Callable[[BaseException], None],
        pause_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        session = KafkaSession(address)
        super().__init__(session, topic, "requests", partition_bytes_max=SLOT_BYTES_MAX, pause_s=pause_s)
        self._deliver = deliver
        self._on_failure = on_failure

    async def start(self) -> None:
        """Connects. Raises `ConnectionError` and `ConfigurationError`."""
        try:
            await self._session.open([self._topic])
        except BaseException:
            await self._session.close()
            raise

    async def stop(self) -> None:
        """Delivers nothing any more, and disconnects."""
        await super().stop()
        await self._session.close()

    async def _take(self, chunks: dict[int, Chunk]) -> None:
        arrived = {slot: arrivals for slot, chunk in chunks.items() if (arrivals := self._arrivals(slot, chunk))}
        if arrived:
            self._deliver(arrived)

    def _arrivals(self, slot: int, chunk: Chunk) -> list[Record]:
        position = self._positions[slot]
        try:
            arrivals = [
                Record(record.offset, record.timestamp * 1000, record.value or b"")
                for record in chunk.records(position)
            ]
        except Damaged as damage:
            raise self._corrupt(slot, str(damage)) from None
        self._move(slot, chunk.next_offset(position))
        return arrivals

    def _outside(self, slot: int, first: int, end: int) -> None:
        offset = self._positions[slot]
        if offset < first:
            raise LogTruncated(f"{self._topic}, partition {slot} begins at offset {first}, not {offset}.")
        raise self._corrupt(slot, f"it ends at offset {end}, but records before offset {offset} are known")

    def _corrupt(self, slot: int, problem: str) -> LogCorrupt:
        offset = self._positions[slot]
        return LogCorrupt(problem, file=self._topic, stream=Stream.REQUESTS, partition=slot, offset=offset)

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, (EngineFailed, LogTruncated)):
            failure = EngineFailed(f"Reading requests failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            error = failure
        self._on_failure(error)
