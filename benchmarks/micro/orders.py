"""What rows cost that are held to rules: rows that refer to others, rows that views count, rows of a unique index.

The functions are ordinary ones, as those of an application that calls from entity to entity: each transaction has a
footprint, and is validated. Each of them works on the order, or on the seller, of its request alone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from styx import App, Context, Index, Operator, Ref

KEYS: Final = 100
"""Orders' and sellers' entities."""
LINES: Final = 10
"""Rows of one transaction."""
_AT: Final = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
Cents = Annotated[int, msgspec.Meta(ge=0, le=10**12)]


class Status(StrEnum):
    """How far an order is."""

    PLACED = "PLACED"
    SENT = "SENT"


class Order(msgspec.Struct, array_like=True):
    """An order of a customer."""

    order_id: int
    checkout_id: str
    status: Status
    at: datetime
    sent_at: datetime | None
    total: int


class Line(msgspec.Struct, array_like=True):
    """A line of an order."""

    order_id: int
    line: int
    product_id: int
    product_name: str
    price: Cents
    quantity: int
    until: datetime


class Entry(msgspec.Struct, array_like=True):
    """A line of an order as its seller sees it."""

    order_id: int
    product_id: int
    product_name: str
    amount: int
    freight: int
    sent_at: datetime | None
    status: Status


class Details(msgspec.Struct, array_like=True):
    """An order as its seller sees it."""

    order_id: int
    name: str


customer = Operator("customer", key_type=int)
orders = customer.table(
    "orders", Order, key="order_id", indexes=[Index("by_checkout", equal="checkout_id", unique=True)]
)
lines = customer.table("lines", Line, key=("order_id", "line"), references=[Ref("order_id", orders)])
seller = Operator("seller", key_type=int)
details = seller.table("details", Details, key="order_id")
entries = seller.table("entries", Entry, key=("order_id", "product_id"), references=[Ref("order_id", details)])
board = entries.view("board", sum=("amount", "freight"))
by_product = entries.view("by_product", group_by="product_id")


async def _insert_order(ctx: Context, number: int) -> None:
    await ctx.rows(orders).insert(Order(number, str(number), Status.PLACED, _AT, None, 10))
    for at in range(LINES):
        await ctx.rows(lines).insert(Line(number, at, at, "a product", 12, 1, _AT))


@customer.register
async def place(ctx: Context, number: int) -> None:
    """Inserts an order with its lines."""
    await _insert_order(ctx, number)


@customer.register
async def send(ctx: Context, number: int) -> int:
    """Inserts an order with its lines, reads it, changes its status and reads its lines."""
    await _insert_order(ctx, number)
    await ctx.rows(orders).get(number)
    await ctx.rows(orders).update(number, status=Status.SENT, sent_at=_AT)
    return len(await ctx.rows(lines).select(order_id=number))


async def _insert_entries(ctx: Context, number: int) -> None:
    await ctx.rows(details).insert(Details(number, "a customer"))
    for at in range(LINES):
        await ctx.rows(entries).insert(Entry(number, at, "a product", 12, 3, None, Status.PLACED))


@seller.register
async def follow(ctx: Context, number: int) -> None:
    """Inserts the entries of an order, which two views count."""
    await _insert_entries(ctx, number)


@seller.register
async def archive(ctx: Context, number: int) -> int:
    """Inserts the entries of an order, changes all of them, and deletes them."""
    await _insert_entries(ctx, number)
    await ctx.rows(entries).update_where({"sent_at": _AT, "status": Status.SENT}, order_id=number)
    gone: int = await ctx.rows(entries).delete_where(order_id=number)
    await ctx.rows(details).delete(number)
    return gone


app = App("orders", operators=[customer, seller])


class Load(NamedTuple):
    """One row of the micro-benchmarks."""

    title: str
    operator: Operator
    function: Callable[..., Any]


LOADS: Final = {
    "order_placed": Load("a row is inserted, and 10 that refer to it", customer, place),
    "order_sent": Load("a row and 10 that refer to it are inserted, changed and read", customer, send),
    "entries_counted": Load("10 rows are inserted, which two views count", seller, follow),
    "entries_archived": Load("10 rows are inserted, changed and deleted, which two views count", seller, archive),
}
"""By the name that the commands take."""
