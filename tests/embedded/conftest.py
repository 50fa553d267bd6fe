"""Fixtures of the embedded engine's tests."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
