"""A look at a topic that others own: which topic of that name it is, and how many partitions it has. Makes no topic.

A topic that was deleted and made anew has another id; nothing else tells it from the one before. aiokafka knows no
version of the request that asks for ids, so that version's schema is here. Brokers before Kafka 2.8 have no ids.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final, NamedTuple

from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

from styx.errors import EngineFailed
from styx.kafka.errors import NO_ERROR, UNKNOWN_TOPIC_OR_PARTITION, name_of, passes
from styx.kafka.session import KafkaSession

NO_ID: Final = ""
"""What stands for the id where brokers have none."""

_API_KEY: Final = 3
_VERSION: Final = 12


class Look(NamedTuple):
    """A topic's id, and its number of partitions."""

    topic_id: str
    n_partitions: int


class _Id:
    """Sixteen bytes, as a schema's field."""

    @classmethod
    def decode(cls, data: BytesIO) -> str:
        return data.read(16).hex()

    @classmethod
    def encode(cls, value: str) -> bytes:
        return bytes.fromhex(value)


class _Answer(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = _API_KEY
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", CompactString("utf-8")),
                ("topic_id", _Id),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _Asked(RequestStruct):  # type: ignore[misc]  # as above
    FLEXIBLE_VERSION = True
    API_KEY = _API_KEY
    API_VERSION = _VERSION
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic_id", _Id), ("topic", CompactString("utf-8")), ("tags", TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _Ask(MetadataRequest):  # type: ignore[misc]  # as above
    """Asks for ids where the broker has them."""

    def __init__(self, topic: str) -> None:
        super().__init__([topic], allow_auto_topic_creation=False)
        self._topic = topic

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        low, high = versions.get(_API_KEY, (0, 0))
        if not low <= _VERSION <= high:
            return super().prepare(versions)
        return _Asked([(bytes(16).hex(), self._topic, {})], False, False, {})


async def look_at(session: KafkaSession, topic: str) -> Look | None:
    """The topic now; None if there is none of that name.

    Raises `ConnectionError` without an answer, and `EngineFailed` if the broker refuses.
    """
    answer = await session.send_anywhere(_Ask(topic))
    for found in answer.topics:
        code, name = found[0], found[1]
        if name != topic:
            continue
        if code == UNKNOWN_TOPIC_OR_PARTITION:
            return None
        if code != NO_ERROR:
            text = f"{session} does not show the topic {topic}: {name_of(code)}"
            raise ConnectionError(text) if passes(code) else EngineFailed(text)
        with_id = isinstance(answer, _Answer)
        return Look(found[2] if with_id else NO_ID, len(found[4] if with_id else found[3]))
    return None
