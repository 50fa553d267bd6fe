"""Fixtures of the guard's tests."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
