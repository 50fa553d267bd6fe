"""The application as a whole: its settings, its graphs, and that many requests at once leave sums that agree."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from benchmarks.marketplace import events, settings
from benchmarks.marketplace.app import make_app
from benchmarks.marketplace.graphs import PUBLISHERS, graphs
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.cart.rows import checkouts, items
from benchmarks.marketplace.services.order.following import BEFORE
from benchmarks.marketplace.services.order.rows import order_history, order_items, orders
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller.dashboard import dashboard
from benchmarks.marketplace.services.seller.rows import order_entries, seller
from benchmarks.marketplace.services.shipment.rows import QUEUE, firsts, packages, shipments, waiting
from benchmarks.marketplace.services.stock.rows import stock_items
from styx import ConfigurationError, Event
from styx.testing import EmbeddedCluster
from tests.benchmarks.marketplace.shop import (
    CUSTOMERS,
    PRODUCTS,
    buy,
    counts_of,
    fill,
    item,
    marketplace,
    offer,
    order_of,
    replica_of,
    request,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("value", "choices", "expected"), [(None, ("a", "b"), "a"), ("", ("a", "b"), "a"), ("b", ("a", "b"), "b")]
)
def test_a_setting_is_one_of_its_choices(
    value: str | None, choices: tuple[str, ...], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv("MARKETPLACE_X", value)
    assert settings.chosen("MARKETPLACE_X", choices) == expected


@pytest.mark.parametrize("value", ["101", "-1", "nan", "much"])
def test_a_setting_that_cannot_be_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKETPLACE_X", value)
    with pytest.raises(ConfigurationError, match="MARKETPLACE_X is a or b"):
        settings.chosen("MARKETPLACE_X", ("a", "b"))
    with pytest.raises(ConfigurationError, match="MARKETPLACE_X is a number from 0 to 100"):
        settings.number("MARKETPLACE_X", 0, 0, 100)


@pytest.mark.parametrize("replication", list(Replication))
def test_every_event_with_one_publisher_is_in_the_graphs(replication: Replication) -> None:
    published = {(str(where), event.name) for graph in graphs(replication) for where, event in graph.published}
    expected = {(where, event.name) for where, those in PUBLISHERS.items() for event in those}
    if replication in (Replication.SELLER, Replication.OBJECT):
        expected.remove(("product.set_price", "price-updated"))  # a price update calls nobody, so it has no graph
    assert published == expected


def test_the_graph_of_a_checkout_leads_to_all_eight_services() -> None:
    (checkout,) = [graph for graph in graphs(Replication.TOGETHER) if graph.name == "checkout"]
    services = {str(function).split(".")[0] for function in checkout.functions()}
    assert services >= {"cart", "stock", "order", "payment", "shipment", "customer", "seller", "queue", "replica"}


def test_the_app_can_be_made_many_times() -> None:
    assert make_app(Replication.SELLER).name == make_app(Replication.EVENTUAL).name == "marketplace"


async def test_with_carts_repriced_a_customer_sees_the_price_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REPRICE", "carts")
    async with marketplace(n_slots=16) as cluster:
        await fill(cluster, 1, item(unit_price=10_00, quantity=2), item(2, 1))
        await fill(cluster, 2, item(version="v9"))
        await cluster.call("product", (1, 1), "set_price", 12_00, "v0")
        assert [row.unit_price for row in cluster.rows(items, 1)] == [12_00, item(2, 1).unit_price]
        assert cluster.rows(items, 2)[0].unit_price == item().unit_price  # it holds another version
        await order_of(cluster, 1)
        (row, _) = cluster.rows(order_items, 1)
        assert (row.total_items, row.total_incentive) == (2 * 12_00, 2 * 2_00)


class Mix:
    """Requests of all kinds by chance, many at once."""

    def __init__(self, cluster: EmbeddedCluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)

    async def run(self, rounds: int) -> None:
        for number in range(rounds):
            kinds = self.random.choices([self.checkout, self.delivery, self.price, self.replace], [6, 3, 2, 1], k=8)
            await asyncio.gather(*[kind(f"{number}-{place}") for place, kind in enumerate(kinds)])
        await self.cluster.advance(timedelta(0))

    async def checkout(self, name: str) -> None:
        customer = self.random.choice(CUSTOMERS)
        for key in self.random.sample(PRODUCTS, self.random.randint(1, 3)):
            found = self.cluster.entity(product, key)
            bought = item(*key, self.random.randint(1, 4), version=found.version, unit_price=found.price)
            await self.cluster.call("cart", customer, "add_item", bought)
        again: list[Coroutine[Any, Any, Any]] = [
            self.cluster.request("cart", customer, "checkout", request(customer, checkout_id=name)) for _ in range(2)
        ]
        await asyncio.gather(*again)

    async def delivery(self, name: str) -> None:
        await self.cluster.call("queue", 0, "update_delivery", name)

    async def price(self, name: str) -> None:
        key = self.random.choice(PRODUCTS)
        version = self.cluster.entity(product, key).version
        await self.cluster.call("product", key, "set_price", self.random.randint(1_00, 99_00), version)

    async def replace(self, name: str) -> None:
        await self.cluster.call("product", self.random.choice(PRODUCTS), "replace", offer(), name)


@pytest.mark.parametrize("replication", list(Replication))
async def test_many_requests_at_once_leave_sums_that_agree(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REJECTED", 25.0)
    async with marketplace(replication, n_slots=16, pieces=60) as cluster:
        await Mix(cluster, seed=7).run(12)
        await assert_stock_agrees(cluster)
        await assert_customers_agree(cluster)
        await assert_orders_agree(cluster)
        await assert_sellers_agree(cluster)
        for key in PRODUCTS:  # R1, and S#1
            source, copy = cluster.entity(product, key), replica_of(cluster, key)
            assert (copy.version, copy.active) == (source.version, source.active)
            assert copy.change in (0, source.change)
            assert cluster.rows(stock_items, key)[0].version == source.version


async def assert_stock_agrees(cluster: EmbeddedCluster) -> None:
    """S#3: pieces are there or were paid, and none stay reserved."""
    paid: Counter[tuple[int, int]] = Counter()
    for event in await cluster.events(events.payment_confirmed):
        for line in event.value.lines:
            paid[line.seller_id, line.product_id] += line.quantity
    for key in PRODUCTS:
        (row,) = cluster.rows(stock_items, key)
        assert (row.qty_available + paid[key], row.qty_reserved, row.ytd) == (60, 0, paid[key])


