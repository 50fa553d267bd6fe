"""A pool of asyncpg connections without a task and a reset of the connection for each statement, as asyncpg's own pool
has. It leaves more processor time to the server.

Each connection has one task, which runs one statement after the other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

import asyncpg

from benchmarks.reference.postgres_bank import Statement
from benchmarks.reference.postgres_settle import CLOSE_SECONDS_MAX, SESSION, AbortOf, Asked, fail, settle
from styx.messages import Reply


class DedicatedPool:
    """A `Pool`: `size` connections made with `connection`; `waiting_max` statements wait for one of them."""

    def __init__(self, connection: Mapping[str, Any], size: int, waiting_max: int, abort_of: AbortOf) -> None:
        self._connection = connection
        self._size = size
        self._waiting_max = waiting_max
        self._abort_of = abort_of
        self._waiting: deque[Asked] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._connections: list[asyncpg.Connection] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """See `Pool.open`."""
        for _ in range(self._size):
            self._connections.append(await asyncpg.connect(**self._connection, server_settings=SESSION))
        self._tasks = [asyncio.create_task(self._serve(each)) for each in self._connections]

    async def close(self) -> None:
        """See `Pool.close`."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for asked in self._waiting:
            fail(asked.future, ConnectionError("closed before the statement was sent"))
        self._waiting.clear()
        for connection in self._connections:
            try:
                await connection.close(timeout=CLOSE_SECONDS_MAX)
            except (TimeoutError, OSError, asyncpg.PostgresError):
                connection.terminate()
        self._connections.clear()

    def run(self, statement: Statement, timeout_s: float) -> asyncio.Future[Reply]:
        """See `Pool.run`."""
        if len(self._waiting) >= self._waiting_max:
            raise OverflowError(f"{self._waiting_max} statements wait for a connection")
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._waiting.append(Asked(statement, future, self._loop.time() + timeout_s))
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
            asked = self._waiting.popleft()
            try:
                await settle(asked, connection, self._abort_of)
            except asyncio.CancelledError:
                fail(asked.future, ConnectionError("closed before the server answered"))
                raise
