"""Loads a part of a workload's data set: states of an operator's entities, or rows of a table.

Rows go in requests to the function `LOAD_ROWS` of their entity, which a workload with tables registers for each of its
operators: it takes the table's name and a list of rows, and puts them. Each request is a transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final

from benchmarks.driver.workload import Loading
from styx.client.base import Client
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT

LOAD_ROWS: Final = "load_rows"
ROWS_AT_ONCE: Final = 250
"""Rows of one request: at up to 900 bytes each it stays below 256 KiB."""
REQUESTS_AT_ONCE: Final = 16


async def load(client: Client, loading: Loading, timeout_s: float = TIMEOUT_SECONDS_DEFAULT) -> None:
    """Loads all pairs, and replaces what exists. Raises `LoadFailed`, and as `Client.call` does."""
    operator, table = loading.operator, loading.table
    if table is None:
        await client.load(operator, loading.pairs, replace=True, timeout=timeout_s)
        return
    under_way: set[asyncio.Task[Any]] = set()
    try:
        for key, rows in _batches(loading.pairs):
            if len(under_way) == REQUESTS_AT_ONCE:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
            under_way.add(asyncio.ensure_future(client.call(operator.name, key, LOAD_ROWS, table.name, rows)))
        await asyncio.gather(*under_way)
    finally:
        for each in under_way:
            each.cancel()


def _batches(pairs: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, list[Any]]]:
    """(entity's key, rows) of one request each."""
    gathered: dict[Any, list[Any]] = {}
    for key, row in pairs:
        rows = gathered.setdefault(key, [])
        rows.append(row)
        if len(rows) == ROWS_AT_ONCE:
            yield key, gathered.pop(key)
    yield from gathered.items()
