"""The rows of a partition: found by partition-wide indexes, written through their entities, replayed serially."""

from __future__ import annotations

import asyncio
from itertools import chain
from random import Random
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Index, Operator, PartitionContext, TransactionAborted, at_least
from styx.deployment.package import pack_code, unpack_code
from styx.errors import MissingIndex
from styx.model.limits import Limits
from styx.testing import EmbeddedCluster, embedded_cluster

pytestmark = pytest.mark.anyio
N_SLOTS = 4


class Item(msgspec.Struct, array_like=True):
    product: int
    price: int
    seller: str = ""


def _declared(operator: Operator) -> Any:
    return operator.table(
        "items",
        Item,
        key="product",
        indexes=[
            Index("holding", equal="product", scope="partition"),
            Index("dear", order="price", scope="partition"),
            Index("cheapest", order="price"),
        ],
    )


cart = Operator("cart", key_type=int)
items = _declared(cart)
yard = Operator("yard", n_partitions=6, key_type=(str, int), partition_key=lambda key: key[0])
piles = _declared(yard)
shop = Operator("shop")


@cart.register
async def add(ctx: Context, product: int, price: int) -> None:
    await ctx.rows(items).put(Item(product, price))


@cart.register
async def remove(ctx: Context, product: int) -> bool:
    return bool(await ctx.rows(items).delete(product))


@cart.register
async def price_of(ctx: Context, product: int) -> int | None:
    row = await ctx.rows(items).get(product)
    return None if row is None else row.price


@yard.register
async def pile(ctx: Context, product: int, price: int) -> None:
    await ctx.rows(piles).put(Item(product, price))


@cart.register_partition
async def reprice(ctx: PartitionContext, product: int, price: int) -> int:
    found = await ctx.rows(items).select(product=product)
    for customer, _ in found:
        await ctx.rows(items, of=customer).update(product, price=price)
    assert [row.price for _, row in await ctx.rows(items).select(product=product)] == [price] * len(found)
    return len(found)


@cart.register_partition(read_only=True)
async def holders(ctx: PartitionContext, product: int) -> list[Any]:
    rows = ctx.rows(items)
    found = [[customer, row.price] for customer, row in await rows.select(product=product)]
    keys = await rows.keys({"product": product})
    assert found == [[customer, row.price] for customer, row in await rows.select({"product": product})]
    assert await rows.count({"product": product}) == await rows.count(product=product)
    assert await rows.exists({"product": product}) == bool(found)
    assert keys == [(customer, product) for customer, _ in found]
    assert await rows.count(product=product) == len(found)
    assert await rows.exists(product=product) == bool(found)
    assert await rows.count(product=product, price=at_least(0)) == len(found)
    return found


@cart.register_partition(read_only=True)
async def dearest(ctx: PartitionContext, least: int, number: int) -> list[Any]:
    found = await ctx.rows(items).select(price=at_least(least), last=number)
    return [[customer, row.product, row.price] for customer, row in found]


@yard.register_partition(read_only=True)
async def piled(ctx: PartitionContext) -> list[Any]:
    return [[*key, row.product] for key, row in await ctx.rows(piles).select()]


@cart.register_partition
async def wrong(ctx: PartitionContext, what: str) -> Any:
    rows = ctx.rows(items)
    if what == "of another":
        ctx.rows(items, of=next(key for key in range(1_000) if not ctx.holds(key)))
    elif what == "of no key":
        ctx.rows(items, of="seven")
    elif what == "foreign":
        ctx.rows(piles)
    elif what == "no index":
        await rows.select(seller="a")
    elif what == "entity's index":
        await rows.select(by="cheapest")
    elif what == "scan":
        await rows.select(scan=True)
    elif what == "no column":
        await rows.select(colour="red")
    elif what == "forgotten":
        rows.select(product=1)
    elif what == "too many":
        await rows.select()
    elif what == "missing":
        await ctx.rows(items, of=next(key for key in range(1_000) if ctx.holds(key))).update(1, price=1)


@cart.register_partition(read_only=True)
async def writes(ctx: PartitionContext) -> None:
    await ctx.rows(items, of=next(key for key in range(1_000) if ctx.holds(key))).put(Item(1, 1))


@shop.register
async def every(ctx: Context, operator: str, function: str, params: list[Any]) -> list[Any]:
    return await ctx.call_all(operator, function, params)


@shop.register
async def start(ctx: Context, product: int, price: int) -> None:
    ctx.call_all_async(cart, reprice, (product, price))


@shop.register(read_only=True)
async def look(ctx: Context, function: str, params: list[Any]) -> list[Any]:
    return await ctx.call_all(cart, function, params)


app = App("parts", [cart, yard, shop])


def started(**options: Any) -> EmbeddedCluster:
    return embedded_cluster(app, n_slots=N_SLOTS, **options)


async def test_an_index_finds_rows_of_all_entities_of_a_partition_in_order() -> None:
    async with started() as cluster:
        for customer in (5, 3, 9, 1, 12, 7, 11):
            await cluster.call(cart, customer, add, 8, customer)
            await cluster.call(cart, customer, add, 2, 100)
        by_partition = await cluster.call(shop, "a", every, "cart", "holders", [8])
        assert len(by_partition) == N_SLOTS
        for number, found in enumerate(by_partition):
            assert found == sorted(found)
            assert all(cart.partition_of(customer, N_SLOTS) == number for customer, _ in found)
        assert sorted(chain.from_iterable(by_partition)) == [[c, c] for c in (1, 3, 5, 7, 9, 11, 12)]
        dear = await cluster.call(shop, "a", every, "cart", "dearest", [9, 2])
        assert all(len(found) <= 2 and [row[2] for row in found] == sorted(row[2] for row in found) for found in dear)
        assert await cluster.call(shop, "b", look, "holders", [4]) == [[]] * N_SLOTS


