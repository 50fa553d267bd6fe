"""A server over the shop's snapshot, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.postgres.serving import PASSWORD
from tests.query.conftest import Filled, filled

__all__ = ["Served", "filled", "served"]


class Served(NamedTuple):
    """Where it is."""

    port: int
    pid: int

    @property
    def dsn(self) -> str:
        """For libpq's clients."""
        return f"host=127.0.0.1 port={self.port} user=ann password={PASSWORD} dbname=shop"

    def url(self, driver: str) -> str:
        """For SQLAlchemy."""
        return f"postgresql+{driver}://ann:p%C3%A4ssword@127.0.0.1:{self.port}/shop"


@pytest.fixture(scope="session")
def served(filled: Filled) -> Iterator[Served]:
    """It ends with the session."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres.serving", str(filled.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        yield Served(int(process.stdout.readline()), process.pid)
        process.stdin.close()
        process.wait(30)
