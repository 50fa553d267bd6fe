"""Fixtures of the tests of the log in Kafka: an app of its own for each test, and things that are closed afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import pytest

from styx.kafka.appender import Appender
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import Topics, ensure_topics, topics_of
from tests.kafka.blocking import in_thread
from tests.real_services import RealKafka

N_SLOTS = 4
REPLY_PARTITIONS = 2


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def topics(kafka: RealKafka) -> Topics:
    topics = topics_of(f"bank-{uuid4().hex[:8]}")
    await ensure_topics(kafka.bootstrap, topics, N_SLOTS, REPLY_PARTITIONS)
    return topics


@pytest.fixture
def failures() -> list[BaseException]:
    """What appenders and feeds failed with; a test that expects nothing finds it empty."""
    return []


@pytest.fixture
async def appender(kafka: RealKafka, topics: Topics, failures: list[BaseException]) -> AsyncIterator[Appender]:
    """With a transactional id, as the engine's have."""
    appender = Appender(kafka.bootstrap, transactional_id=f"{topics.requests}.test", on_failure=failures.append)
    await appender.start(topics)
    yield appender
    await appender.stop()


@pytest.fixture
async def owner_of(
    kafka: RealKafka, topics: Topics, failures: list[BaseException]
) -> AsyncIterator[Callable[[str], Appender]]:
    """Makes appenders with transactional ids of the test's own; to be started by the test."""
    appenders = []

    def make(name: str) -> Appender:
        appender = Appender(kafka.bootstrap, transactional_id=f"{topics.requests}.{name}", on_failure=failures.append)
        appenders.append(appender)
        return appender

    yield make
    for appender in appenders:
        await appender.stop()


@pytest.fixture
async def reader(kafka: RealKafka, topics: Topics) -> AsyncIterator[KafkaReader]:
    reader = KafkaReader(kafka.bootstrap, topics)
    yield reader
    await in_thread(reader.close)


@pytest.fixture
def frequent_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Appenders commit as often as they can, so that control records stand among the others."""
    monkeypatch.setattr("styx.kafka.appender.COMMIT_SECONDS", 0.0)
    monkeypatch.setattr("styx.kafka.appender.WATCH_SECONDS", 0.001)
