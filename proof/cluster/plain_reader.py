"""Reads topics of events as anybody would: with an ordinary Kafka consumer of committed records, and no code of styx.

A single broker that is killed can lose the mark of a commit for good (docs/services.md): then a partition ends there
for readers of committed records. Such a partition is read uncommitted, without what stands there again, and named.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from proof.cluster.event_judge import MARK, TopicRecord
from styx.testing.patience import PATIENCE_SECONDS

COMMITTED: Final = "read_committed"
UNCOMMITTED: Final = "read_uncommitted"
STUCK_SECONDS: Final = 45.0
"""A transaction whose producer has gone is aborted by the broker before that."""


class Read(NamedTuple):
    """The records of all topics, those of each partition in order; and the partitions that were read uncommitted."""

    records: list[TopicRecord]
    stuck: list[str]


async def read_topics(bootstrap: str, topics: dict[str, str], n_partitions: int) -> Read:
    """All that stands in these topics, which are by event. Nobody may write to them any more."""
    records: list[TopicRecord] = []
    stuck: list[str] = []
    deadline_s = time.monotonic() + STUCK_SECONDS
    for event, topic in topics.items():
        places = [TopicPartition(topic, number) for number in range(n_partitions)]
        ends = await _ends(bootstrap, places, UNCOMMITTED)
        committed = await _ends(bootstrap, places, COMMITTED)
        while committed != ends and time.monotonic() < deadline_s:
            await asyncio.sleep(1.0)
            committed = await _ends(bootstrap, places, COMMITTED)
        behind = {each for each in ends if committed[each] < ends[each]}
        records += await _read(bootstrap, event, COMMITTED, ends.keys() - behind)
        if behind:
            stuck += [f"{event} partition {each.partition}" for each in sorted(behind)]
            records += once(await _read(bootstrap, event, UNCOMMITTED, behind))
    return Read(records, stuck)


async def _consumer(bootstrap: str, isolation: str) -> Any:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest")
    await consumer.start()
    return consumer


async def _ends(bootstrap: str, places: list[Any], isolation: str) -> dict[Any, int]:
    consumer = await _consumer(bootstrap, isolation)
    try:
        consumer.assign(places)
        return dict(await consumer.end_offsets(places))
    finally:
        await consumer.stop()


async def _read(bootstrap: str, event: str, isolation: str, partitions: Iterable[Any]) -> list[TopicRecord]:
    wanted = sorted(partitions)
    if not wanted:
        return []
    consumer = await _consumer(bootstrap, isolation)
    try:
        consumer.assign(wanted)
        ends = await consumer.end_offsets(wanted)
        found: list[TopicRecord] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any([await consumer.position(each) < ends[each] for each in wanted]):
                for place, records in (await consumer.getmany(timeout_ms=200)).items():
                    found += [
                        TopicRecord(event, place.partition, each.offset, each.key, each.value, tuple(each.headers))
                        for each in records
                    ]
        return found
    finally:
        await consumer.stop()


def once(records: Iterable[TopicRecord]) -> list[TopicRecord]:
    """Without the events that do not stand behind the last one of their partition: records of transactions that were
    aborted are among uncommitted ones, and stand there again.
    """
    seen: dict[int, tuple[int, int, bytes]] = {}
    kept: list[TopicRecord] = []
    for record in records:
        headers = dict(record.headers)
        if MARK not in headers:
            place = int(headers["styx-epoch"]), int(headers["styx-phase"]), headers["styx-id"]
            if place <= seen.get(record.partition, (-1, 0, b"")):
                continue
            seen[record.partition] = place
        kept.append(record)
    return kept
