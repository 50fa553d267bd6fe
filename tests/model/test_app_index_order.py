"""Indexes over the app with an order: look-ups of a range, of the first or last rows, and page by page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any

import msgspec
import pytest

from styx import (
    App,
    ConfigurationError,
    Context,
    Index,
    Operator,
    Page,
    TransactionAborted,
    above,
    at_least,
    at_most,
    below,
    between,
    prefix,
)
from styx.deployment.package import pack_code, unpack_code
from styx.schema.description import describe
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio
START = datetime(2026, 1, 1, tzinfo=UTC)


class Grade(Enum):
    LOW = 1
    HIGH = 2


class Order(msgspec.Struct):
    id: int
    seller: str
    at: datetime = START
    price: Decimal = Decimal(0)
    weight: float = 0.0
    name: str = ""
    grade: Grade = Grade.LOW
    note: str | None = None
    first: int = 0


def declare(operator: Operator) -> Any:
    return operator.table(
        "orders",
        Order,
        key="id",
        indexes=[
            Index("recent", equal="seller", order="at", scope="app"),
            Index("dear", equal=("seller", "grade"), order=("price", "name"), scope="app"),
            Index("heavy", equal="seller", order="weight", scope="app"),
            Index("firsts", equal="seller", order="first", scope="app"),
        ],
    )


shop = Operator("shop")
orders = declare(shop)
ask = Operator("ask")


@shop.register
async def put(ctx: Context, row: Order) -> None:
    await ctx.rows(orders).put(row)


@shop.register
async def remove(ctx: Context, id: int) -> None:
    await ctx.rows(orders).delete(id)


@ask.register(read_only=True)
async def look(ctx: Context, what: str, n: int = 0) -> list[Any]:
    at = START + timedelta(hours=n)
    looks: dict[str, Callable[[], Any]] = {
        "all": lambda: ctx.find(orders, "recent", seller="s"),
        "since": lambda: ctx.find(orders, "recent", seller="s", at=at_least(at)),
        "behind": lambda: ctx.find(orders, "recent", seller="s", at=above(at)),
        "until": lambda: ctx.find(orders, "recent", seller="s", at=at_most(at)),
        "before": lambda: ctx.find(orders, "recent", seller="s", at=below(at), last=1),
        "amid": lambda: ctx.find(orders, "recent", seller="s", at=between(at, at + timedelta(hours=1))),
        "at": lambda: ctx.find(orders, "recent", seller="s", at=at),
        "first": lambda: ctx.find(orders, "recent", seller="s", first=n),
        "last": lambda: ctx.find(orders, "recent", seller="s", last=n),
        "of another": lambda: ctx.find(orders, "recent", seller="t", at=at_least(START)),
        "dear": lambda: ctx.find(orders, "dear", seller="s", grade=Grade.LOW, price=at_least(Decimal(n))),
        "named": lambda: ctx.find(orders, "dear", seller="s", grade=Grade.LOW, price=Decimal(n), name=prefix("a")),
        "heavy": lambda: ctx.find(orders, "heavy", seller="s", weight=below(float(n))),
        "mapping": lambda: ctx.find(orders, "firsts", {"first": at_least(n)}, seller="s", first=2),
    }
    return [list(pair) for pair in await looks[what]()]


@ask.register(read_only=True)
async def page(ctx: Context, after: str | None = None, size: int = 3) -> Page[tuple[str, int]]:
    return await ctx.find(orders, "recent", seller="s", at=at_least(START), size=size, after=after)


@ask.register
async def wrong(ctx: Context, what: str) -> None:
    tries: dict[str, Callable[[], Any]] = {
        "no value": lambda: ctx.find(orders, "recent", at=START),
        "not an equality": lambda: ctx.find(orders, "recent", seller=prefix("s")),
        "no column of it": lambda: ctx.find(orders, "recent", seller="s", name="x"),
        "none": lambda: ctx.find(orders, "recent", seller="s", at=None),
        "type": lambda: ctx.find(orders, "recent", seller="s", at=at_least(5)),
        "zone": lambda: ctx.find(orders, "recent", seller="s", at=above(START.replace(tzinfo=None))),
        "gap": lambda: ctx.find(orders, "dear", seller="s", grade=Grade.LOW, name="x"),
        "two comparisons": lambda: ctx.find(
            orders, "dear", seller="s", grade=Grade.LOW, price=above(Decimal(1)), name=prefix("x")
        ),
        "prefix": lambda: ctx.find(orders, "heavy", seller="s", weight=prefix("1")),
        "nan": lambda: ctx.find(orders, "heavy", seller="s", weight=at_least(float("nan"))),
        "large": lambda: ctx.find(orders, "heavy", seller="s", weight=at_least(10**400)),
        "both": lambda: ctx.find(orders, "recent", seller="s", first=1, last=1),
        "page and first": lambda: ctx.find(orders, "recent", seller="s", first=1, size=2),
        "no size": lambda: ctx.find(orders, "recent", seller="s", after="x"),
        "size": lambda: ctx.find(orders, "recent", seller="s", size=0),
        "after": lambda: ctx.find(orders, "recent", seller="s", size=2, after=7),
        "cursor": lambda: ctx.find(orders, "recent", seller="s", size=2, after="nonsense"),
    }
    await tries[what]()


APP = App("shop", [shop, ask])


async def fill(cluster: Any) -> None:
    for n in Random(1).sample(range(6), 6):
        row = Order(n, "s", START + timedelta(hours=n), Decimal(n) / 2, n - 2.5, "abc"[n % 3], first=-n)
        await cluster.call(shop, f"k{n % 2}", put, row)


async def test_look_ups_of_a_range() -> None:
    async with embedded_cluster(APP) as cluster:
        await fill(cluster)

        async def found(what: str, n: int = 0) -> list[int]:
            return [id for _, id in await cluster.call(ask, "x", look, what, n)]

        assert await cluster.call(ask, "x", look, "first", 2) == [["k0", 0], ["k1", 1]]
        assert await found("all") == [0, 1, 2, 3, 4, 5]
        assert await found("since", 4) == [4, 5]
        assert await found("behind", 4) == [5]
        assert await found("until", 1) == [0, 1]
        assert await found("before", 3) == [2]
        assert await found("amid", 2) == [2, 3]
        assert await found("at", 2) == [2]
        assert await found("last", 2) == [4, 5]
        assert await found("of another") == []
        assert await found("dear", 1) == [2, 3, 4, 5]
        assert await found("named", 0) == [0]
        assert await found("heavy", 0) == [0, 1, 2]
        assert await found("mapping", -3) == [3, 2]


async def test_a_row_that_changes_moves_in_the_order() -> None:
    async with embedded_cluster(APP) as cluster:
        await fill(cluster)
        await cluster.call(shop, "k0", put, Order(2, "s", START + timedelta(hours=9)))
        await cluster.call(shop, "k1", put, Order(3, "t"))
        await cluster.call(shop, "k1", remove, 5)
        assert [id for _, id in await cluster.call(ask, "x", look, "all")] == [0, 1, 4, 2]
        for n in range(6):
            await cluster.call(shop, f"k{n % 2}", remove, n)
        assert cluster.engine.encoded_state() == {}


async def test_pages() -> None:
    async with embedded_cluster(APP) as cluster:
        await fill(cluster)
        first = await cluster.call(ask, "x", page)
        assert [id for _, id in first.rows] == [0, 1, 2]
        second = await cluster.call(ask, "x", page, first.next)
        assert [id for _, id in second.rows] == [3, 4, 5]
        assert second.next is None
        whole = await cluster.call(ask, "x", page, None, 6)
        assert len(whole.rows) == 6
        assert whole.next is None


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("no value", "names a value for each of its columns, seller, and may have conditions on at: got at"),
        ("not an equality", "column 'seller' is of type str, and was compared with"),
        ("no column of it", "names a value for each of its columns, seller"),
        ("none", "rows with at=None are not in the app-wide index 'recent'"),
        ("type", "column 'at' is of type datetime, and was compared with 5"),
        ("zone", "column 'at': .* has no time zone"),
        ("gap", "index 'dear' is in the order of price, name: a look-up says price=value for the first"),
        ("two comparisons", "one comparison for the next; it does not filter"),
        ("prefix", "column 'weight' is of type float: only texts have a prefix"),
        ("nan", "NaN has no place in an order"),
        ("large", "column .weight. is of type float, and 10{9}.* is too large for one"),
        ("both", "first= and last= cannot stand together"),
        ("page and first", "a look-up gives a page, with size=, or its first or last rows"),
        ("no size", "after= is the cursor of a page, and size= says how many"),
        ("size", "size= is the number of rows of a page, at least 1, got 0"),
        (
            "after",
            "table shop/orders: after= is the next of the page before, of the same look-up by index 'recent', got 7",
        ),
        ("cursor", "of the same look-up by index 'recent', got 'nonsense'"),
    ],
)
async def test_what_is_refused(what: str, why: str) -> None:
    async with embedded_cluster(APP) as cluster:
        with pytest.raises(TransactionAborted, match=why):
            await cluster.call(ask, "x", wrong, what)


async def test_a_value_without_a_place_is_refused_where_it_is_written() -> None:
    async with embedded_cluster(APP) as cluster:
        for row in (Order(1, "s", price=Decimal("1E50")), Order(1, "s", name="x" * 3_000)):
            with pytest.raises(TransactionAborted, match="UnsupportedValue: table shop/orders, app-wide index 'dear'"):
                await cluster.call(shop, "k", put, row)
        assert cluster.engine.encoded_state() == {}


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (Index("i", order="at", scope="app"), "it needs equal=: the rows of a value stand where the value says"),
        (Index("i", equal="seller", order="seller", scope="app"), "'seller' is in equal= and in order=: take it out"),
        (Index("i", equal="seller", order="note", scope="app"), "column 'note' of order= may be None: give it a value"),
        (Index("i", equal="seller", order="gone", scope="app"), "the row type has no column 'gone'"),
        (Index("i", equal="seller", order="at", unique=True, scope="app"), "with unique=True a value has one row"),
        (Index("i", equal="seller", order=("at", "at"), scope="app"), "has the column 'at' twice"),
    ],
)
def test_declarations_that_are_refused(index: Index, why: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        Operator("shop").table("orders", Order, key="id", indexes=[index])
    assert why in str(told.value)


def test_bytes_have_no_order_here() -> None:
    row_type = msgspec.defstruct("Row", [("id", int), ("data", bytes)])
    with pytest.raises(ConfigurationError, match="column 'data' is of type bytes; order= takes int, Decimal"):
        Operator("shop").table("rows", row_type, key="id", indexes=[Index("i", equal="id", order="data", scope="app")])


def test_it_is_described_packed_and_explained() -> None:
    described = describe(APP).operators["shop"].tables["orders"].indexes
    assert described[0] == "recent: equal=seller; order=at; over the app"
    assert describe(unpack_code(pack_code(APP).payload)) == describe(APP)
    text = orders.explain(seller="s", at=at_least(START), by="recent")
    assert text.startswith("shop/orders: seller='s', at=at_least(")
    assert "gives the keys of the rows, by at, then in their order; the rows are read by calls" in text
    assert "a row that has the value and is in this range, or had it" in text
