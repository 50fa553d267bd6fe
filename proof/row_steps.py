"""Steps on the rows of an entity, for the programs of `proof.chaos_app`: ["rows", name, …].

Each operator has two tables, `marks` and `notes`, of a few rows an entity. A row has a shelf, in which an index looks,
and a rank, by which that index orders. `t` is the table, 0 or 1; `i` is 0 for the primary key, 1 for the shelves; low
and high are ids or ranks, `shelf` is of no account with the primary key.

    ["put", t, id, shelf, rank]           the row as it is said, whether it was there or not; `rank` plus the register
    ["insert", t, id, shelf, rank]        raises `Refused` if the row is there
    ["remove", t, id]                     whether it is there or not
    ["get", t, id]                        register = the row in a number, -1 if it is not there
    ["add", t, shelf]                     inserts the row behind the one with the highest id; register = its id
    ["count", t, i, shelf, low, high]     register = how many rows there are
    ["scan", t, i, shelf, low, high, first, last]  register = all of them in one number, where order matters
    ["ids", t, i, shelf, low, high, first, last]   register = their ids in one number
    ["guard", t, shelf, n]                raises `Refused` if more than n rows are on the shelf
    ["bump", t, shelf, low, high]         each of them gets the next rank; the register is left
    ["purge", t, shelf, low, high]        removes each of them
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from styx.model.context import Cell, Context
from styx.model.table_names import row_table
from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex

MODULUS: Final = 1_000_003
RANKS: Final = 6
TABLES: Final = ("marks", "notes")


class Refused(Exception):
    """A row was there already, or too many were."""


class Row(msgspec.Struct, array_like=True):
    """One row without its key."""

    shelf: int
    rank: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode


class _Keys(TableIndex):
    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        return key[:-1], key[-1:]


class _Shelves(TableIndex):
    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        row = _decode(data)
        return (*key[:-1], row.shelf), (row.rank, key[-1])


@cache
def _indexes(operator: str, table: int) -> tuple[TableIndex, TableIndex]:
    name = row_table(operator, TABLES[table])
    return _Keys(name, 0, "keys"), _Shelves(name, 1, "shelves")


class _Rows:
    """One table of the entity that a program runs on."""

    def __init__(self, ctx: Context, table: int) -> None:
        self._ctx = ctx
        self._name = row_table(ctx.operator, TABLES[table])
        self._indexes = _indexes(ctx.operator, table)
        key = ctx.key
        self._entity: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)

    def _cell(self, id: int) -> Cell:
        return self._ctx._cell.sibling(self._ctx._env, self._name, (*self._entity, id))

    def get(self, id: int) -> Row | None:
        data = self._cell(id).read(self._ctx._chain)
        return None if data is None else _decode(data)

    def put(self, id: int, row: Row) -> None:
        self._cell(id).write(self._ctx._chain, _encode(row))

    def remove(self, id: int) -> None:
        self._cell(id).write(self._ctx._chain, None)

    def range(
        self, i: int, shelf: int, low: int, high: int, first: int = 0, last: int = 0, membership: bool = False
    ) -> IndexRange:
        group = (*self._entity, shelf) if i else self._entity
        return IndexRange(self._indexes[i], group, (low,), (high,), membership, first, last)

    def scan(self, wanted: IndexRange) -> list[tuple[int, Row]]:
        found = self._ctx._cell.scan(self._ctx._env, wanted, self._ctx._chain)
        return [(key[-1], _decode(data)) for key, data in found]

    def count(self, wanted: IndexRange) -> int:
        return self._ctx._cell.count(self._ctx._env, wanted, self._ctx._chain)


def _write(ctx: Context) -> None:
    """Ends a read-only function as a write of the entity does."""
    if ctx._spec.read_only:
        raise ctx._violation("rows")


async def _put(ctx: Context, register: int, t: int, id: int, shelf: int, rank: int) -> int:
    _write(ctx)
    _Rows(ctx, t).put(id, Row(shelf, (rank + register) % RANKS))
    return register


async def _insert(ctx: Context, register: int, t: int, id: int, shelf: int, rank: int) -> int:
    _write(ctx)
    rows = _Rows(ctx, t)
    if rows.get(id) is not None:
        raise Refused(f"{ctx.key} has {id}")
    rows.put(id, Row(shelf, rank))
    return register


async def _remove(ctx: Context, register: int, t: int, id: int) -> int:
    _write(ctx)
    _Rows(ctx, t).remove(id)
    return register


async def _get(ctx: Context, register: int, t: int, id: int) -> int:
    row = _Rows(ctx, t).get(id)
    return -1 if row is None else row.shelf * RANKS + row.rank


async def _add(ctx: Context, register: int, t: int, shelf: int) -> int:
    _write(ctx)
    rows = _Rows(ctx, t)
    highest = rows.scan(rows.range(0, 0, 0, MODULUS, last=1, membership=True))
    id = highest[0][0] + 1 if highest else 0
    rows.put(id, Row(shelf, id % RANKS))
    return id


async def _count(ctx: Context, register: int, t: int, i: int, shelf: int, low: int, high: int) -> int:
    rows = _Rows(ctx, t)
    return rows.count(rows.range(i, shelf, low, high, membership=True))


async def _scan(
    ctx: Context, register: int, t: int, i: int, shelf: int, low: int, high: int, first: int, last: int
) -> int:
    rows, register = _Rows(ctx, t), 1
    for id, row in rows.scan(rows.range(i, shelf, low, high, first, last)):
        register = (register * 31 + id * 7 + row.shelf * 3 + row.rank) % MODULUS
    return register


async def _ids(
    ctx: Context, register: int, t: int, i: int, shelf: int, low: int, high: int, first: int, last: int
) -> int:
    rows, register = _Rows(ctx, t), 2
    for id, _ in rows.scan(rows.range(i, shelf, low, high, first, last, membership=True)):
        register = (register * 31 + id) % MODULUS
    return register


async def _guard(ctx: Context, register: int, t: int, shelf: int, n: int) -> int:
    rows = _Rows(ctx, t)
    found = rows.count(rows.range(1, shelf, 0, MODULUS, membership=True))
    if found > n:
        raise Refused(f"{ctx.key} has {found} rows on shelf {shelf}, more than {n}")
    return found


async def _bump(ctx: Context, register: int, t: int, shelf: int, low: int, high: int) -> int:
    _write(ctx)
    rows = _Rows(ctx, t)
    for id, row in rows.scan(rows.range(1, shelf, low, high)):
        rows.put(id, Row(row.shelf, (row.rank + 1) % RANKS))
    return register


async def _purge(ctx: Context, register: int, t: int, shelf: int, low: int, high: int) -> int:
    _write(ctx)
    rows = _Rows(ctx, t)
    for id, _ in rows.scan(rows.range(1, shelf, low, high, membership=True)):
        rows.remove(id)
    return register


ROW_STEPS: Final[Mapping[str, Callable[..., Awaitable[int]]]] = {
    "put": _put,
    "insert": _insert,
    "remove": _remove,
    "get": _get,
    "add": _add,
    "count": _count,
    "scan": _scan,
    "ids": _ids,
    "guard": _guard,
    "bump": _bump,
    "purge": _purge,
}
"""Each takes the context, the register and the operands, and gives the register."""
READS: Final = frozenset({"get", "count", "scan", "ids", "guard"})
"""Steps that a read-only function may make."""
