"""What rows cost: an app in which each operation is done ten times in a function, on rows of a table, and beside it by
calls to an entity for each row, or on a list in the entity's value.

Every cart has the same items in each of the three forms. The functions are local, so that no conflict hides the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.driver.workload import Loading
from styx import App, Context, Index, Operator, PartitionContext, below

CARTS: Final = 20
ITEMS: Final = 1_000
"""Of each cart."""
OPERATIONS: Final = 10
"""Of one transaction, but for scans."""


class Item(msgspec.Struct, array_like=True):
    """A product in a cart."""

    product: int
    quantity: int
    price: int


class Coupon(msgspec.Struct, array_like=True):
    """A coupon of a cart; its text is unique there."""

    number: int
    text: str


def _cart_of(key: int | tuple[int, int]) -> int:
    return key[0] if isinstance(key, tuple) else key


class Listed(msgspec.Struct, array_like=True):
    """A product of a seller; its code is unique among all sellers."""

    number: int
    code: str


class Taken(Exception):
    """A value that is unique has been taken, or an entity is there already."""


def _cart_of_text(key: tuple[int, str]) -> int:
    return key[0]


cart = Operator("cart", key_type=int, state_type=list[Item], partition_key=_cart_of)
items = cart.table("items", Item, key="product")
wanted = cart.table("wanted", Item, key="product", indexes=[Index("by_product", equal="product", scope="partition")])
counted = cart.table("counted", Item, key="product")
by_quantity = counted.view("by_quantity", group_by="quantity", sum="price")
coupons = cart.table("coupons", Coupon, key="number", indexes=[Index("by_text", equal="text", unique=True)])
listings = cart.table(
    "listings", Listed, key="number", indexes=[Index("by_code", equal="code", unique=True, scope="app")]
)
item = Operator("item", key_type=tuple[int, int], state_type=Item, partition_key=_cart_of)
coupon = Operator("coupon", key_type=tuple[int, int], state_type=Coupon, partition_key=_cart_of)
coupon_text = Operator("coupon_text", key_type=tuple[int, str], state_type=int, partition_key=_cart_of_text)
listing = Operator("listing", key_type=tuple[int, int], state_type=Listed, partition_key=_cart_of)
code = Operator("code", key_type=str, state_type=tuple[int, int])
"""Indexes by hand: an entity for each value."""


@cart.register(local=True)
async def nothing(ctx: Context, numbers: list[int]) -> int:
    """What a transaction costs without an operation."""
    return len(numbers)


# Rows ------------------------------------------------------------------------------------------------------------


@cart.register(local=True)
async def get(ctx: Context, numbers: list[int]) -> int:
    rows, found = ctx.rows(items), 0
    for number in numbers:
        row = await rows.get(number)
        assert row is not None
        found += row.quantity
    return found


@cart.register(local=True)
async def put(ctx: Context, numbers: list[int]) -> int:
    rows = ctx.rows(items)
    for number in numbers:
        await rows.put(Item(number, 2, 3))
    return len(numbers)


@cart.register(local=True)
async def insert(ctx: Context, numbers: list[int]) -> int:
    rows = ctx.rows(items)
    for number in numbers:
        await rows.insert(Item(number, 2, 3))
    return len(numbers)


@cart.register(local=True)
async def update(ctx: Context, numbers: list[int]) -> int:
    rows = ctx.rows(items)
    for number in numbers:
        await rows.update(number, quantity=number)
    return len(numbers)


@cart.register(local=True)
async def insert_counted(ctx: Context, numbers: list[int]) -> int:
    rows = ctx.rows(counted)
    for number in numbers:
        await rows.insert(Item(number, 2, 3))
    return len(numbers)


@cart.register(local=True)
async def update_counted(ctx: Context, numbers: list[int]) -> int:
    rows = ctx.rows(counted)
    for number in numbers:
        await rows.update(number, price=number + 1)
    return len(numbers)


@cart.register(local=True)
async def insert_unique(ctx: Context, numbers: list[int]) -> int:
    rows = ctx.rows(coupons)
    for number in numbers:
        await rows.insert(Coupon(number, str(number)))
    return len(numbers)


@cart.register
async def insert_listings(ctx: Context, numbers: list[int]) -> int:
    rows = ctx.rows(listings)
    for number in numbers:
        await rows.insert(Listed(number, f"{ctx.key}-{number}"))
    return len(numbers)


@cart.register(local=True)
async def scan(ctx: Context, count: int) -> int:
    return len(await ctx.rows(items).select(product=below(count)))


@cart.register_partition(read_only=True)
async def wants(ctx: PartitionContext, number: int) -> int:
    return len(await ctx.rows(wanted).select(product=number))


@cart.register
async def select_partition(ctx: Context, number: int) -> int:
    """The rows of all carts with one product."""
    return sum(await ctx.call_all(cart, wants, (number,)))


# Calls -----------------------------------------------------------------------------------------------------------


@item.register
async def read(ctx: Context) -> Item:
    found: Item = await ctx.get()
    return found


@item.register
async def write(ctx: Context, quantity: int, price: int) -> None:
    await ctx.put(Item(ctx.key[1], quantity, price))


@item.register
async def create(ctx: Context, quantity: int, price: int) -> None:
    if await ctx.get() is not None:
        raise Taken(ctx.key)
    await ctx.put(Item(ctx.key[1], quantity, price))


@coupon.register
async def issue(ctx: Context, text: str) -> None:
    if await ctx.get() is not None:
        raise Taken(ctx.key)
    await ctx.put(Coupon(ctx.key[1], text))
    await ctx.call(coupon_text, claim, (ctx.key[0], text), (ctx.key[1],))


@coupon_text.register
async def claim(ctx: Context, number: int) -> None:
    if await ctx.get() is not None:
        raise Taken(ctx.key)
    await ctx.put(number)


@listing.register
async def offer(ctx: Context, text: str) -> None:
    if await ctx.get() is not None:
        raise Taken(ctx.key)
    await ctx.put(Listed(ctx.key[1], text))
    ctx.call_async(code, enter, text, (ctx.key,))


@code.register
async def enter(ctx: Context, key: tuple[int, int]) -> None:
    if await ctx.get() is not None:
        raise Taken(ctx.key)
    await ctx.put(key)


@item.register
async def change(ctx: Context, quantity: int) -> None:
    found: Item = await ctx.get()
    found.quantity = quantity
    await ctx.put(found)


@cart.register(local=True)
async def call_get(ctx: Context, numbers: list[int]) -> int:
    found = 0
    for number in numbers:
        found += (await ctx.call(item, read, (ctx.key, number))).quantity
    return found


@cart.register(local=True)
async def call_put(ctx: Context, numbers: list[int]) -> int:
    for number in numbers:
        await ctx.call(item, write, (ctx.key, number), (2, 3))
    return len(numbers)


@cart.register(local=True)
async def call_insert(ctx: Context, numbers: list[int]) -> int:
    for number in numbers:
        await ctx.call(item, create, (ctx.key, number), (2, 3))
    return len(numbers)


@cart.register(local=True)
async def call_unique(ctx: Context, numbers: list[int]) -> int:
    for number in numbers:
        await ctx.call(coupon, issue, (ctx.key, number), (str(number),))
    return len(numbers)


@cart.register
async def call_listings(ctx: Context, numbers: list[int]) -> int:
    for number in numbers:
        await ctx.call(listing, offer, (ctx.key, number), (f"{ctx.key}-{number}",))
    return len(numbers)


@cart.register(local=True)
async def call_update(ctx: Context, numbers: list[int]) -> int:
    for number in numbers:
        await ctx.call(item, change, (ctx.key, number), (number,))
    return len(numbers)


@cart.register(local=True)
async def call_scan(ctx: Context, count: int) -> int:
    return len([await ctx.call(item, read, (ctx.key, number)) for number in range(count)])


# A list ----------------------------------------------------------------------------------------------------------


@cart.register(local=True)
async def list_get(ctx: Context, numbers: list[int]) -> int:
    held: list[Item] = await ctx.get()
    return sum(held[number].quantity for number in numbers)


@cart.register(local=True)
async def list_put(ctx: Context, numbers: list[int]) -> int:
    held: list[Item] = await ctx.get()
    for number in numbers:
        held[number] = Item(number, 2, 3)
    await ctx.put(held)
    return len(numbers)


@cart.register(local=True)
async def list_scan(ctx: Context, count: int) -> int:
    held: list[Item] = await ctx.get()
    return len([each for each in held if each.product < count])


app = App("carts", operators=[cart, item, coupon, coupon_text, listing, code])


# Loads -----------------------------------------------------------------------------------------------------------


class Load(NamedTuple):
    """One row of the micro-benchmarks. `arguments` are those of its transaction with this number."""

    title: str
    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    state: Callable[[], Iterable[Loading]]
    few: int = 100
    many: int = 400


def _drawn(number: int) -> tuple[Any, ...]:
    """Ten numbers of items, other ones for the next transaction."""
    return ([(number * 37 + at * 101) % ITEMS for at in range(OPERATIONS)],)


def _fresh(number: int) -> tuple[Any, ...]:
    first = ITEMS + number * OPERATIONS
    return (list(range(first, first + OPERATIONS)),)


def _first_50(number: int) -> tuple[Any, ...]:
    return (50,)


def _all(number: int) -> tuple[Any, ...]:
    return (ITEMS,)


def _one(number: int) -> tuple[Any, ...]:
    return (number % ITEMS,)


def _items() -> Iterable[Item]:
    return (Item(number, 1, number) for number in range(ITEMS))


def _as_rows() -> Iterable[Loading]:
    return [Loading(cart, CARTS * ITEMS, ((key, each) for key in range(CARTS) for each in _items()), items)]


def _as_counted_rows() -> Iterable[Loading]:
    """The rows, and the group of each cart that counts them."""
    rows = ((key, each) for key in range(CARTS) for each in _items())
    group = by_quantity.row_type.declared(1, ITEMS, sum(each.price for each in _items()))
    groups = ((key, group) for key in range(CARTS))
    return [Loading(cart, CARTS * ITEMS, rows, counted), Loading(cart, CARTS, groups, by_quantity)]


def _as_wanted_rows() -> Iterable[Loading]:
    return [Loading(cart, CARTS * ITEMS, ((key, each) for key in range(CARTS) for each in _items()), wanted)]


def _as_entities() -> Iterable[Loading]:
    pairs = (((key, each.product), each) for key in range(CARTS) for each in _items())
    return [Loading(item, CARTS * ITEMS, pairs)]


def _as_lists() -> Iterable[Loading]:
    return [Loading(cart, CARTS, ((key, list(_items())) for key in range(CARTS)))]


LOADS: Final = {
    "nothing": Load("a function without an operation", nothing, _drawn, list),
    "row_get": Load("10 rows are read", get, _drawn, _as_rows),
    "row_put": Load("10 rows are put", put, _drawn, _as_rows),
    "row_insert": Load("10 rows are inserted", insert, _fresh, _as_rows),
    "row_update": Load("10 rows are updated", update, _drawn, _as_rows),
    "row_insert_view": Load("10 rows are inserted, which a view counts", insert_counted, _fresh, _as_counted_rows),
    "row_update_view": Load("10 rows are updated, which a view adds up", update_counted, _drawn, _as_counted_rows),
    "row_unique": Load("10 rows are inserted, with a unique check", insert_unique, _fresh, list),
    "row_app_wide": Load("10 rows are inserted, with a unique index over all carts", insert_listings, _fresh, list),
    "row_scan_50": Load("50 rows are selected", scan, _first_50, _as_rows),
    "row_scan_1000": Load("1,000 rows are selected", scan, _all, _as_rows, 10, 60),
    "row_partitions": Load("20 rows are selected on 4 partitions", select_partition, _one, _as_wanted_rows),
    "call_get": Load("10 entities are read by calls", call_get, _drawn, _as_entities),
    "call_put": Load("10 entities are put by calls", call_put, _drawn, _as_entities),
    "call_insert": Load("10 entities are inserted by calls", call_insert, _fresh, _as_entities),
    "call_unique": Load("10 entities are inserted by calls, with a unique text each", call_unique, _fresh, list),
    "call_app_wide": Load(
        "10 entities are inserted by calls, with a text each that is unique on all slots", call_listings, _fresh, list
    ),
    "call_update": Load("10 entities are changed by calls", call_update, _drawn, _as_entities),
    "call_scan_50": Load("50 entities are read by calls", call_scan, _first_50, _as_entities, 20, 80),
    "call_scan_1000": Load("1,000 entities are read by calls", call_scan, _all, _as_entities, 2, 22),
    "list_get": Load("10 items of a list of 1,000 are read", list_get, _drawn, _as_lists, 10, 60),
    "list_put": Load("10 items of a list of 1,000 are put", list_put, _drawn, _as_lists, 10, 60),
    "list_scan_1000": Load("1,000 items of a list are read", list_scan, _all, _as_lists, 10, 60),
}
"""By the name that the commands take."""
