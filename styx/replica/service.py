"""Runs the queries of a replica: so many at once, some more in line, and no others.

One process for each query, which reads rows that all share. What blocks has threads of its own. A query sees the moment
that was the newest one when its turn came, and keeps it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from styx.errors import UnsupportedValue
from styx.query.process import QueryProcess
from styx.query.relations import Table
from styx.query.service import Answer, Asked, Limits, QueryFailed, QueryRefused
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Moment
from styx.replica.processes import QueryProcesses
from styx.replica.shared_query import Killed, SharedQuery

T = TypeVar("T")

_log = logging.getLogger("styx.replica")


class NothingToAsk(QueryRefused):
    """There is no state yet."""


class NotReached(QueryRefused):
    """The state is not at the end of the epoch that was waited for."""

    def __init__(self, epoch: int, seconds: float, where: str) -> None:
        super().__init__(
            f"the end of epoch {epoch}, the session's token, has not been reached within {seconds:g} s: {where}. Ask "
            "again, or without Styx-Epoch for what there is"
        )


@dataclass(frozen=True)
class Places:
    """How many queries run at once, and how many more wait in line."""

    running: int
    waiting: int


@dataclass
class Counts:
    """Queries by how they ended, how many run now, and how many are in line."""

    answered: int = 0
    failed: int = 0
    refused: int = 0
    left: int = 0
    running: int = 0
    waiting: int = 0


class ReplicaService:
    """The queries over the moments of a replica; a `QueryService`. `now` gives the newest moment, or raises
    `NothingToAsk`. To be opened before it is used, and closed.
    """

    def __init__(self, now: Callable[[], Moment], rows: ArrowRows, places: Places) -> None:
        self.counts = Counts()
        self.processes = QueryProcesses(places.running)
        self._now = now
        self._rows = rows
        self._places = places
        self._free = asyncio.Semaphore(places.running)
        # One that is being ended, and one that takes its place, each; and one that starts processes.
        self._threads = ThreadPoolExecutor(2 * places.running + 1, thread_name_prefix="styx-query")
        self._filling: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Starts the processes that wait."""
        await self._in_thread(self.processes.fill)

    async def close(self) -> None:
        """Ends them; no query may run any more."""
        await self._in_thread(self.processes.close)
        self._threads.shutdown(wait=False)

    def tables(self) -> Sequence[Table]:
        """All tables there are now, with their columns; raises `NothingToAsk`."""
        return [each.table for each in self._now().relations]

    @asynccontextmanager
    async def run(self, asked: Asked, limits: Limits) -> AsyncIterator[Answer]:
        """Runs a query. Entering raises `QueryFailed`, and `QueryRefused` if too many run and wait already, or
        `NothingToAsk`.
        """
        self._now()  # those in line would wait for nothing
        async with self._place():
            moment = self._now()
            try:
                process = await self._process()
            except asyncio.CancelledError:
                self.counts.left += 1
                raise
            query = SharedQuery(process, moment, self._rows, asked, limits)
            try:
                try:
                    schema, rows = await self._step(query, query.result)
                except UnsupportedValue as error:
                    raise QueryFailed(str(error)) from None
                as_of_s = moment.state.closed_s if moment.as_of_s is None else moment.as_of_s
                yield Answer(moment.state.epoch, schema, self._batches(query, rows), as_of_s)
            except QueryFailed:
                self.counts.failed += 1
                raise
            except (asyncio.CancelledError, GeneratorExit):
                self.counts.left += 1
                raise
            else:
                self.counts.answered += 1
            finally:
                query.end()
                await asyncio.shield(self._in_thread(lambda: query.__exit__(None, None, None)))

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        counts = self.counts
        if self._free.locked():
            if counts.waiting >= self._places.waiting:
                counts.refused += 1
                raise QueryRefused(
                    f"{self._places.running} queries run and {counts.waiting} are in line, which is the most: try "
                    "again soon"
                )
            counts.waiting += 1
            try:
                await self._free.acquire()
            finally:
                counts.waiting -= 1
        else:
            await self._free.acquire()
        counts.running += 1
        try:
            yield
        finally:
            counts.running -= 1
            self._free.release()

    async def _process(self) -> QueryProcess:
        taking = self._in_thread(self.processes.take)
        try:
            process = await asyncio.shield(taking)
        except asyncio.CancelledError:
            await self._in_thread((await taking).end)
            raise
        self._fill()
        return process

    async def _batches(self, query: SharedQuery, rows: Iterator[pa.RecordBatch]) -> AsyncIterator[pa.RecordBatch]:
        while (batch := await self._step(query, lambda: next(rows, None))) is not None:
            yield batch

    async def _step(self, query: SharedQuery, step: Callable[[], T]) -> T:
        """Does a step of a query on a thread. If nobody waits for it any more, the query ends first."""
        doing = self._in_thread(step)
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            query.end()
            with contextlib.suppress(QueryFailed, Killed, UnsupportedValue):
                await doing
            raise

    def _in_thread(self, do: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, do)

    def _fill(self) -> None:
        """Begins to start a process in the place of one that was taken."""
        if self._filling is None or self._filling.done():
            self._filling = self._in_thread(self.processes.fill)
            self._filling.add_done_callback(_tell)


def _tell(filling: asyncio.Future[None]) -> None:
    if not filling.cancelled() and (error := filling.exception()) is not None:
        _log.warning("no process for a query could be started beforehand: %s", error)