async def test_a_partition_function_changes_rows_and_finds_what_it_changed() -> None:
    async with started() as cluster:
        for customer in range(20):
            await cluster.call(cart, customer, add, customer % 3, 10)
        assert sum(await cluster.call(shop, "a", every, "cart", "reprice", [1, 50])) == 7
        await cluster.call(shop, "b", start, 2, 70)
        assert [await cluster.call(cart, customer, price_of, customer % 3) for customer in range(6)] == [10, 50, 70] * 2


async def test_composite_keys_come_back_whole_and_partitions_can_be_more_than_slots() -> None:
    async with started() as cluster:
        for place in ("a", "b", "c", "d"):
            for number in (3, 1, 2):
                await cluster.call(yard, (place, number), pile, number, 1)
        found = await cluster.call(shop, "a", every, "yard", "piled", [])
        assert len(found) == 6
        assert sorted(chain.from_iterable(found)) == [[place, n, n] for place in "abcd" for n in (1, 2, 3)]
        for number, rows in enumerate(found):
            assert rows == sorted(rows)
            assert all(yard.partition_of((place, n), N_SLOTS) == number for place, n, _ in rows)


async def test_changes_and_queries_at_once_are_serializable() -> None:
    """The cluster replays all of it when it ends. After it, the index holds what a look at each entity finds."""
    rng = Random(7)
    async with started() as cluster:

        async def one() -> None:
            customer, product = rng.randrange(30), rng.randrange(3)
            match rng.randrange(5):
                case 0 | 1:
                    await cluster.call(cart, customer, add, product, rng.randrange(100))
                case 2:
                    await cluster.call(cart, customer, remove, product)
                case 3:
                    await cluster.call(shop, "a", every, "cart", "reprice", [product, rng.randrange(100)])
                case _:
                    await cluster.call(shop, f"{customer}", start, product, rng.randrange(100))

        for _ in range(10):
            await asyncio.gather(*(one() for _ in range(40)))
        for product in range(3):
            found = sorted(chain.from_iterable(await cluster.call(shop, "a", look, "holders", [product])))
            prices = [[c, await cluster.call(cart, c, price_of, product)] for c in range(30)]
            assert found == [each for each in prices if each[1] is not None]


@pytest.mark.parametrize(
    ("what", "kind", "told"),
    [
        ("of another", "OtherPartition", r"asked for rows of cart\[\d+\], which is not of this partition"),
        ("of no key", "BadKey", "has keys of type int"),
        ("foreign", "BadQuery", "belongs to operator 'yard'"),
        ("no index", "MissingIndex", r'declare Index\("across_seller", equal=\(\'seller\',\), scope="partition"\)'),
        ("entity's index", "BadQuery", "no partition-wide index 'cheapest'; it has: holding, dear"),
        ("no column", "BadQuery", "has no column 'colour'"),
        ("scan", "BadQuery", "no scan=; declare an index for it, such as Index"),
        ("forgotten", "ForgottenAwait", r"did not await ctx.rows\(items\).select"),
        ("missing", "NoSuchRow", r"row 1 of table cart/items of cart\[\d+\] does not exist"),
    ],
)
async def test_what_is_refused(what: str, kind: str, told: str) -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match=told) as caught:
            await cluster.call(shop, "a", every, "cart", "wrong", [what])
    assert caught.value.type == kind


async def test_a_query_over_a_partition_has_a_limit() -> None:
    async with started(limits=Limits(rows_per_query_max=3)) as cluster:
        for customer in range(30):
            await cluster.call(cart, customer, add, 1, 1)
        with pytest.raises(TransactionAborted, match=r"more than 3 rows of cart\*\[0\]"):
            await cluster.call(shop, "a", every, "cart", "wrong", ["too many"])


async def test_a_read_only_partition_function_writes_no_row() -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match=r"used ctx.rows\(…\).put, but is registered with read_only"):
            await cluster.call(shop, "a", look, "writes", [])


async def test_a_packed_app_has_the_index() -> None:
    unpacked = unpack_code(pack_code(app).payload)
    async with embedded_cluster(unpacked, n_slots=N_SLOTS) as cluster:
        await cluster.call("cart", 3, "add", 8, 1)
        assert list(chain.from_iterable(await cluster.call("shop", "a", "every", "cart", "holders", [8]))) == [[3, 1]]


def test_a_partition_wide_index_is_not_unique() -> None:
    with pytest.raises(ConfigurationError, match="unique=True is for the rows of one entity"):
        Operator("o").table(
            "t", Item, key="product", indexes=[Index("i", equal="price", unique=True, scope="partition")]
        )


def test_queries_of_an_entity_do_not_use_it() -> None:
    with pytest.raises(MissingIndex, match="no index serves"):
        _declared(Operator("o")).plan({"seller": "a"})
    assert _declared(Operator("o")).plan({"price": 3}).index.name == "cheapest"
    assert _declared(Operator("o")).across.plan({"price": 3}).index.name == "dear"
