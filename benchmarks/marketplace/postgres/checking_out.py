"""A checkout in PostgreSQL, in two forms: one call of a function in the database, which is the fastest, or statements
from here with the rules in Python, in a transaction of eight round trips, which is how it is usually written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec

from benchmarks.marketplace.errors import EmptyCart, UnknownCustomer
from benchmarks.marketplace.postgres import statements
from benchmarks.marketplace.services.cart.checking_out import matched
from benchmarks.marketplace.services.cart.replica import Requested
from benchmarks.marketplace.services.cart.rows import CartItemRow
from benchmarks.marketplace.services.order import arithmetic
from benchmarks.marketplace.services.stock.demand import WEEKS
from benchmarks.marketplace.values import Buyer, ItemStatus, OrderLine, RefusedItem, RequestedItem
from benchmarks.reference.serialized import repeated, serialized

_BUYER: Final = Buyer.__struct_fields__
_ITEM: Final = CartItemRow.__struct_fields__
_ORDER_LINE: Final = OrderLine.__struct_fields__[:-1]
"""The version of the product is not in the order."""


class SubmittedBefore(Exception):
    """There was a checkout of this id; nothing has changed."""


class Ended(NamedTuple):
    """What became of a submission; no order if nothing could be reserved."""

    order_id: int | None
    refused: list[Any]


async def by_function(pool: Any, buyer: Buyer) -> Ended:
    """Raises `EmptyCart`, `UnknownCustomer` and `SubmittedBefore`."""
    try:
        return Ended(*await serialized(pool, statements.CHECKOUT, _values(buyer)))
    except asyncpg.PostgresError as error:
        kind = _RAISED.get(error.sqlstate)
        if kind is None:
            raise
        raise kind(str(error)) from None


async def by_statements(pool: Any, buyer: Buyer) -> Ended:
    """As `by_function`."""
    return await repeated(pool, lambda connection: _attempt(connection, buyer))


FORMS: Final[dict[str, Callable[[Any, Buyer], Awaitable[Ended]]]] = {
    "function": by_function,
    "statements": by_statements,
}
"""By the name that options and results have for it."""
CHECKOUT_VARIABLE: Final = "MARKETPLACE_POSTGRES_CHECKOUT"
"""Names the form to the application's processes."""


class Stock(NamedTuple):
    """A row of the stock, which is locked."""

    seller_id: int
    product_id: int
    available: int
    version: str
    active: bool
    demand: int
    low: bool


class Decided(NamedTuple):
    """What is to be written. `asked` are (seller, product, quantity asked for, pieces reserved), `lows` are (seller,
    product, whether too little is left, what is left, demand).
    """

    lines: list[OrderLine]
    refused: list[RefusedItem]
    asked: list[tuple[int, int, int, int]]
    lows: list[tuple[int, int, bool, int, int]]


def decided(taken: Sequence[tuple[CartItemRow, int | None, str | None]], stocks: Sequence[Stock]) -> Decided:
    """The rules of a checkout. `taken` are the cart's lines with the copy's price and version. Pure."""
    by_key = {(each.seller_id, each.product_id): each for each in stocks}
    reserved: list[RequestedItem] = []
    result = Decided([], [], [], [])
    for row, price, version in taken:
        stock = by_key.get((row.seller_id, row.product_id))
        status, left = _judged(row, stock)
        item = matched(row, Requested(price, version, status, left))
        pieces = row.quantity if status is ItemStatus.RESERVED else 0
        if pieces:
            reserved.append(item)
        else:
            result.refused.append(_refusal(item, status, left))
        if stock is not None:
            result.asked.append((row.seller_id, row.product_id, row.quantity, pieces))
            demand = stock.demand + row.quantity
            low = demand > WEEKS * (left - pieces)
            if low != stock.low:
                result.lows.append((row.seller_id, row.product_id, low, left - pieces, demand))
    result.lines.extend(arithmetic.line(number, each) for number, each in enumerate(reserved, 1))
    return result


def _judged(row: CartItemRow, stock: Stock | None) -> tuple[ItemStatus, int]:
    if stock is None:
        return ItemStatus.UNAVAILABLE, 0
    if not stock.active or stock.version != row.version:
        return ItemStatus.UNAVAILABLE, stock.available
    return ItemStatus.OUT_OF_STOCK if row.quantity > stock.available else ItemStatus.RESERVED, stock.available


def _refusal(item: RequestedItem, status: ItemStatus, left: int) -> RefusedItem:
    return RefusedItem(item.seller_id, item.product_id, item.quantity, item.version, item.unit_price, status, left)


async def _attempt(connection: asyncpg.Connection, buyer: Buyer) -> Ended:
    customer_id = buyer.customer_id
    async with connection.transaction():
        rows = await connection.fetch(statements.TAKE, customer_id)
        if not rows:
            raise EmptyCart(f"the cart of customer {customer_id} is empty")
        taken = [
            (CartItemRow(*(row[name] for name in _ITEM)), row["known_price"], row["known_version"]) for row in rows
        ]
        keys = [row["seller_id"] for row in rows], [row["product_id"] for row in rows]
        stocks = [Stock(*row) for row in await connection.fetch(statements.LOCK_STOCK, *keys)]
        what = decided(taken, stocks)
        asked = _columns(what.asked, 4)
        await connection.execute(statements.UPDATE_STOCK, *asked)
        order_id, known = await connection.fetchrow(statements.NUMBER, customer_id, bool(what.lines))
        if not known:
            raise UnknownCustomer(f"there is no customer {customer_id}")
        refused = msgspec.to_builtins(what.refused)
        if not await connection.fetchval(statements.END, customer_id, buyer.checkout_id, order_id, refused, *asked[:3]):
            raise SubmittedBefore(f"checkout {buyer.checkout_id} came before")
        if what.lows:
            await connection.execute(statements.WARN, what.lows)
        if order_id is not None:
            lines = [tuple(getattr(each, name) for name in _ORDER_LINE) for each in what.lines]
            await connection.execute(statements.PLACE, _values(buyer), order_id, lines)
    return Ended(order_id, refused)


_RAISED: Final[dict[str | None, type[Exception]]] = {
    statements.EMPTY_CART: EmptyCart,
    statements.UNKNOWN_CUSTOMER: UnknownCustomer,
    statements.SUBMITTED_BEFORE: SubmittedBefore,
}


def _values(buyer: Buyer) -> tuple[Any, ...]:
    """The type `buyer` of the database."""
    return tuple(getattr(buyer, name) for name in _BUYER)


def _columns(rows: Sequence[tuple[int, ...]], count: int) -> list[list[int]]:
    return [[row[place] for row in rows] for place in range(count)]
