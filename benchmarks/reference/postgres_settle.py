"""Runs one statement as one transaction, on a connection or on a pool. It repeats the statement until it is serialized,
then gives its value or its error to the waiting future.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import asyncpg
from asyncpg import DeadlockDetectedError, PostgresError, SerializationError

from benchmarks.reference.postgres_bank import Statement
from styx.messages import Reply, ReplyError

REPEATED: Final = (SerializationError, DeadlockDetectedError)
"""The server has undone the transaction, which the client is to repeat (SQLSTATE 40001 and 40P01)."""
SESSION: Final = {
    # A table of a few pages would be read as a whole, and under SERIALIZABLE conflict with every other transaction.
    "enable_seqscan": "off",
}
"""Settings of each connection."""
CLOSE_SECONDS_MAX: Final = 2.0
"""How long closing waits for connections."""

AbortOf = Callable[[PostgresError], str | None]
"""The name of the application's exception that the server's error stands for; None if it stands for none."""


class Fetches(Protocol):
    """A connection of asyncpg, or its pool."""

    async def fetchval(self, query: str, *args: Any) -> Any:
        """The first value of the first row; the statement is kept prepared."""


class Asked(NamedTuple):
    """A statement and its waiting future. `until_s` is the end of the wait (the event loop's time)."""

    statement: Statement
    future: asyncio.Future[Reply]
    until_s: float


class Pool(Protocol):
    """Runs statements on connections of its own."""

    async def open(self) -> None:
        """Raises `OSError` or `PostgresError`; to be closed even then."""

    def run(self, statement: Statement, timeout_s: float) -> asyncio.Future[Reply]:
        """The statement's value as a reply, or why the server has aborted it.

        The future raises `TimeoutError` if no connection was free in time, `ConnectionError`, and `PostgresError` for
        a statement that the server does not take. Raises `OverflowError` if too many statements wait.
        """

    async def close(self) -> None:
        """Statements that wait or run are given up: their futures raise `ConnectionError`."""


async def settle(asked: Asked, on: Fetches, abort_of: AbortOf) -> None:
    """Raises only `CancelledError`; then the future is the caller's to settle."""
    future = asked.future
    try:
        value = await _serialized(asked, on)
    except PostgresError as error:
        name = abort_of(error)
        if name is None:
            fail(future, error)
        else:
            _give(future, Reply(None, ReplyError(name, str(error), "aborted"), 0, 0, 0, ""))
    except (OSError, asyncpg.InterfaceError) as error:
        fail(future, error if isinstance(error, OSError) else ConnectionError(str(error)))
    else:
        _give(future, Reply(value, None, 0, 0, 0, ""))


async def _serialized(asked: Asked, on: Fetches) -> Any:
    """Repeats the statement until it is serialized."""
    sql, parameters = asked.statement
    loop = asyncio.get_running_loop()
    while loop.time() < asked.until_s:
        try:
            return await on.fetchval(sql, *parameters)
        except REPEATED:
            continue
    raise TimeoutError("not done in time")


def _give(future: asyncio.Future[Reply], reply: Reply) -> None:
    if not future.done():
        future.set_result(reply)


def fail(future: asyncio.Future[Reply], error: Exception) -> None:
    """Sets the future's outcome, unless the wait has ended."""
    if not future.done():
        future.set_exception(error)
        # Retrieved here, because the caller may be gone when a pool closes.
        future.exception()
