"""A query service over one snapshot, each query in a process of its own, which a thread waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from styx.query.relations import Table, relations
from styx.query.schema import Schema
from styx.query.service import Answer, Asked, Limits, QueryRefused
from styx.query.source import Source
from styx.query.sql import Query

if TYPE_CHECKING:
    import pyarrow as pa

QUERIES_MAX: Final = 8
"""Queries at once; further ones are refused."""
_T = TypeVar("_T")


class SnapshotService:
    """Answers queries over the snapshot `source`, as `QueryService`. `close` it after its last query."""

    def __init__(self, source: Source, schema: Schema, queries_max: int = QUERIES_MAX) -> None:
        self._source = source
        self._schema = schema
        self._left = queries_max
        self._threads = ThreadPoolExecutor(queries_max, "snapshot-query")

    def close(self) -> None:
        """Ends the threads; no query may run any more."""
        self._threads.shutdown()

    def tables(self) -> Sequence[Table]:
        """All tables of the snapshot."""
        return [each.table for each in relations(self._schema)]

    @asynccontextmanager
    async def run(self, asked: Asked, limits: Limits) -> AsyncIterator[Answer]:
        """Runs a query, as `QueryService`."""
        if self._left == 0:
            raise QueryRefused("too many queries run at the moment: ask again later")
        self._left -= 1
        query = Query(self._source, self._schema, asked, limits)
        try:
            try:
                await self._apart(query.__enter__)
                schema, batches = await self._apart(query.result, query)
                yield Answer(self._source.manifest.epoch, schema, self._rows(query, batches))
            finally:
                query.__exit__(None, None, None)  # also if its beginning was not waited for
        finally:
            self._left += 1

    async def _rows(self, query: Query, batches: Iterator[pa.RecordBatch]) -> AsyncIterator[pa.RecordBatch]:
        while (batch := await self._apart(lambda: next(batches, None), query)) is not None:
            yield batch

    async def _apart(self, function: Callable[[], _T], query: Query | None = None) -> _T:
        """Runs a function on a thread. Whoever gives up waiting ends the process, so that the thread ends too."""
        waits = asyncio.get_running_loop().run_in_executor(self._threads, function)
        try:
            return await asyncio.shield(waits)
        except asyncio.CancelledError:
            if query is not None:
                query.end()
            await asyncio.wait([waits])
            if not waits.cancelled():
                waits.exception()  # looked at, so that asyncio does not report it
            raise
