"""Views over all entities: kept by implied calls, read by a call, in one transaction with the rows that they count."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Index, Operator
from styx.errors import TransactionAborted
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio


class Order(msgspec.Struct):
    id: int
    seller: str | None
    cents: int = 0
    price: Decimal | None = None
    seat: int = 1


shop = Operator("shop")
orders: Any = shop.table("orders", Order, key="id")
by_seller: Any = orders.view("by_seller", group_by="seller", sum=("cents", "price"), scope="app")
by_seat: Any = orders.view("by_seat", group_by=("seller", "seat"), where=lambda row: row.cents > 0, scope="app")
everything: Any = orders.view("everything", scope="app")
here: Any = orders.view("here")
reader = Operator("reader", key_type=int)


@shop.register
async def put(ctx: Context, rows: list[Order]) -> None:
    for row in rows:
        await ctx.rows(orders).put(row)


@shop.register
async def remove(ctx: Context, id: int, fail: bool = False) -> None:
    await ctx.rows(orders).delete(id)
    if fail:
        raise RuntimeError("no")


ranked: Any = orders.view("ranked", group_by="seller", min="cents", max="cents", scope="app")


@shop.register
async def add_late(ctx: Context, late: Order) -> None:
    """The row is there, and taken away by a function that runs before the call that counts it."""
    ctx.call_async(shop, take_away, ctx.key, (late.id, 1))
    await ctx.rows(orders).insert(late)
    ctx.call_async(reader, keep, 1, (2,))


@shop.register
async def take_away(ctx: Context, id: int, place: int) -> None:
    ctx.call_async(reader, keep, 1, (0,))
    await ctx.rows(orders).delete(id)
    ctx.call_async(reader, keep, 1, (place,))


@reader.register
async def keep(ctx: Context, place: int) -> None:
    """Keeps what the group is now."""
    counts, ends = await ctx.group(by_seller, "s"), await ctx.group(ranked, "s")
    seen = {} if place == 0 else await ctx.get({})
    seen[str(place)] = [counts.count, counts.cents, ends.count, ends.min_cents, ends.max_cents]
    await ctx.put(seen)


@reader.register(read_only=True)
async def look(ctx: Context, seller: str = "s") -> list[Any]:
    group = await ctx.group(by_seller, seller)
    return [group.count, group.cents, group.price, (await ctx.group(by_seat, seller, 1)).count]


@reader.register(read_only=True)
async def all_of(ctx: Context) -> int:
    return int((await ctx.group(everything)).count)


@reader.register
async def wrong(ctx: Context, what: str) -> None:
    if what == "too few":
        await ctx.group(by_seat, "s")
    elif what == "type":
        await ctx.group(by_seller, 7)
    elif what == "rows":
        await ctx.rows(by_seller).get("s")
    elif what == "of entities":
        await ctx.group(here)
    elif what == "forgotten":
        ctx.group(by_seller, "s")  # type: ignore[unused-coroutine]  # the mistake that is tested


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("cents", [1, 9])
async def test_no_group_has_fewer_rows_than_none(others: int, cents: int) -> None:
    async with embedded_cluster(App("shop", [shop, reader]), n_slots=4) as cluster:
        if others:
            await cluster.call(shop, "b", put, [Order(1, "s", 5)])
        there = [1, 5, 1, 5, 5] if others else [0, 0, 0, None, None]
        nothing = [0, 0, 0, None, None]
        await cluster.call(shop, "a", add_late, Order(1, "s", cents))
        # Amid the transaction the taken row is counted before it is: of one other row nothing is told for that moment.
        assert cluster.entity("reader", 1) == {"0": there, "1": nothing, "2": there}
        assert await cluster.call(reader, 1, look) == [others, 5 * others, "0", others]


async def test_an_end_is_that_of_rows_that_are_there() -> None:
    async with embedded_cluster(App("shop", [shop, reader]), n_slots=4) as cluster:
        await cluster.call(shop, "b", put, [Order(1, "s", 5), Order(2, "s", 6), Order(3, "s", 7)])
        for cents in (1, 9, 6):
            await cluster.call(shop, "a", add_late, Order(1, "s", cents))
            assert cluster.entity("reader", 1)["1"][2:] == [2, 5, 7]
            assert cluster.entity("reader", 1)["2"][2:] == [3, 5, 7]


async def test_groups_count_the_rows_of_all_entities() -> None:
    async with embedded_cluster(App("shop", [shop, reader]), n_slots=4) as cluster:
        for entity in ("a", "b", "c"):
            await cluster.call(shop, entity, put, [Order(1, "s", 5, Decimal("0.1")), Order(2, "t"), Order(3, None)])
        assert await cluster.call(reader, 1, look) == [3, 15, "0.3", 3]
        assert await cluster.call(reader, 1, look, "t") == [3, 0, "0", 0]
        assert await cluster.call(reader, 1, look, "nobody") == [0, 0, "0", 0]
        assert await cluster.call(reader, 2, all_of) == 9
        await cluster.call(shop, "a", put, [Order(1, "t", 7), Order(3, "s")])
        assert await cluster.call(reader, 1, look) == [3, 10, "0.2", 2]
        with pytest.raises(TransactionAborted, match="no"):
            await cluster.call(shop, "b", remove, 1, True)
        for entity in ("a", "b", "c"):
            for id in (1, 2, 3):
                await cluster.call(shop, entity, remove, id)
        assert await cluster.call(reader, 1, look) == [0, 0, "0", 0]
        assert cluster.engine.encoded_state() == {}, "a group without rows is not there"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("too few", r"a group of view 'by_seat' of table shop/orders is \(seller, seat\), got 1 values"),
        ("type", "column 'seller' is of type str, and was compared with 7"),
        ("rows", r"view 'by_seller' of table shop/orders is over all entities: read a group by ctx.group\(view, …\)"),
        ("of entities", r'ctx.group is for views with scope="app"'),
        ("forgotten", "did not await its ctx.group of"),
    ],
)
async def test_what_is_refused(what: str, why: str) -> None:
    async with embedded_cluster(App("shop", [shop, reader])) as cluster:
        with pytest.raises(TransactionAborted, match=why):
            await cluster.call(reader, 1, wrong, what)


@pytest.mark.parametrize("here", [True, False])
async def test_rows_that_count_in_one_group_do_not_conflict(here: bool) -> None:
    """The first rows of a group as well, before which it is not there."""
    async with embedded_cluster(App("shop", [shop, reader]), n_slots=4) as cluster:
        calls = [
            cluster.request(shop, "a" if here else f"a{number}", put, [Order(number, "s", 1)]) for number in range(40)
        ]
        replies = await asyncio.gather(*calls)
        assert {reply.phase for reply in replies} == {1}
        assert await cluster.call(reader, 1, look) == [40, 40, "0", 40]


def test_a_view_has_no_name_of_an_app_wide_index_with_its_columns() -> None:
    class Visit(msgspec.Struct):
        page: str
        user: str

    table = Operator("session").table(
        "visits", Visit, key="page", indexes=[Index("by_user", equal="user", scope="app")]
    )
    with pytest.raises(ConfigurationError, match="an app-wide index of the table has the same name and columns"):
        table.view("by_user", group_by="user", scope="app")
    assert table.view("per_user", group_by="user", scope="app").view_rule is not None
