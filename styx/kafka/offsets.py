"""First and end offsets of partitions, and the release of records below an offset.

An end is the offset behind the last record that all replicas in sync have; control records of transactions count.
Nothing is repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiokafka.protocol.admin import DeleteRecordsRequest
from aiokafka.protocol.offset import OffsetRequest

from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress
from styx.kafka.errors import NO_ERROR, OFFSET_OUT_OF_RANGE, name_of, passes
from styx.kafka.session import REQUEST_SECONDS, KafkaSession

FIRST: Final = -2
END: Final = -1

_CONSUMER: Final = -1
_READ_UNCOMMITTED: Final = 0

_log = logging.getLogger(__name__)


async def list_offsets(
    session: KafkaSession, partitions: Iterable[tuple[str, int]], which: int
) -> dict[tuple[str, int], int]:
    """The `FIRST` or `END` offset of each (topic, partition).

    Raises `ConnectionError` if an offset is not available now, and `EngineFailed` if the broker refuses.
    """
    by_leader = grouped(session, dict.fromkeys(partitions, which))
    requests = (OffsetRequest(_CONSUMER, _READ_UNCOMMITTED, list(topics.items())) for topics in by_leader.values())
    found: dict[tuple[str, int], int] = {}
    answers = await asyncio.gather(*map(session.send, by_leader, requests))
    for topic, partitions_of_topic in (each for answer in answers for each in answer.topics):
        for partition, code, _, offset in partitions_of_topic:
            check(session, topic, partition, code)
            found[topic, partition] = offset
    return found


async def release(session: KafkaSession, offsets: Mapping[tuple[str, int], int]) -> list[tuple[str, int]]:
    """Lets Kafka delete the records below the offset of each (topic, partition).

    Returns the partitions that end before their offsets. A second release is no error. Raises as `list_offsets`.
    """
    by_leader = grouped(session, offsets)
    requests = (
        DeleteRecordsRequest(list(topics.items()), int(REQUEST_SECONDS * 1000)) for topics in by_leader.values()
    )
    beyond: list[tuple[str, int]] = []
    answers = await asyncio.gather(*map(session.send, by_leader, requests))
    for topic, partitions in (each[:2] for answer in answers for each in answer.topics):
        for partition, _, code in (each[:3] for each in partitions):
            if code == OFFSET_OUT_OF_RANGE:
                beyond.append((topic, partition))
            else:
                check(session, topic, partition, code)
    return beyond


def grouped(
    session: KafkaSession, values: Mapping[tuple[str, int], Any]
) -> dict[int, dict[str, list[tuple[int, Any]]]]:
    """Values by leader and topic, as in requests. Raises `ConnectionError` if a partition has no leader."""
    by_leader: defaultdict[int, defaultdict[str, list[tuple[int, Any]]]] = defaultdict(lambda: defaultdict(list))
    for (topic, partition), value in values.items():
        leader = session.leader(topic, partition)
        if leader is None:
            raise ConnectionError(f"{session}: {topic}, partition {partition} has no leader now, or does not exist")
        by_leader[leader][topic].append((partition, value))
    return {leader: dict(topics) for leader, topics in by_leader.items()}


def check(session: KafkaSession, topic: str, partition: int, code: int) -> None:
    """Raises `ConnectionError` for a temporary error, and `EngineFailed` for any other."""
    if code == NO_ERROR:
        return
    text = f"{session}: {topic}, partition {partition}: {name_of(code)}"
    raise ConnectionError(text) if passes(code) else EngineFailed(text)


class LogEnds:
    """A connection for repeated questions about offsets; partitions are (topic, partition).

    Every method raises `ConnectionError` without an answer, and `EngineFailed` if the broker refuses.
    """

    def __init__(self, address: KafkaAddress | str, topics: Iterable[str]) -> None:
        self._topics = topics
        self._session = KafkaSession(address)

    async def open(self) -> None:
        """Connects. `close` has to follow, even if this raises."""
        await self._session.open(self._topics)

    async def ends(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The offsets behind the last records."""
        return await self._asked(partitions, END)

    async def firsts(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The first retained offsets."""
        return await self._asked(partitions, FIRST)

    async def release(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Lets Kafka delete the records below these offsets. Released and shorter partitions stay as they are."""
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
