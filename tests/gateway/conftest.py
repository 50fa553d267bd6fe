"""Fixtures of the gateway's tests: an engine that runs functions by hand, and a gateway in front of it."""

import pytest

from styx.gateway.app import Gateway
from tests.gateway.fake_engine import FakeEngine


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def gateway(engine: FakeEngine) -> Gateway:
    return Gateway(engine)
