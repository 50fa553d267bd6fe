"""Fixtures of the gateway process's tests: the topics of an app, and a worker without state."""

import pytest

from tests.client.kafka.conftest import address, worker

__all__ = ["address", "worker"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"
