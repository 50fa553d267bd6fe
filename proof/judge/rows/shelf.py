"""The judged operator with a table: a shelf, which owns books. `proof.judge.rows.request` says what its operations are.

A transaction does its operations one after the other. Those on its own shelf are done in place, others by calls. Then
come its branches, which run at the same time and give no result: what they saw is in the rows that they write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from proof.judge.operation import Refused
from proof.judge.rows.query import Conditions, Row
from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.partition_context import PartitionContext
from styx.relational.conditions import between
from styx.relational.declarations import Index

Operation = list[Any]
QUERIES: Final = frozenset({"select", "keys", "count", "exists"})


class Book(msgspec.Struct, array_like=True):
    """A row. Each version has a `stamp` of its own; `seen` are the stamps that the writer had seen, as text."""

    id: int
    topic: int
    kind: int
    rank: int
    stamp: int
    seen: str = ""
    hall: int = 0


SHELVES_PER_HALL: Final = 3
"""Shelves with numbers in a row whose books are in one hall. They are on several partitions."""

shelf = Operator("shelf", key_type=int)
books = shelf.table(
    "books",
    Book,
    key="id",
    indexes=[
        Index("by_topic", equal="topic", order="rank"),
        Index("by_kind", equal="kind"),
        Index("by_rank", order="rank"),
        Index("by_hall", equal="hall", scope="partition"),
    ],
)


class Name(msgspec.Struct, array_like=True):
    """A row whose name is unique: on its shelf, or in the app."""

    id: int
    name: int


names = shelf.table("names", Name, key="id", indexes=[Index("by_name", equal="name", unique=True)])
badges = shelf.table("badges", Name, key="id", indexes=[Index("by_name", equal="name", unique=True, scope="app")])
NAMED: Final = {"names": names, "badges": badges}
"""The tables for which a pair can claim a name: no other row of the shelf has it, or no other row of the app."""


# Requests --------------------------------------------------------------------------------------------------


async def transact(ctx: Context, operations: list[Operation], branches: list[Operation], fails: bool) -> list[Any]:
    """One transaction. Raises `Refused` at the end if it `fails`."""
    done = []
    for operation in operations:
        if operation[0] in ACROSS:
            parts: list[list[Any]] = await ctx.call_all(shelf, operation[0], (operation[2],))
            done.append([found for part in parts for found in part])
        elif operation[1] == ctx.key:
            done.append(await act(ctx, operation))
        else:
            function = "peek" if operation[0] in QUERIES else "act"
            done.append(await ctx.call(shelf, function, operation[1], (operation,)))
    for operation in branches:
        ctx.call_async(shelf, "act", operation[1], (operation,))
    if fails:
        raise Refused("as told")
    return done


async def near(ctx: Context, operations: list[Operation], branches: list[Operation], fails: bool) -> list[Any]:
    """As `transact`; it is said to stay on its slot."""
    return await transact(ctx, operations, branches, fails)


async def look(ctx: Context, operations: list[Operation], branches: list[Operation], fails: bool) -> list[Any]:
    """As `transact`, of queries only."""
    return await transact(ctx, operations, branches, fails)


async def claim(ctx: Context, table: str, at: int, id: int, name: int, later: bool) -> None:
    """Inserts a row with a name, on the shelf `at`; if `later`, with another name first. Both may be taken."""
    if at != ctx.key:
        await ctx.call(shelf, "claim", at, (table, at, id, name, later))
        return
    rows = ctx.rows(NAMED[table])
    await rows.insert(Name(id, ~id if later else name))
    if later:
        await rows.update(id, name=name)


async def claimed(ctx: Context, table: str) -> list[list[int]]:
    """The id and name of each row."""
    return [[row.id, row.name] for row in await ctx.rows(NAMED[table]).select()]


async def holders(ctx: Context, wanted: list[int]) -> list[list[list[int]]]:
    """For each wanted name: shelf and id of the rows that have it as a badge, by the index over the app."""
    return [[list(held) for held in await ctx.find(badges, "by_name", name=name)] for name in wanted]


# Operations ------------------------------------------------------------------------------------------------


async def act(ctx: Context, operation: Operation) -> Any:
    """Does one operation on this shelf. Returns what it saw."""
    kind, _, *arguments = operation
    if kind in QUERIES:
        return await peek(ctx, operation)
    return await CHANGES[kind](ctx, *arguments)


async def peek(ctx: Context, operation: Operation) -> Any:
    """Does a query."""
    kind, _, conditions, limit = operation
    if kind == "select":
        return await _select(ctx, conditions, limit)
    wanted = _conditions(conditions)
    rows = ctx.rows(books)
    if kind == "keys":
        return await rows.keys(first=max(limit, 0), last=max(-limit, 0), **wanted)
    return await (rows.count(**wanted) if kind == "count" else rows.exists(**wanted))


async def books_in_hall(ctx: PartitionContext, hall: int) -> list[list[Any]]:
    """[shelf, row] of the books in a hall, of one partition."""
    return [[at, _row(book)] for at, book in await ctx.rows(books).select(hall=hall)]


async def keys_in_hall(ctx: PartitionContext, hall: int) -> list[list[Any]]:
    """[shelf, id] of the books in a hall, of one partition."""
    return [list(found) for found in await ctx.rows(books).keys(hall=hall)]


ACROSS: Final = ("books_in_hall", "keys_in_hall")


async def _insert(ctx: Context, row: Row) -> None:
    await ctx.rows(books).insert(_book(ctx, row))


async def _guard(ctx: Context, topic: int, books_max: int, row: Row) -> int:
    """Inserts a row, with the number of the topic's books as its rank, if they are fewer than `books_max`."""
    held: int = await ctx.rows(books).count(topic=topic)
    if held < books_max:
        book = _book(ctx, row)
        book.rank = held
        await ctx.rows(books).insert(book)
    return held


