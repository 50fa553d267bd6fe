"""Fixtures of the Kafka client's tests: an app of its own for each test, with its topics and a worker without state."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from styx.kafka.address import KafkaAddress
from tests.client.kafka.fake_worker import FakeWorker, create_topics
from tests.real_services import RealKafka


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def address(kafka: RealKafka) -> KafkaAddress:
    return KafkaAddress(kafka.bootstrap)


@pytest.fixture
async def worker(kafka: RealKafka) -> AsyncIterator[FakeWorker]:
    """Its `app` is the name of the app that it serves."""
    app = f"shop-{uuid4().hex[:8]}"
    await create_topics(kafka.bootstrap, app)
    async with FakeWorker(kafka.bootstrap, app) as worker:
        yield worker
