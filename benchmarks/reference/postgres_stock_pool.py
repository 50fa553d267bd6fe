"""asyncpg's own pool, used as its documentation shows: a task for each request, which awaits `pool.fetchval`.

That takes a connection for each statement and resets it afterwards: one more round trip before the next one has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import asyncpg

from benchmarks.reference.postgres_bank import Statement
from benchmarks.reference.postgres_settle import CLOSE_SECONDS_MAX, SESSION, AbortOf, Asked, fail, settle
from styx.messages import Reply


class StockPool:
    """A `Pool`: `size` connections made with `connection`; `waiting_max` statements wait for one of them."""

    def __init__(self, connection: Mapping[str, Any], size: int, waiting_max: int, abort_of: AbortOf) -> None:
        self._size = size
        self._waiting_max = waiting_max
        self._abort_of = abort_of
        self._pool = asyncpg.create_pool(**connection, min_size=size, max_size=size, server_settings=SESSION)
        self._under_way: dict[asyncio.Task[None], asyncio.Future[Reply]] = {}
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """See `Pool.open`."""
        await self._pool

    async def close(self) -> None:
        """See `Pool.close`."""
        under_way = dict(self._under_way)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        for future in under_way.values():
            fail(future, ConnectionError("closed before the server answered"))
        try:
            await asyncio.wait_for(self._pool.close(), CLOSE_SECONDS_MAX)
        except (TimeoutError, OSError, asyncpg.PostgresError):
            self._pool.terminate()

    def run(self, statement: Statement, timeout_s: float) -> asyncio.Future[Reply]:
        """See `Pool.run`."""
        if len(self._under_way) >= self._size + self._waiting_max:
            raise OverflowError(f"{self._waiting_max} statements wait for a connection")
        future: asyncio.Future[Reply] = self._loop.create_future()
        task = self._loop.create_task(self._settled(Asked(statement, future, self._loop.time() + timeout_s)))
        self._under_way[task] = future
        task.add_done_callback(self._under_way.pop)
        return future

    async def _settled(self, asked: Asked) -> None:
        try:
            async with asyncio.timeout_at(asked.until_s):
                await settle(asked, self._pool, self._abort_of)
        except TimeoutError:
            fail(asked.future, TimeoutError("no answer in time"))
