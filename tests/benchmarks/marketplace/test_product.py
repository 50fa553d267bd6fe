"""Prices, replacements and deletions of products, and how stock and copies follow them (A.4, A.5, S#1, S#5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from benchmarks.marketplace import events
from benchmarks.marketplace.answers import CheckoutOutcome
from benchmarks.marketplace.events import ProductChanged
from benchmarks.marketplace.services.cart.replica import Replica, Replication
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.stock.rows import StockItem, demand, stock_items
from tests.benchmarks.marketplace.shop import (
    THEN,
    buy,
    fill,
    item,
    marketplace,
    offer,
    order_of,
    price_of,
    refused,
    replica_of,
    request,
    stock_of,
)

pytestmark = pytest.mark.anyio
ALL = list(Replication)


@pytest.mark.parametrize("replication", ALL)
async def test_a4_a_price_reaches_the_copy(replication: Replication) -> None:
    async with marketplace(replication, n_slots=16) as cluster:
        result = await cluster.call("product", (1, 1), "set_price", 9_00, "v0")
        assert (result["outcome"], result["price"], result["change"]) == ("UPDATED", 9_00, 1)
        await cluster.advance(timedelta(0))
        assert replica_of(cluster) == Replica(9_00, "v0", True, 1)
        assert cluster.entity(product, (1, 1)).price == 9_00
        (told,) = await cluster.events(events.price_updated)
        assert (told.value.price, told.key) == (9_00, (1, 1))


async def test_a4_a_stale_version_changes_nothing_and_tells_nobody() -> None:
    async with marketplace() as cluster:
        before = cluster.entity(product, (1, 1))
        result = await cluster.call("product", (1, 1), "set_price", 9_00, "v9")
        assert (result["outcome"], result["version"], result["price"]) == ("STALE", "v0", price_of((1, 1)))
        assert cluster.entity(product, (1, 1)) == before
        assert await cluster.events(events.price_updated) == []
        assert await cluster.events(events.product_changed) == []


async def test_a4_a_replacement_makes_the_former_version_stale() -> None:
    async with marketplace() as cluster:
        await cluster.call("product", (1, 1), "replace", offer(), "t7")
        assert (await cluster.call("product", (1, 1), "set_price", 1, "v0"))["outcome"] == "STALE"
        assert (await cluster.call("product", (1, 1), "set_price", 1, "t7"))["outcome"] == "UPDATED"


async def test_a5_a_replacement_has_its_version_everywhere_and_keeps_the_pieces() -> None:
    async with marketplace(n_slots=16) as cluster:
        await fill(cluster, 1, item(quantity=2))
        reply = await cluster.request("product", (1, 1), "replace", offer(), "t7")
        assert cluster.entity(product, (1, 1)).version == "t7"
        (row,) = cluster.rows(stock_items, (1, 1))
        assert (row.version, row.qty_available, row.active) == ("t7", 10, True)
        assert replica_of(cluster) == Replica(50_00, "t7", True, 1)
        (told,) = await cluster.events(events.product_updated)
        assert (told.epoch, told.phase, told.tid) == (reply.epoch, reply.phase, reply.tid)
        result = await buy(cluster, 1)
        assert result["outcome"] == CheckoutOutcome.NOT_ACCEPTED  # the cart has the former product
        await order_of(cluster, 1, item(version="t7", unit_price=50_00))


async def test_a5_a_deleted_product_is_sold_no_more() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item())
        await cluster.call("product", (1, 1), "delete")
        assert (await buy(cluster, 1))["outcome"] == CheckoutOutcome.NOT_ACCEPTED
        assert [cluster.rows(stock_items, (1, 1))[0].active, replica_of(cluster).active] == [False, False]
        for function, arguments in [("delete", ()), ("set_price", (1, "v0"))]:
            assert "does not offer" in await refused(cluster, "UnknownProduct", "product", (1, 1), function, *arguments)
        await cluster.call("product", (1, 1), "replace", offer(), "t8")  # it is offered again
        await order_of(cluster, 1, item(version="t8"))


async def test_a5_a_repeated_replacement_changes_nothing() -> None:
    async with marketplace() as cluster:
        first = await cluster.call("product", (1, 1), "replace", offer(), "t7")
        assert await cluster.call("product", (1, 1), "replace", offer(), "t7") == first
        assert len(await cluster.events(events.product_updated)) == 1
        message = await refused(cluster, "VersionTaken", "product", (1, 1), "replace", offer(name="rum"), "t7")
        assert "'t7'" in message


async def test_a5_a_replacement_of_nothing_is_a_new_product() -> None:
    async with marketplace() as cluster:
        await cluster.call("product", (8, 1), "replace", offer(), "t1")
        assert replica_of(cluster, (8, 1)) == Replica(50_00, "t1", True, 1)
        stock = StockItem(8, 1, 3, 0, 0, 0, "", "t1", True, THEN, THEN)
        await cluster.load_rows(stock_items, [((8, 1), stock)])
        await order_of(cluster, 1, item(8, 1, 3, version="t1"))


async def test_s1_stock_refers_to_its_product() -> None:
    async with marketplace() as cluster:
        orphan = StockItem(9, 9, 3, 0, 0, 0, "", "v0", True, THEN, THEN)
        with pytest.raises(Exception, match="ReferenceViolation"):
            await cluster.load_rows(stock_items, [((9, 9), orphan)])


async def test_s1_a_purged_product_takes_its_stock_along() -> None:
    async with marketplace(n_slots=16) as cluster:
        await order_of(cluster, 1, item(quantity=3))
        assert "no deleted product" in await refused(cluster, "UnknownProduct", "product", (1, 1), "purge")
        await cluster.call("product", (1, 1), "delete")
        await cluster.call("product", (1, 1), "purge")
        assert cluster.entity(product, (1, 1)) is None
        assert cluster.rows(stock_items, (1, 1)) == []
        assert cluster.rows(demand, (1, 1)) == []
        await cluster.call("product", (1, 1), "replace", offer(), "t9")  # and its copy still knows what is later
        assert replica_of(cluster).version == "t9"


async def test_s1_a_product_with_reserved_pieces_cannot_be_purged() -> None:
    async with marketplace() as cluster:
        reserved = StockItem(1, 1, 10, 2, 0, 0, "", "v0", True, THEN, THEN)
        await cluster.load_rows(stock_items, [((1, 1), reserved)], replace=True)
        await cluster.call("product", (1, 1), "delete")
        await refused(cluster, "StillReserved", "product", (1, 1), "purge")
        assert cluster.entity(product, (1, 1)) is not None


async def test_s3_more_cannot_be_reserved_than_there_is() -> None:
    async with marketplace() as cluster:
        wrong = StockItem(1, 1, 1, 2, 0, 0, "", "v0", True, THEN, THEN)
        with pytest.raises(Exception, match="reserved_is_available"):
            await cluster.load_rows(stock_items, [((1, 1), wrong)], replace=True)
        await refused(cluster, "UnsupportedValue", "stock", (1, 1), "confirm", 11)
        await refused(cluster, "UnsupportedValue", "stock", (1, 1), "release", 1)
        assert stock_of(cluster) == (10, 0)


async def test_pieces_come() -> None:
    async with marketplace() as cluster:
        await cluster.call("stock", (1, 1), "restock", 5)
        assert stock_of(cluster) == (15, 0)
        (told,) = await cluster.events(events.stock_increased)
        assert (told.value.quantity, told.value.qty_available) == (5, 15)
        await refused(cluster, "UnknownStock", "stock", (9, 9), "restock", 5)
        reply = await cluster.request("stock", (1, 1), "restock", 0)
        assert reply.error is not None


def changed(change: int, price: int) -> ProductChanged:
    return ProductChanged(1, 1, price, "v0", True, change)


@pytest.mark.parametrize("replication", ALL)
async def test_r2_a_change_that_comes_late_does_not_undo_a_later_one(replication: Replication) -> None:
    async with marketplace(replication) as cluster:
        await cluster.call("replica", (1, 1), "follow", changed(2, 7_00))
        await cluster.call("replica", (1, 1), "follow", changed(1, 9_00))
        assert replica_of(cluster) == Replica(7_00, "v0", True, 2)


@pytest.mark.parametrize("replication", ALL)
async def test_r1_copies_are_those_of_the_products_in_the_end(replication: Replication) -> None:
    async with marketplace(replication, n_slots=16) as cluster:
        for number in range(1, 6):
            for key in [(1, 1), (1, 2), (2, 1)]:
                await cluster.submit("product", key, "set_price", number, "v0")
            await cluster.call("product", (2, 2), "replace", offer(number), f"t{number}")
        await cluster.advance(timedelta(0))
        for key in [(1, 1), (1, 2), (2, 1), (2, 2)]:
            source, copy = cluster.entity(product, key), replica_of(cluster, key)
            assert (copy.price, copy.version, copy.change) == (source.price, source.version, source.change)


async def seen(cluster: Any, customer: int, keys: list[tuple[int, int]]) -> list[int]:
    """The prices at which a checkout buys these products, which say the number of the change."""
    await fill(cluster, customer, *[item(*key, unit_price=1) for key in keys])
    await cluster.call("cart", customer, "checkout", request(customer))
    reserved = await cluster.events(events.stock_confirmed)
    return [each.unit_price for each in reserved[-1].value.items]


@pytest.mark.parametrize("replication", [Replication.TOGETHER, Replication.SELLER])
async def test_r3_a_checkout_sees_a_beginning_of_a_sellers_changes(replication: Replication) -> None:
    async with marketplace(replication, n_slots=16, pieces=100) as cluster:
        for number in range(2, 12):
            await cluster.call("product", (1, 1), "set_price", number, "v0")
            await cluster.call("product", (1, 2), "set_price", number, "v0")
            first, second = await seen(cluster, 1, [(1, 1), (1, 2)])
            first, second = (1 if price > 100 else price for price in (first, second))
            assert first - 1 <= second <= first
