"""The data that is there from the start: as many rows as the specification has, and all services agree about them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from benchmarks.driver.loading import load
from benchmarks.marketplace.app import make_app
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods, orders
from benchmarks.marketplace.population.whole import initial
from benchmarks.marketplace.services.cart.replica import Replication
from styx.testing import EmbeddedCluster, embedded_cluster
from tests.benchmarks.marketplace.shop import item, order_of

pytestmark = pytest.mark.anyio

SETTINGS = Settings(size=0.002, products_per_seller=6, orders=3, undelivered=0.5)
APP = make_app(Replication.TOGETHER)
ROWS = {each.name: list(each.pairs) for each in initial(APP, SETTINGS)}


def of_order(table: str) -> dict[tuple[int, int], list[Any]]:
    """The table's rows by (customer, order)."""
    found = defaultdict(list)
    for customer, row in ROWS[table]:
        found[customer, row.order_id].append(row)
    return found


async def loaded(cluster: EmbeddedCluster) -> EmbeddedCluster:
    for loading in initial(APP, SETTINGS):
        await load(cluster, loading)
    return cluster


def test_the_sizes_that_are_told_are_those_that_come() -> None:
    for loading in initial(APP, SETTINGS):
        assert loading.size == len(ROWS[loading.name]), loading.name


def test_there_are_as_many_as_the_size_factor_says() -> None:
    assert {len(ROWS[name]) for name in ("product", "replica", "stock_items", "customer", "counts")} == {20}
    assert len(ROWS["seller"]) == 4
    assert len(ROWS["orders"]) == len(ROWS["payments"]) == len(ROWS["shipments"]) == 60
    ids = defaultdict(list)
    for customer, order in ROWS["orders"]:
        ids[customer].append(order.order_id)
    assert [*ids.values()] == [[1, 2, 3]] * 20


def test_products_stock_and_copies_agree() -> None:
    copies, stock = dict(ROWS["replica"]), dict(ROWS["stock_items"])
    for key, product in ROWS["product"]:
        assert (copies[key].price, copies[key].version) == (product.price, product.version)
        assert (stock[key].version, stock[key].qty_available) == (product.version, SETTINGS.pieces)
        assert goods.PRICES[0] <= product.price <= goods.PRICES[1]


def test_an_order_is_the_same_in_all_services() -> None:
    lines, packages, history = of_order("order_items"), of_order("packages"), of_order("order_history")
    payments, cards, shipments = of_order("payments"), of_order("cards"), of_order("shipments")
    for customer, order in ROWS["orders"]:
        key = customer, order.order_id
        assert order.count_items == len(lines[key]) == len(packages[key])
        assert order.total_items == sum(line.unit_price * line.quantity for line in lines[key])
        assert order.total_invoice == order.total_amount + order.total_freight
        assert payments[key][0].value == order.total_invoice
        assert bool(cards[key]) == (payments[key][0].type != "BOLETO")
        assert order.status == history[key][-1].status
        assert order.updated_at == history[key][-1].created_at
        assert shipments[key][0].total_freight_value == order.total_freight
        done = order.status == "DELIVERED"
        assert shipments[key][0].status == ("concluded" if done else "approved")
        assert {package.status for package in packages[key]} == {"delivered" if done else "shipped"}


def test_numbers_of_the_history_are_unique_and_rise() -> None:
    numbers = defaultdict(list)
    for customer, row in ROWS["order_history"]:
        numbers[customer].append((row.order_id, row.seq))
    for each in numbers.values():
        assert sorted(each) == sorted(each, key=lambda pair: pair[1])
        assert len({seq for _, seq in each}) == len(each)


def test_the_last_orders_wait_and_their_sellers_know() -> None:
    open_ones = {
        (customer, order.order_id) for customer, order in ROWS["orders"] if order.status == "READY_FOR_SHIPMENT"
    }
    assert len(open_ones) == 30
    lines = {(line.seller_id, *key, line.product_id) for key in open_ones for line in of_order("order_items")[key]}
    entries = {(key, row.customer_id, row.order_id, row.product_id) for key, row in ROWS["order_entries"]}
    assert entries == lines
    assert {(key, row.customer_id, row.order_id) for key, row in ROWS["entry_details"]} == {each[:3] for each in lines}
    waiting = {(row.seller_id, row.customer_id, row.order_id): row.packages for _, row in ROWS["waiting"]}
    assert waiting == Counter(each[:3] for each in lines)
    oldest = {
        seller: min(
            (row.shipping_date, row.customer_id, row.order_id) for _, row in ROWS["waiting"] if row.seller_id == seller
        )
        for seller in {row.seller_id for _, row in ROWS["waiting"]}
    }
    firsts = {row.seller_id: (row.shipping_date, row.customer_id, row.order_id) for _, row in ROWS["firsts"]}
    assert firsts == oldest


def test_counts_are_of_orders_and_packages() -> None:
    delivered = Counter(customer for customer, row in ROWS["packages"] if row.status == "delivered")
    for customer, row in ROWS["counts"]:
        assert (row.success_payment_count, row.delivery_count) == (3, delivered[customer])


def test_another_seed_makes_other_data_and_the_same_one_the_same() -> None:
    again = {each.name: list(each.pairs) for each in initial(APP, SETTINGS)}
    assert again == ROWS
    other = Settings(size=0.002, products_per_seller=6, orders=3, undelivered=0.5, data_seed=2)
    assert [*goods.products(other)] != ROWS["product"]


def test_without_orders_there_are_none() -> None:
    names = [each.name for each in initial(APP, Settings(size=0.002, orders=0))]
    assert names == ["product", "replica", "stock_items", "customer", "counts", "seller"]


async def test_deliveries_and_dashboards_have_something_from_the_first_moment() -> None:
    async with embedded_cluster(APP) as cluster:
        await loaded(cluster)
        shown = await cluster.call("seller", 1, "dashboard")
        entries = [row for key, row in ROWS["order_entries"] if key == 1]
        assert shown["board"]["count_lines"] == len(shown["entries"]) == len(entries) > 5
        assert shown["board"]["total_invoice"] == sum(row.total_invoice for row in entries)
        told = await cluster.call("queue", 0, "update_delivery", "first")
        first = {row.seller_id: (row.customer_id, row.order_id) for _, row in ROWS["firsts"]}
        delivered = {each["seller_id"]: (each["customer_id"], each["order_id"]) for each in told["delivered"]}
        assert delivered == first, "there are fewer than ten sellers"


async def test_orders_go_on_behind_those_that_were_there() -> None:
    async with embedded_cluster(APP) as cluster:
        await loaded(cluster)
        price = goods.prices(SETTINGS)[0]
        bought = item(1, 1, unit_price=price, version=goods.FIRST_VERSION)
        assert await order_of(cluster, 2, bought) == 4
        history = (await cluster.call("order", 2, "show", 4))["history"]
        assert [row[3] for row in history] == sorted({row[3] for row in history})
        while (await cluster.call("queue", 0, "update_delivery", "all"))["delivered"]:
            pass
        assert (await cluster.call("seller", 1, "dashboard"))["board"]["count_lines"] == 0
        counted = await cluster.call("customer", 2, "show")
        assert counted["delivery_count" if isinstance(counted, dict) else 3] == 1 + sum(
            len(each.lines) for each in orders.preloaded(SETTINGS) if each.customer_id == 2
        )
