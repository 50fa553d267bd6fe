"""Fixtures of the embedded engine's tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.app_files import NAME, Edited


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def edited(tmp_path: Path) -> Iterator[Edited]:
    """An app in files of its own, which a test changes between two starts."""
    yield Edited(tmp_path)
    sys.modules.pop(NAME, None)