async def _move(ctx: Context, id: int, row: Row) -> int | None:
    """Gives a row other values, if it is there. Returns the stamp that it had."""
    rows = ctx.rows(books)
    book: Book | None = await rows.get(id)
    if book is None:
        return None
    _, topic, kind, rank, stamp, _ = row
    await rows.update(id, topic=topic, kind=kind, rank=rank, stamp=stamp)
    return book.stamp


async def _delete(ctx: Context, id: int, stamp: int) -> int | None:
    """Deletes a row, if it is there. Returns the stamp that it had."""
    rows = ctx.rows(books)
    book: Book | None = await rows.get(id)
    if book is None:
        return None
    await rows.delete(id)
    return book.stamp


async def _purge(ctx: Context, conditions: Conditions, limit: int, stamp: int) -> list[Row]:
    """Deletes what a query finds, and returns it."""
    found = await _select(ctx, conditions, limit)
    for row in found:
        await ctx.rows(books).delete(row[0])
    return found


async def _echo(ctx: Context, conditions: Conditions, row: Row) -> None:
    """Inserts a row that says what a query has found."""
    found = await _select(ctx, conditions, 0)
    book = _book(ctx, row)
    book.seen = ",".join(str(each[4]) for each in found)
    await ctx.rows(books).insert(book)


async def _relay(ctx: Context, operation: Operation) -> None:
    """Leaves an operation to a branch of this one."""
    ctx.call_async(shelf, "act", operation[1], (operation,))


CHANGES: Final[dict[str, Any]] = {
    "insert": _insert,
    "guard": _guard,
    "move": _move,
    "delete": _delete,
    "purge": _purge,
    "echo": _echo,
    "relay": _relay,
}


async def _select(ctx: Context, conditions: Conditions, limit: int) -> list[Row]:
    found = await ctx.rows(books).select(first=max(limit, 0), last=max(-limit, 0), **_conditions(conditions))
    return [_row(book) for book in found]


def _row(book: Book) -> Row:
    return [book.id, book.topic, book.kind, book.rank, book.stamp, book.seen]


def _book(ctx: Context, row: Row) -> Book:
    id, topic, kind, rank, stamp, seen = row
    return Book(id, topic, kind, rank, stamp, seen, hall=ctx.key // SHELVES_PER_HALL)


def _conditions(conditions: Conditions) -> dict[str, Any]:
    return {column: between(*wanted) if isinstance(wanted, list) else wanted for column, wanted in conditions.items()}


_WRITERS: Final[list[Callable[..., Any]]] = [transact, act, claim]
_READERS: Final[list[Callable[..., Any]]] = [look, peek, claimed, holders]
for _function in _WRITERS:
    shelf.register(_function)
shelf.register(local=True)(near)
for _function in _READERS:
    shelf.register(read_only=True)(_function)
for _partition_function in (books_in_hall, keys_in_hall):
    shelf.register_partition(read_only=True)(_partition_function)