async def assert_customers_agree(cluster: EmbeddedCluster) -> None:
    """S#4: counts are those of the events. S#2: each submission has one order at most."""
    kinds: dict[str, Event[Any]] = {
        "success_payment_count": events.payment_confirmed,
        "failed_payment_count": events.payment_failed,
        "failed_reservation_count": events.reserve_stock_failed,
        "delivery_count": events.delivery_notification,
    }
    told = {
        column: Counter(
            event.value.customer_id if column == "delivery_count" else event.value.buyer.customer_id
            for event in await cluster.events(kind)
        )
        for column, kind in kinds.items()
    }
    for customer in CUSTOMERS:
        counts = counts_of(cluster, customer)
        assert [getattr(counts, column) for column in kinds] == [each[customer] for each in told.values()]
        submitted = [row.order_id for row in cluster.rows(checkouts, customer) if row.order_id]
        assert sorted(submitted) == [row.order_id for row in cluster.rows(orders, customer)]


async def assert_orders_agree(cluster: EmbeddedCluster) -> None:
    """ATOM and ORD: each order's lines, history and shipment are those of its status."""
    for customer in CUSTOMERS:
        numbers = [row.order_id for row in cluster.rows(orders, customer)]
        assert numbers == list(range(1, len(numbers) + 1))
        for row in cluster.rows(orders, customer):
            lines = [line for line in cluster.rows(order_items, customer) if line.order_id == row.order_id]
            assert row.total_items - row.total_incentive == sum(line.total_amount for line in lines)
            steps = [each.status for each in cluster.rows(order_history, customer) if each.order_id == row.order_id]
            assert steps[-1] == row.status
            assert all(BEFORE[after] == before for before, after in pairwise(steps))
            parcels = [each for each in cluster.rows(packages, customer) if each.order_id == row.order_id]
            assert len(parcels) == (0 if row.status == "PAYMENT_FAILED" else len(lines))
            if row.status == "DELIVERED":
                assert {each.status for each in parcels} == {"delivered"}
        shipped = {row.order_id for row in cluster.rows(shipments, customer)}
        assert shipped == {row.order_id for row in cluster.rows(orders, customer) if row.status != "PAYMENT_FAILED"}


async def assert_sellers_agree(cluster: EmbeddedCluster) -> None:
    """C.1: boards are the sums of entries, which are those of open orders. The queues have what is not delivered."""
    for number in (1, 2):
        found = await cluster.call(seller, number, dashboard)
        assert found.board.total_invoice == sum(entry.total_invoice for entry in found.entries)
        open_lines = [
            (customer, line.order_id, line.product_id)
            for customer in CUSTOMERS
            for line in cluster.rows(order_items, customer)
            if line.seller_id == number and _is_open(cluster, customer, line.order_id)
        ]
        rows = cluster.rows(order_entries, number)
        assert [(row.customer_id, row.order_id, row.product_id) for row in rows] == sorted(open_lines)
        queued = [row for row in cluster.rows(waiting, QUEUE) if row.seller_id == number]
        undelivered = {
            (customer, each.order_id)
            for customer in CUSTOMERS
            for each in cluster.rows(packages, customer)
            if each.seller_id == number and each.status == "shipped"
        }
        assert {(row.customer_id, row.order_id) for row in queued} == undelivered
        first = [row.order_id for row in cluster.rows(firsts, QUEUE) if row.seller_id == number]
        assert first == [row.order_id for row in queued[:1]]


def _is_open(cluster: EmbeddedCluster, customer: int, order_id: int) -> bool:
    (row,) = [row for row in cluster.rows(orders, customer) if row.order_id == order_id]
    return row.status not in ("DELIVERED", "PAYMENT_FAILED")


async def test_a_customer_who_is_there_cannot_be_registered_again() -> None:
    async with marketplace() as cluster:
        profile = dict.fromkeys(("first_name", "last_name", "address", "complement", "birth_date"), "x")
        rest = dict.fromkeys(("zip_code", "city", "state", "card_number", "card_security_number"), "x")
        card = dict.fromkeys(("card_expiration", "card_holder_name", "card_type"), "x")
        values = list((profile | rest | card).values())
        await cluster.call("customer", 50, "register", values)
        reply = await cluster.request("customer", 50, "register", values)
        assert reply.error is not None
        assert reply.error.type == "AlreadyThere"
        await buy(cluster, 50, item())
        assert counts_of(cluster, 50).success_payment_count == 1
        whole = ["x"] * 12
        await cluster.call("seller", 50, "register", whole)
        reply = await cluster.request("seller", 50, "register", whole)
        assert reply.error is not None
        assert reply.error.type == "AlreadyThere"
