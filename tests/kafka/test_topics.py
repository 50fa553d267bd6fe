"""An app's topics: their names, how they are created, and what is refused."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from styx.errors import ConfigurationError
from styx.kafka.errors import NO_ERROR, SETTING_REFUSED, TOPIC_ALREADY_EXISTS
from styx.kafka.session import KafkaSession
from styx.kafka.topics import READ_ON, Topics, TopicSettings, _create, ensure_topics, topics_of
from styx.log.base import Stream
from tests.real_services import RealKafka

pytestmark = pytest.mark.anyio


def test_names() -> None:
    topics = topics_of("bank")
    assert topics.requests == "styx.bank.requests"
    of_streams = [topics.of(stream) for stream in Stream if stream is not Stream.EVENTS]  # those have many topics
    assert of_streams == list(topics[:4])


@pytest.mark.parametrize("app", ["", "a.b", "bänk", "a b", "x" * 201, "a\n"])
def test_names_that_are_no_topics_are_refused(app: str) -> None:
    with pytest.raises(ConfigurationError, match="part of Kafka topics"):
        topics_of(app)


@pytest.mark.slow
async def test_topics_are_created_once_with_their_settings(kafka: RealKafka) -> None:
    topics = topics_of(f"bank-{uuid4().hex[:8]}")
    await asyncio.gather(*(ensure_topics(kafka.bootstrap, topics, 4, 2) for _ in range(3)))
    await ensure_topics(kafka.bootstrap, topics, 4, 2)
    assert await _partition_counts(kafka, topics) == [4, 1, 2, 4, 1]
    settings = await _settings(kafka, topics)
    assert settings[topics.requests]["message.timestamp.type"] == "LogAppendTime"
    assert [settings[each]["retention.ms"] for each in topics[:4]] == ["-1", "-1", str(7 * 86_400_000), "-1"]
    assert {settings[each]["retention.bytes"] for each in topics[:4]} == {"-1"}
    assert {settings[each]["max.message.bytes"] for each in topics} == {str(8 * 1024 * 1024)}
    assert {settings[each]["compression.type"] for each in topics} == {"uncompressed"}
    assert [settings[each]["cleanup.policy"] for each in topics] == ["delete"] * 4 + ["compact"]
    assert {settings[each]["index.interval.bytes"] for each in (topics.requests, topics.replies)} == {"0"}


@pytest.mark.slow
async def test_another_number_of_partitions_is_refused(kafka: RealKafka, topics: Topics) -> None:
    with pytest.raises(ConfigurationError, match=rf"{topics.requests} exists with 4 partitions, but 8 are configured"):
        await ensure_topics(kafka.bootstrap, topics, 8, 2)


@pytest.mark.slow
async def test_more_replicas_than_brokers_are_refused(kafka: RealKafka) -> None:
    with pytest.raises(ConfigurationError, match="cannot create the topic"):
        await ensure_topics(kafka.bootstrap, topics_of(f"bank-{uuid4().hex[:8]}"), 1, 1, replication=3)


@pytest.mark.parametrize("code", sorted(SETTING_REFUSED))
async def test_a_setting_that_only_saves_work_is_left_out_where_it_is_refused(code: int) -> None:
    session = Choosy(code)
    wanted = {"read": TopicSettings(1, {"a": "1"}, READ_ON), "other": TopicSettings(1, {"a": "1"})}
    await _create(cast(KafkaSession, session), wanted, 1)
    assert session.created == {"read": {"a": "1"}, "other": {"a": "1"}}


async def test_a_setting_that_is_needed_is_not_left_out() -> None:
    session = Choosy(min(SETTING_REFUSED), "a")
    with pytest.raises(ConfigurationError, match="cannot create the topic read"):
        await _create(cast(KafkaSession, session), {"read": TopicSettings(1, {"a": "1"}, READ_ON)}, 1)


class Choosy:
    """A broker that refuses one setting."""

    def __init__(self, code: int, setting: str = "index.interval.bytes") -> None:
        self.created: dict[str, dict[str, str]] = {}
        self._code = code
        self._setting = setting

    async def send_anywhere(self, request: Any) -> Any:
        errors = []
        for name, _, _, _, configuration in request.create_topic_requests:
            refused = self._setting in dict(configuration)
            exists = name in self.created
            errors.append((name, self._code if refused else TOPIC_ALREADY_EXISTS if exists else NO_ERROR, None))
            if not refused and not exists:
                self.created[name] = dict(configuration)
        return SimpleNamespace(topic_errors=errors)


async def test_a_broker_that_is_not_there_is_said_so() -> None:
    with pytest.raises(ConnectionError, match=r"Kafka at 127\.0\.0\.1:1 cannot be reached"):
        await ensure_topics("127.0.0.1:1", topics_of("bank"), 1)


async def _partition_counts(kafka: RealKafka, topics: Topics) -> list[int]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        described = {each["topic"]: each for each in await admin.describe_topics(list(topics))}
    finally:
        await admin.close()
    return [len(described[each]["partitions"]) for each in topics]


async def _settings(kafka: RealKafka, topics: Topics) -> dict[str, dict[str, str]]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, each) for each in topics])
    finally:
        await admin.close()
    return {
        resource[3]: {entry[0]: entry[1] for entry in resource[4]}
        for answer in answers
        for resource in answer.resources
    }
