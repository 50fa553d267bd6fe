"""A pool of asyncpg connections that runs each statement as one transaction, and repeats those that could not be
serialized. Knows no table.

Each connection has a task of its own that runs one statement after the other, as asyncpg's own pool does, but without
a task and a reset of the connection for each statement.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

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
"""How long closing waits for a connection."""

AbortOf = Callable[[PostgresError], str | None]
"""The name of the application's exception that the server's error stands for; None if it stands for none."""


class Waiting(NamedTuple):
    """A statement that has no connection yet; `until_s` is when nobody waits for it any more (`time.monotonic`)."""

    statement: Statement
    future: asyncio.Future[Reply]
    until_s: float


class PostgresPool:
    """`size` connections made with `connection`; `waiting_max` statements wait for one of them."""

    def __init__(self, connection: Mapping[str, Any], size: int, waiting_max: int, abort_of: AbortOf) -> None:
        self._connection = connection
        self._size = size
        self._waiting_max = waiting_max
        self._abort_of = abort_of
        self._waiting: deque[Waiting] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._connections: list[asyncpg.Connection] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Raises `OSError` or `PostgresError`; to be closed even then."""
        for _ in range(self._size):
            self._connections.append(await asyncpg.connect(**self._connection, server_settings=SESSION))
        self._tasks = [asyncio.create_task(self._serve(each)) for each in self._connections]

    async def close(self) -> None:
        """Statements that wait or run are given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for waiting in self._waiting:
            _fail(waiting.future, ConnectionError("closed before the statement was sent"))
        self._waiting.clear()
        for connection in self._connections:
            try:
                await connection.close(timeout=CLOSE_SECONDS_MAX)
            except (TimeoutError, OSError, asyncpg.PostgresError):
                connection.terminate()
        self._connections.clear()

    def run(self, statement: Statement, timeout_s: float) -> asyncio.Future[Reply]:
        """The statement's value as a reply, or why the server has aborted it.

        The future raises `TimeoutError` if no connection was free in time, `ConnectionError`, and `PostgresError` for
        a statement that the server does not take. Raises `OverflowError` if too many statements wait.
        """
        if len(self._waiting) >= self._waiting_max:
            raise OverflowError(f"{self._waiting_max} statements wait for a connection")
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._waiting.append(Waiting(statement, future, self._loop.time() + timeout_s))
        if self._idle:
            # The one that was busy last: the memory of its server process is still in the caches.
            self._idle.pop().set_result(None)
        return future

    async def _serve(self, connection: asyncpg.Connection) -> None:
        while True:
            while not self._waiting:
                wake = self._loop.create_future()
                self._idle.append(wake)
                await wake
            waiting = self._waiting.popleft()
            future = waiting.future
            try:
                value = await self._serialized(connection, waiting)
            except asyncio.CancelledError:
                _fail(future, ConnectionError("closed before the server answered"))
                raise
            except PostgresError as error:
                name = self._abort_of(error)
                if name is None:
                    _fail(future, error)
                else:
                    _give(future, Reply(None, ReplyError(name, str(error), "aborted"), 0, 0, 0, ""))
            except (OSError, asyncpg.InterfaceError) as error:
                _fail(future, error if isinstance(error, OSError) else ConnectionError(str(error)))
            else:
                _give(future, Reply(value, None, 0, 0, 0, ""))

    async def _serialized(self, connection: asyncpg.Connection, waiting: Waiting) -> Any:
        """Runs the statement, which asyncpg keeps prepared, until it is in no other one's way."""
        sql, parameters = waiting.statement
        while self._loop.time() < waiting.until_s:
            try:
                return await connection.fetchval(sql, *parameters)
            except REPEATED:
                continue
        raise TimeoutError("not done in time")


def _give(future: asyncio.Future[Reply], reply: Reply) -> None:
    if not future.done():
        future.set_result(reply)


def _fail(future: asyncio.Future[Reply], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
