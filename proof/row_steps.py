"""Steps on the rows of an entity, for the programs of `proof.chaos_app`: ["rows", name, …].

Each operator has four tables with a few rows for an entity. A row has a shelf, in which an index looks, and a rank, by
which that index orders. Rows of `marks` are found over all entities by their rank. Rows of `notes` are found by their
tag, and no two of an operator have one tag. Rows of `tags` belong to the row of `marks` with their id, and no two of an
entity have one tag. `sums` is kept as a view is: a row appears with the first that is counted, and vanishes with the
last. `t` is the table's number; `i` is 0 for the primary key, 1 for the shelves; low and high are ids or ranks; `shelf`
is of no account with the primary key.

    ["put", t, id, shelf, rank]           the row as it is said, whether it was there or not; `rank` plus the register
    ["insert", t, id, shelf, rank]        ends the transaction if the row is there
    ["remove", t, id]                     register = whether it was there
    ["get", t, id]                        register = the row in a number, -1 if it is not there
    ["add", t, shelf]                     inserts the row behind the one with the highest id; register = its id
    ["count", t, i, shelf, low, high]     register = how many rows there are
    ["scan", t, i, shelf, low, high, first, last]  register = all of them in one number, where order matters
    ["ids", t, i, shelf, low, high, first, last]   register = their ids in one number
    ["guard", t, shelf, n]                raises `Refused` if more than n rows are on the shelf
    ["bump", t, shelf, low, high]         each of them gets the next rank; the register is left
    ["purge", t, shelf, low, high]        removes each of them; register = how many
    ["grow", t, id, n]                    adds n, and a weight by n and the register; the register is left
    ["tally", t, id, n]                   the same in `sums`, where the row begins and ends by itself
    ["group", t, shelf]                   register = what the view of `marks` has of it, with t = 2 that of `tags`
    ["find", t, value]                    register = the rows of all entities with this rank, of even ranks the first
                                          three from tag 2 on, or with t = 1 this tag
    ["whole", t, shelf]                   likewise, of the shelf's rows of all entities; `t` is of no account
    ["groups", t, shelf]                  likewise, of all its groups in one number
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from zlib import crc32

import msgspec

from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.rows import Rows
from styx.model.table_names import row_table, view_table
from styx.relational.conditions import at_least, between
from styx.relational.declarations import Index, Ref
from styx.relational.increment import Increment

MODULUS: Final = 1_000_003
RANKS: Final = 6
TABLES: Final = ("marks", "notes", "tags", "sums")
VIEWS: Final = ("of_shelves", "of_tags", "of_all", "of_parts")


class Refused(Exception):
    """Too many rows were there."""


class Row(msgspec.Struct):
    """A row of each of the tables. `n` and `weight` are what is added to."""

    id: int
    shelf: int
    rank: int
    tag: int = 0
    n: int = 0
    weight: float = 0.0


def declare_tables(operator: Operator) -> None:
    """The tables of an operator that runs programs."""
    shelves = Index("shelves", equal="shelf", order="rank")
    across = Index("across", equal="shelf", order="rank", scope="partition")
    by_rank = Index("by_rank", equal="rank", order="tag", scope="app")
    by_tag = Index("by_tag", equal="tag", unique=True, scope="app")
    marks = operator.table(TABLES[0], Row, key="id", indexes=[shelves, across, by_rank])
    marks.view(VIEWS[0], group_by="shelf", where=_is_low, sum="rank", min="tag", max="tag")
    marks.view(VIEWS[2], group_by="shelf", where=_is_low, sum="rank", max="tag", scope="app")
    marks.view(VIEWS[3], group_by="shelf", where=_is_low, sum="rank", min="tag", max="rank", scope="partition")
    operator.table(TABLES[1], Row, key="id", indexes=[shelves, across, by_tag])
    one_tag = Index("one_tag", equal="tag", unique=True)
    belongs = Ref("id", marks, on_delete="cascade")
    operator.table(TABLES[3], Row, key="id", indexes=[shelves])
    tags = operator.table(TABLES[2], Row, key="id", indexes=[shelves, one_tag], references=[belongs])
    tags.view(VIEWS[1], sum=("rank", "tag"), max="rank")


def _is_low(row: Row) -> bool:
    return row.rank < RANKS - 2


def _rows(ctx: Context, t: int) -> Rows:
    return ctx.rows(ctx._env.app.table(row_table(ctx.operator, TABLES[t])))


def _asked(i: int, shelf: int, low: int, high: int) -> dict[str, Any]:
    """The conditions of a query."""
    return {"shelf": shelf, "rank": between(low, high - 1)} if i else {"id": between(low, high - 1)}


def _number(row: Row) -> int:
    """A row as a number, in which also the order of what was added to its weight shows."""
    return (row.shelf * RANKS + row.rank + row.n * 101 + hash(row.weight)) % MODULUS


async def _put(ctx: Context, register: int, t: int, id: int, shelf: int, rank: int) -> int:
    await _rows(ctx, t).put(Row(id, shelf, (rank + register) % RANKS, register % 50))
    return register


async def _insert(ctx: Context, register: int, t: int, id: int, shelf: int, rank: int) -> int:
    await _rows(ctx, t).insert(Row(id, shelf, rank, register % 50))
    return register


async def _remove(ctx: Context, register: int, t: int, id: int) -> int:
    return int(await _rows(ctx, t).delete(id))


async def _get(ctx: Context, register: int, t: int, id: int) -> int:
    row = await _rows(ctx, t).get(id)
    return -1 if row is None else _number(row)


async def _add(ctx: Context, register: int, t: int, shelf: int) -> int:
    rows = _rows(ctx, t)
    highest = await rows.keys(last=1)
    id = highest[0] + 1 if highest else 0
    await rows.insert(Row(id, shelf, id % RANKS, id))
    return id


async def _count(ctx: Context, register: int, t: int, i: int, shelf: int, low: int, high: int) -> int:
    found: int = await _rows(ctx, t).count(**_asked(i, shelf, low, high))
    return found


async def _scan(
    ctx: Context, register: int, t: int, i: int, shelf: int, low: int, high: int, first: int, last: int
) -> int:
    register = 1
    for row in await _rows(ctx, t).select(first=first, last=last, **_asked(i, shelf, low, high)):
        register = (register * 31 + row.id * 7 + _number(row) * 3) % MODULUS
    return register


async def _ids(
    ctx: Context, register: int, t: int, i: int, shelf: int, low: int, high: int, first: int, last: int
) -> int:
    register = 2
    for id in await _rows(ctx, t).keys(first=first, last=last, **_asked(i, shelf, low, high)):
        register = (register * 31 + id) % MODULUS
    return register


async def _guard(ctx: Context, register: int, t: int, shelf: int, n: int) -> int:
    found: int = await _rows(ctx, t).count(shelf=shelf)
    if found > n:
        raise Refused(f"{ctx.key} has {found} rows on shelf {shelf}, more than {n}")
    return found


async def _bump(ctx: Context, register: int, t: int, shelf: int, low: int, high: int) -> int:
    rows = _rows(ctx, t)
    for row in await rows.select(**_asked(1, shelf, low, high)):
        await rows.update(row.id, rank=(row.rank + 1) % RANKS)
    return register


async def _purge(ctx: Context, register: int, t: int, shelf: int, low: int, high: int) -> int:
    removed: int = await _rows(ctx, t).delete_where(**_asked(1, shelf, low, high))
    return removed


async def _grow(ctx: Context, register: int, t: int, id: int, n: int) -> int:
    await _rows(ctx, t).add(id, n=n, weight=_weight(register, n))
    return register


async def _tally(ctx: Context, register: int, t: int, id: int, n: int) -> int:
    rows = _rows(ctx, t)
    rows._may_write("add")
    table, store = rows._table, rows._store
    zero = table.row_type.encode(Row(id, 0, 0))
    store.add(
        table, (*store.entity, id), Increment(table.row_type, {"n": n, "weight": _weight(register, n)}, zero, "n")
    )
    return register


def _weight(register: int, n: int) -> float:
    """So large and so small numbers that their sum depends on their order."""
    return float((register % 7 + 1) * 10.0 ** (n * 5))


def _view(ctx: Context, t: int) -> Rows:
    return ctx.rows(ctx._env.app.table(view_table(ctx.operator, VIEWS[t == 2])))


async def _group(ctx: Context, register: int, t: int, shelf: int) -> int:
    return group_number(await _view(ctx, t).get(() if t == 2 else shelf))


def group_number(row: Any) -> int:
    """A group of a view as a number."""
    ends = [getattr(row, end, None) for end in ("min_tag", "max_tag", "max_rank")]
    return int(row.count * 31 + row.rank + sum((end + 1) * 7 for end in ends if end is not None))


async def _whole(ctx: Context, register: int, t: int, shelf: int) -> int:
    marks: Any = ctx._env.app.table(row_table(ctx.operator, TABLES[0]))
    return group_number(await ctx.group(marks.views[1].table, shelf))


async def _groups(ctx: Context, register: int, t: int, shelf: int) -> int:
    register = 3
    for row in await _view(ctx, t).select():
        register = (register * 31 + group_number(row)) % MODULUS
    return register


async def _find(ctx: Context, register: int, t: int, value: int) -> int:
    table = ctx._env.app.table(row_table(ctx.operator, TABLES[int(t == 1)]))
    if t == 1:
        asked = ctx.find(table, "by_tag", tag=value)
    elif value % 2:
        asked = ctx.find(table, "by_rank", rank=value)
    else:
        asked = ctx.find(table, "by_rank", rank=value, tag=at_least(2), first=3)
    register = 4
    for entity, id in await asked:
        register = (register * 31 + crc32(str(entity).encode()) + id * 7) % MODULUS
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
    "grow": _grow,
    "tally": _tally,
    "group": _group,
    "groups": _groups,
    "find": _find,
    "whole": _whole,
}
"""Each takes the context, the register and the operands, and gives the register."""
READS: Final = frozenset({"get", "count", "scan", "ids", "guard", "group", "groups", "whole", "find"})
"""Steps that a read-only function may make."""
