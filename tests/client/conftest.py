"""Fixtures of the clients' tests: a gateway on a real socket in front of an engine without state."""

from collections.abc import AsyncIterator

import pytest

from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def served() -> AsyncIterator[tuple[FakeEngine, str]]:
    """One server for a file's tests, because shutting one down takes uvicorn a fifth of a second."""
    engine = FakeEngine()
    async with running(engine) as server:
        yield engine, server.url


@pytest.fixture
def engine(served: tuple[FakeEngine, str]) -> FakeEngine:
    """The engine behind `url`, as good as new."""
    engine, _ = served
    engine.reset()
    return engine


@pytest.fixture
def url(served: tuple[FakeEngine, str], engine: FakeEngine) -> str:
    return served[1]
