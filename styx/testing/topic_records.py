"""Records of a foreign topic for tests of an app: they are taken and handled as if `styx ingest` had read them.

Nothing is read and no broker is needed. Each call goes on where the last one of the partition ended.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from styx.model.ingest import Ingest
from styx.model.ingest_position import BUSY, Batch, RawRecord, outcome_of, position_of
from styx.testing.fixture import EmbeddedCluster

TOPIC_ID = "a topic of a test"


async def take_records(
    cluster: EmbeddedCluster, ingest: Ingest, *values: Any, partition: int = 0, key: bytes | None = None
) -> int:
    """Has the partition's next records taken, and waits until they are handled; how many of them were set aside.

    `values`: bytes are a record's value as it stands, None is a record without one, and anything else is written as
    JSON. `key` is the records' own.
    """
    entity = (ingest.topic, partition)
    position = position_of(await cluster.call(ingest, entity, "begin", TOPIC_ID, 0))
    before = (await cluster.call(ingest, entity, "position"))[1]
    records = [
        RawRecord(position.next + number, _milliseconds(cluster), key, _written(value))
        for number, value in enumerate(values)
    ]
    batch = Batch(TOPIC_ID, position.next, position.next + len(records), records)
    while outcome_of(await cluster.call(ingest, entity, "take", batch)).what == BUSY:
        await cluster.advance(timedelta(0))
    await cluster.advance(timedelta(0))
    after: int = (await cluster.call(ingest, entity, "position"))[1]
    return after - int(before)


def _milliseconds(cluster: EmbeddedCluster) -> int:
    return cluster.engine.now_us() // 1_000


def _written(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else msgspec.json.encode(value)
