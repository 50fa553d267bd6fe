"""A transaction is repeated until it is serialized, and not for ever."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asyncpg import CheckViolationError, DeadlockDetectedError, SerializationError

from benchmarks.reference.serialized import ATTEMPTS_MAX, Overloaded, serialized

pytestmark = pytest.mark.anyio


class Busy:
    """A pool of one connection, on which `failures` attempts fail."""

    def __init__(self, failures: int, error: type[Exception] = SerializationError) -> None:
        self.left = failures
        self.attempts = 0
        self.taken = 0
        self._error = error

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Busy]:
        self.taken += 1
        yield self

    async def fetchrow(self, sql: str, *parameters: Any) -> Any:
        self.attempts += 1
        if self.left:
            self.left -= 1
            raise self._error("in the way")
        return sql, parameters


@pytest.mark.parametrize("error", [SerializationError, DeadlockDetectedError])
async def test_it_is_repeated_on_its_connection(error: type[Exception]) -> None:
    busy = Busy(3, error)
    assert await serialized(busy, "SELECT $1", 7) == ("SELECT $1", (7,))
    assert (busy.attempts, busy.taken) == (4, 1)


async def test_it_is_given_up_in_the_end() -> None:
    busy = Busy(ATTEMPTS_MAX)
    with pytest.raises(Overloaded, match=f"{ATTEMPTS_MAX} attempts"):
        await serialized(busy, "SELECT 1")
    assert busy.attempts == ATTEMPTS_MAX


async def test_another_error_is_not_repeated() -> None:
    busy = Busy(1, CheckViolationError)
    with pytest.raises(CheckViolationError):
        await serialized(busy, "SELECT 1")
    assert busy.attempts == 1
