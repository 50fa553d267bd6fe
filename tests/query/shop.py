"""An app with state of each form: plain and typed values, keys of every type, tables with columns of every kind, views
of each scope, and kept events; and requests that fill it.
"""

from __future__ import annotations

import enum
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from styx import App, Context, Event, Operator
from styx.client.embedded import EmbeddedClient


class Colour(enum.Enum):
    """Of an item."""

    RED = "red"
    BLUE = "blue"


class Size(msgspec.Struct):
    """A part of an item."""

    height: int
    width: int


class Item(msgspec.Struct):
    """A row with a column of every kind."""

    product: int
    seller: str
    price: Decimal
    colour: Colour = Colour.RED
    weight: float = 1.0
    gift: bool = False
    raw: bytes = b""
    day: date | None = None
    at: datetime | None = None
    number: UUID | None = None
    size: Size | None = None
    tags: list[str] = []


class Order(msgspec.Struct):
    """A typed state."""

    total: Decimal
    lines: int
    note: str | None = None


class Line(msgspec.Struct, array_like=True):
    """A row that is stored as an array."""

    number: int
    key: str
    amount: int


class Sold(msgspec.Struct):
    """An event."""

    product: int


sold = Event("item-sold", Sold, rows=True)
account = Operator("account")
counter = Operator("counter", key_type=int)
cart = Operator("cart", partition_key=lambda key: key[-1])
order = Operator("order", key_type=(int, str), state_type=Order)
items = cart.table("items", Item, key="product")
mine = items.view("mine", group_by="seller", sum="price", max="price")
by_seller = items.view("by_seller", group_by="seller", sum="price", min=("price", "day"), scope="app")
here = items.view("here", group_by="colour", scope="partition")
lines = order.table("lines", Line, key="number")


@account.register
async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)


@account.register
async def gone(ctx: Context) -> None:
    await ctx.delete()


@counter.register
async def count(ctx: Context) -> int:
    value: int = (await ctx.get() or 0) + 1
    await ctx.put(value)
    return value


@cart.register
async def add(ctx: Context, item: Item) -> None:
    await ctx.rows(items).put(item)
    ctx.emit(sold, Sold(item.product))


@cart.register
async def drop(ctx: Context, product: int) -> None:
    await ctx.rows(items).delete(product)


@cart.register(read_only=True)
async def groups(ctx: Context) -> list[Any]:
    return [msgspec.to_builtins(row) for row in await ctx.rows(mine).select()]


@cart.register(read_only=True)
async def of_seller(ctx: Context, seller: str) -> Any:
    return msgspec.to_builtins(await ctx.group(by_seller, seller))


@cart.register(read_only=True)
async def in_cart(ctx: Context) -> list[Any]:
    return [msgspec.to_builtins(row) for row in await ctx.rows(items).select(scan=True)]


@order.register
async def place(ctx: Context, total: Decimal, amounts: list[int]) -> None:
    await ctx.put(Order(total, len(amounts)))
    for number, amount in enumerate(amounts):
        await ctx.rows(lines).put(Line(number, f"line {number}", amount))


@order.register(read_only=True)
async def amounts(ctx: Context) -> list[int]:
    return [line.amount for line in await ctx.rows(lines).select(scan=True)]


app = App("look", [account, counter, cart, order], events=[sold])
SELLERS = ("north", "south", 'it\'s, "quoted"\n')
AT = datetime(2026, 3, 4, 5, 6, 7, 890, UTC)


class Told(NamedTuple):
    """What functions have read at the end, and the committed state."""

    state: dict[tuple[str, Any], Any]
    carts: dict[str, list[Any]]
    groups: dict[str, list[Any]]
    sellers: dict[str, Any]
    amounts: dict[tuple[int, str], list[int]]


def item(number: int) -> Item:
    """One of many different items."""
    return Item(
        product=number,
        seller=SELLERS[number % 3],
        price=Decimal(number) / 4,
        colour=Colour.BLUE if number % 2 else Colour.RED,
        weight=number / 8,
        gift=number % 5 == 0,
        raw=bytes([number % 256]),
        day=None if number % 4 == 0 else date(2026, 1, 1) + timedelta(days=number),
        at=None if number % 3 == 0 else AT + timedelta(seconds=number),
        number=UUID(int=number) if number % 2 else None,
        size=Size(number, 2) if number % 6 else None,
        tags=["a", "b,c"][: number % 3],
    )


CARTS = [f"cart-{at:02}" for at in range(12)]
ORDERS = [(at, name) for at in (1, 2) for name in ("x", "y/z")]


async def fill(client: EmbeddedClient) -> None:
    """Gives everything its state."""
    for name, value in {"ada": {"balance": 5}, "bob": [1, None, "x"], "eve": 3, "": None, "ädä": b"\0\1"}.items():
        await client.call("account", name or "empty value", "put", value)
    await client.call("account", "late", "put", {"when": AT})
    for number in range(60):
        await client.call("cart", CARTS[number % len(CARTS)], "add", item(number))
    for key in (-5, 7, 10, 2**40):
        await client.call("counter", key, "count")
    for at, entity in enumerate(ORDERS):
        await client.call("order", entity, "place", Decimal("1.10") * at, list(range(at)))


async def change(client: EmbeddedClient) -> Told:
    """Changes and deletes some of it, and reads all."""
    await client.call("account", "eve", "gone")
    await client.call("account", "ada", "put", {"balance": 6})
    await client.call("counter", 7, "count")
    for number in range(0, 60, 7):
        await client.call("cart", CARTS[number % len(CARTS)], "drop", number)
    return Told(
        client.state(),
        {name: await client.call("cart", name, "in_cart") for name in CARTS},
        {name: await client.call("cart", name, "groups") for name in CARTS},
        {name: await client.call("cart", CARTS[0], "of_seller", name) for name in SELLERS},
        {key: await client.call("order", key, "amounts") for key in ORDERS},
    )
