"""Watching where partitions end, and releasing records that no recovery needs any more, for shells on an event loop."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from styx.kafka.address import KafkaAddress
from styx.kafka.offsets import END, FIRST, list_offsets, release
from styx.kafka.session import KafkaSession
from styx.kafka.topics import Topics

_log = logging.getLogger(__name__)


class LogEnds:
    """One connection for questions that are asked again and again; partitions are (topic, partition).

    Every method raises `ConnectionError` when there is no answer now, and `EngineFailed` if the broker refuses.
    """

    def __init__(self, address: KafkaAddress | str, topics: Topics) -> None:
        self._topics = topics
        self._session = KafkaSession(address)

    async def open(self) -> None:
        """Connects; to be closed even when it raises."""
        await self._session.open(self._topics)

    async def ends(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The offsets behind the last records."""
        return await self._asked(partitions, END)

    async def firsts(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The first retained offsets."""
        return await self._asked(partitions, FIRST)

    async def release(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Lets Kafka delete the records below these offsets. One that is released already, or ends before, is left."""
        try:
            for topic, partition in await release(self._session, offsets):
                _log.warning(
                    "%s, partition %s ends before the offset up to which its records are released", topic, partition
                )
        except ConnectionError:
            await self._session.refresh()
            raise

    async def close(self) -> None:
        await self._session.close()

    async def _asked(self, partitions: Iterable[tuple[str, int]], which: int) -> dict[tuple[str, int], int]:
        try:
            return await list_offsets(self._session, partitions, which)
        except ConnectionError:
            # So that the next question finds the new leader.
            await self._session.refresh()
            raise
