"""All rows of a table of a running deployment, in the order of their keys, by functions of `reads.py`.

Some hundreds of rows are held at a time: while they are looked at, the next ones are on their way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from benchmarks.driver.reading import Unread, read_all, read_each
from styx.client.base import Client
from styx.model.operator import Operator
from styx.relational.table import Table

REQUESTS_AT_ONCE: Final = 8
"""Each of which asks for up to some hundreds of rows."""


class Unreadable(Exception):
    """Rows could not be read; the message says which, and why."""


async def rows_found(
    client: Client, table: Table, key: tuple[int, ...], last: int, function: Any, each: int, kind: Any
) -> AsyncIterator[tuple[int, Any]]:
    """The results of `function` for the rows that are numbered from 1 to at least `last`, by that number.

    `key` is the entity's key and, if there are more columns before the number, those of the primary key. A request asks
    for up to `each` rows; `kind` is the type of one. Raises `Unreadable`.
    """
    each = min(each, last)
    firsts = range(1, last + 1, each)
    windows = [firsts[at : at + REQUESTS_AT_ONCE] for at in range(0, len(firsts), REQUESTS_AT_ONCE)]
    reading = [asyncio.ensure_future(_window(client, table, key, window, function, each)) for window in windows[:1]]
    try:
        for number, window in enumerate(windows):
            found = await reading.pop()
            for later in windows[number + 1 : number + 2]:
                reading.append(asyncio.ensure_future(_window(client, table, key, later, function, each)))
            for first, rows in zip(window, found, strict=True):
                for at, row in enumerate(msgspec.convert(rows, list[kind])):
                    yield first + at, row
    finally:
        for left in reading:
            left.cancel()


async def all_of(client: Client, operator: Operator, keys: Sequence[Any], function: Any, kind: Any) -> dict[Any, Any]:
    """The result of `function` for each of these keys. Raises `Unreadable`."""
    found = await read_each(client, operator, keys, function)
    return {key: msgspec.convert(_there(operator.name, key, found[key]), kind) for key in keys}


async def _window(
    client: Client, table: Table, key: tuple[int, ...], firsts: Sequence[int], function: Any, each: int
) -> list[Any]:
    parts = table.entity_parts
    entity, behind = key[:parts] if parts > 1 else key[0], key[parts:]
    reads = [(entity, (*behind, first, each)) for first in firsts]
    found = await read_all(client, table.operator, reads, function)
    return [_there(table.name, (*key, first), found[read]) for first, read in zip(firsts, reads, strict=True)]


def _there(table: str, key: Any, result: Any) -> Any:
    if isinstance(result, Unread):
        raise Unreadable(f"{table} {key}: {result}")
    return result
