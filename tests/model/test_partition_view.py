"""Views over partitions: kept where the entities are, read by partition functions, without a call for any row."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator, PartitionContext, Tumbling
from styx.errors import BadArguments, TransactionAborted
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio
N_SLOTS = 4
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Order(msgspec.Struct):
    id: int
    seller: str | None
    cents: int = 0
    at: datetime = NOON


shop = Operator("shop", n_partitions=3)
orders: Any = shop.table("orders", Order, key="id")
by_seller: Any = orders.view("by_seller", group_by="seller", sum="cents", min="cents", max="at", scope="partition")
everything = orders.view("everything", where=lambda row: row.cents > 0, scope="partition")
hours: Any = orders.view("hours", group_by=Tumbling("at", timedelta(hours=1)), scope="partition")
here: Any = orders.view("here")
everywhere: Any = orders.view("everywhere", group_by="seller", min="cents", max="at", scope="app")
other = Operator("other", n_partitions=3)


@shop.register
async def put(ctx: Context, row: Order) -> None:
    await ctx.rows(orders).put(row)


@shop.register
async def remove(ctx: Context, id: int) -> None:
    await ctx.rows(orders).delete(id)


@shop.register(local=True)
async def put_locally(ctx: Context, row: Order) -> None:
    await ctx.rows(orders).put(row)


@shop.register_partition(read_only=True)
async def seen(ctx: PartitionContext, seller: str) -> list[Any]:
    group = await ctx.rows(by_seller).get(seller)
    whole = await ctx.rows(everything).get(())
    return [group.count, group.cents, group.min_cents, group.max_at, whole.count]


@shop.register_partition(read_only=True)
async def by_hours(ctx: PartitionContext) -> list[Any]:
    return [[group.at, group.count] for group in await ctx.rows(hours).select()]


@shop.register_partition
async def give(ctx: PartitionContext, entity: str, row: Order) -> list[Any]:
    """Changes a row, and reads its group in the same function."""
    if not ctx.holds(entity):
        return []
    await ctx.rows(orders, of=entity).put(row)
    group = await ctx.rows(by_seller).get(row.seller)
    return [group.count, group.cents, group.min_cents]


@shop.register(read_only=True)
async def look(ctx: Context, seller: str = "s") -> list[Any]:
    parts = await ctx.call_all(shop, seen, (seller,))
    ends = [part[2] for part in parts if part[2] is not None]
    return [sum(part[0] for part in parts), sum(part[1] for part in parts), min(ends, default=None), parts]


@shop.register(read_only=True)
async def in_app(ctx: Context, seller: str = "s") -> list[Any]:
    group = await ctx.group(everywhere, seller)
    return [group.count, group.min_cents, group.max_at]


@shop.register(read_only=True)
async def look_at_hours(ctx: Context) -> list[Any]:
    return [pair for part in await ctx.call_all(shop, by_hours) for pair in part]


@shop.register
async def give_all(ctx: Context, entity: str, row: Order) -> list[Any]:
    return [part for part in await ctx.call_all(shop, give, (entity, row)) if part]


@shop.register
async def wrong(ctx: Context, what: str) -> None:
    if what == "rows":
        ctx.rows(by_seller)
    elif what == "group":
        await ctx.group(by_seller, "s")


@shop.register_partition
async def wrong_part(ctx: PartitionContext, what: str) -> None:
    if what == "of":
        ctx.rows(by_seller, of=next(key for key in map(str, range(100)) if ctx.holds(key)))
    elif what == "write":
        await ctx.rows(by_seller).put(7)
    elif what == "app":
        ctx.rows(everywhere)
    elif what == "entity":
        await ctx.rows(here).select()
    elif what == "no window":
        await ctx.rows(hours).get(NOON + timedelta(minutes=1))
    elif what == "type":
        await ctx.rows(by_seller).get(7)
    elif what == "forgotten":
        ctx.rows(by_seller).get("s")


@shop.register
async def wrong_all(ctx: Context, what: str) -> None:
    await ctx.call_all(shop, wrong_part, (what,))


@other.register_partition
async def foreign(ctx: PartitionContext) -> None:
    ctx.rows(by_seller)


@other.register
async def foreign_all(ctx: Context) -> None:
    await ctx.call_all(other, foreign)


APP = App("shop", [shop, other])


async def test_groups_count_the_rows_of_a_partition() -> None:
    async with embedded_cluster(APP, n_slots=N_SLOTS) as cluster:
        for number in range(12):
            order = Order(1, "s", number + 1, NOON + timedelta(minutes=20 * number))
            await cluster.call(shop, f"k{number}", put if number % 2 else put_locally, order)
        await cluster.call(shop, "k0", put, Order(2, None, 5))
        count, cents, least, parts = await cluster.call(shop, "k0", look)
        assert (count, cents, least) == (12, 78, 1)
        assert len(parts) == 3
        assert sum(part[4] for part in parts) == 13, "without a group, the row without a seller counts"
        assert max(part[3] for part in parts) == NOON + timedelta(minutes=220)
        await cluster.call(shop, "k0", remove, 1)
        await cluster.call(shop, "k1", put, Order(1, "t", 9))
        assert (await cluster.call(shop, "k0", look))[:3] == [10, 75, 3]
        assert (await cluster.call(shop, "k0", look, "t"))[:3] == [1, 9, 9]
        assert (await cluster.call(shop, "k0", look, "nobody"))[:3] == [0, 0, None]
        for number in range(12):
            for id in (1, 2):
                await cluster.call(shop, f"k{number}", remove, id)
        assert cluster.engine.encoded_state() == {}, "a group without rows is not there"


async def test_windows_over_a_partition() -> None:
    async with embedded_cluster(APP, n_slots=N_SLOTS) as cluster:
        for number in range(9):
            await cluster.call(shop, "k", put, Order(number, "s", 1, NOON + timedelta(minutes=20 * number)))
        found = await cluster.call(shop, "k", look_at_hours)
        assert found == [[NOON + timedelta(hours=number), 3] for number in range(3)]


async def test_ends_over_all_entities() -> None:
    async with embedded_cluster(APP, n_slots=N_SLOTS) as cluster:
        for number in range(6):
            order = Order(1, "s", 10 - number, NOON + timedelta(hours=number))
            await cluster.call(shop, f"k{number}", put, order)
        assert await cluster.call(shop, "k", in_app) == [6, 5, NOON + timedelta(hours=5)]
        await cluster.call(shop, "k5", remove, 1)
        assert await cluster.call(shop, "k", in_app) == [5, 6, NOON + timedelta(hours=4)]
        await cluster.call(shop, "k4", put, Order(1, "s", 6, NOON))
        assert await cluster.call(shop, "k", in_app) == [5, 6, NOON + timedelta(hours=3)]
        assert await cluster.call(shop, "k", in_app, "nobody") == [0, None, None]


async def test_a_partition_function_sees_its_own_changes() -> None:
    async with embedded_cluster(APP, n_slots=N_SLOTS) as cluster:
        assert await cluster.call(shop, "a", give_all, "a", Order(1, "s", 5)) == [[1, 5, 5]]
        assert await cluster.call(shop, "a", give_all, "a", Order(2, "s", 3)) == [[2, 8, 3]]
        assert await cluster.call(shop, "a", give_all, "a", Order(2, "s", 7)) == [[2, 12, 5]]


async def test_rows_that_count_in_one_group_do_not_conflict() -> None:
    async with embedded_cluster(APP, n_slots=1) as cluster:
        calls = [cluster.request(shop, f"a{number}", put, Order(1, "s", number + 1)) for number in range(40)]
        replies = await asyncio.gather(*calls)
        assert {reply.phase for reply in replies} == {1}
        assert (await cluster.call(shop, "a", look))[:3] == [40, 820, 1]


@pytest.mark.parametrize(
    ("function", "what", "why"),
    [
        (wrong, "rows", r"by_seller' of table shop/orders is over the entities of a partition: a partition function"),
        (wrong, "group", r'ctx.group is for views with scope="app", and shop\*/<view by_seller> is none'),
        (wrong_all, "of", "over the entities of a partition: a partition function reads it, by ctx.rows.view. without"),
        (wrong_all, "write", "view 'by_seller' of table shop/orders is kept by the engine: rows"),
        (wrong_all, "app", r"view 'everywhere' of table shop/orders is over all entities: read a group by ctx.group"),
        (wrong_all, "entity", "no partition-wide index serves the query|asked for rows"),
        (wrong_all, "no window", "is not the start of a window of Tumbling"),
        (wrong_all, "type", "column 'seller' is of type str, and was compared with 7"),
        (wrong_all, "forgotten", r"did not await ctx.rows\(by_seller\).get"),
    ],
)
async def test_what_is_refused(function: Any, what: str, why: str) -> None:
    async with embedded_cluster(APP, n_slots=N_SLOTS) as cluster:
        with pytest.raises(TransactionAborted, match=why):
            await cluster.call(shop, "a", function, what)


async def test_of_another_operator() -> None:
    async with embedded_cluster(APP, n_slots=N_SLOTS) as cluster:
        with pytest.raises(TransactionAborted, match="is over the entities of a partition"):
            await cluster.call(other, "a", foreign_all)


@pytest.mark.parametrize("view", [by_seller, everywhere])
async def test_clients_read_it_through_a_function(view: Any) -> None:
    async with embedded_cluster(APP, n_slots=N_SLOTS) as cluster:
        with pytest.raises(BadArguments, match="a client reads it through a function"):
            cluster.rows(view, "a")
