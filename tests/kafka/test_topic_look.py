"""A look at a topic that others own, on a real broker: ids, partitions, and that nothing is made by looking."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

from styx.kafka.session import KafkaSession
from styx.kafka.topic_look import Look, look_at
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def session(kafka: RealKafka) -> AsyncIterator[KafkaSession]:
    session = KafkaSession(kafka.bootstrap)
    await session.open()
    yield session
    await session.close()


@pytest.fixture
async def admin(kafka: RealKafka) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    yield admin
    await admin.close()


async def until(session: KafkaSession, topic: str, n_partitions: int | None) -> Look | None:
    """The look as soon as the topic has so many partitions, or is gone for None."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            look = await look_at(session, topic)
            if (None if look is None else look.n_partitions) == n_partitions:
                return look
            await asyncio.sleep(0.02)


async def test_a_look_makes_no_topic(session: KafkaSession) -> None:
    topic = f"others.{secrets.token_hex(4)}"
    for _ in range(3):
        assert await look_at(session, topic) is None


async def test_a_topic_that_is_made_anew_has_another_id(session: KafkaSession, admin: AIOKafkaAdminClient) -> None:
    topic = f"others.{secrets.token_hex(4)}"
    await admin.create_topics([NewTopic(topic, 2, 1)])
    first = await until(session, topic, 2)
    await admin.create_partitions({topic: NewPartitions(3)})
    grown = await until(session, topic, 3)
    await admin.delete_topics([topic])
    await until(session, topic, None)
    await admin.create_topics([NewTopic(topic, 3, 1)])
    anew = await until(session, topic, 3)
    assert first is not None
    assert grown is not None
    assert anew is not None
    assert len(first.topic_id) == 32
    assert first.topic_id == grown.topic_id != anew.topic_id
