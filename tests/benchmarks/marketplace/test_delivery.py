"""Update Delivery (A.6, S#6): which sellers are served, in which order, and who hears of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.marketplace import events
from benchmarks.marketplace.services.order.rows import order_history, orders
from benchmarks.marketplace.services.seller.rows import entry_details, order_entries
from benchmarks.marketplace.services.shipment.rows import QUEUE, firsts, packages, shipments, waiting
from tests.benchmarks.marketplace.shop import counts_of, item, marketplace, order_of, refused

pytestmark = pytest.mark.anyio


async def deliver(cluster: Any, tid: str = "t") -> list[tuple[int, int, int, int]]:
    """(seller, customer, order, packages) of what a call has delivered, in its order."""
    result = await cluster.call("queue", 0, "update_delivery", tid)
    return [
        (each["seller_id"], each["customer_id"], each["order_id"], each["packages"]) for each in result["delivered"]
    ]


async def test_a6_nothing_to_deliver_is_no_error() -> None:
    async with marketplace() as cluster:
        assert await deliver(cluster) == []


async def test_a6_a_call_delivers_a_sellers_oldest_order_and_only_that() -> None:
    async with marketplace(n_slots=16) as cluster:
        await order_of(cluster, 2, item(1, 1), item(1, 2))
        await cluster.advance(timedelta(seconds=1))
        await order_of(cluster, 1, item(1, 1))
        assert await deliver(cluster) == [(1, 2, 1, 2)]
        assert [row.status for row in cluster.rows(packages, 2)] == ["delivered", "delivered"]
        assert [row.status for row in cluster.rows(packages, 1)] == ["shipped"]
        assert await deliver(cluster) == [(1, 1, 1, 1)]
        assert await deliver(cluster) == []
        assert [cluster.rows(table, QUEUE) for table in (waiting, firsts)] == [[], []]


@pytest.mark.parametrize("n_slots", [1, 4, 64])
async def test_a6_ten_sellers_at_most_the_oldest_first(n_slots: int) -> None:
    async with marketplace(sellers=12, n_slots=n_slots) as cluster:
        sellers = [9, 3, 14, 5, 8, 4, 13, 7, 12, 6, 11, 10]
        for seller in sellers:
            await order_of(cluster, 1 + seller % 3, item(seller, 1))
            await cluster.advance(timedelta(seconds=1))
        assert [each[0] for each in await deliver(cluster)] == sellers[:10]
        assert [each[0] for each in await deliver(cluster)] == sellers[10:]


async def test_a6_sellers_are_served_not_shipments() -> None:
    async with marketplace(sellers=2) as cluster:
        for _ in range(12):
            await order_of(cluster, 1, item(1, 1))
            await cluster.call("stock", (1, 1), "restock", 1)
            await cluster.advance(timedelta(seconds=1))
        await order_of(cluster, 1, item(3, 1))
        assert await deliver(cluster) == [(1, 1, 1, 1), (3, 1, 13, 1)]


async def test_a6_the_order_is_that_of_numbers_not_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with marketplace(pieces=100) as cluster:
        await order_of(cluster, 5, item(2, 1))
        for _ in range(11):
            await order_of(cluster, 1, item(1, 1))
            await cluster.advance(timedelta(seconds=1))
        served = [each[2] for _ in range(11) for each in await deliver(cluster) if each[0] == 1]
        assert served == list(range(1, 12))


async def test_a6_one_order_of_two_sellers_ends_with_its_last_package() -> None:
    async with marketplace(n_slots=16) as cluster:
        await order_of(cluster, 1, item(1, 1))
        await cluster.advance(timedelta(seconds=1))
        await order_of(cluster, 2, item(1, 2), item(2, 1))
        # Seller 1 has an older order than the one that it shares with seller 2.
        assert await deliver(cluster) == [(1, 1, 1, 1), (2, 2, 1, 1)]
        (shipment,), (order,) = cluster.rows(shipments, 2), cluster.rows(orders, 2)
        assert (shipment.status, order.status) == ("delivery_in_progress", "IN_TRANSIT")
        assert order.delivered_customer_date is None
        assert len(cluster.rows(order_entries, 2)) == 1  # the order is open for seller 2 as well
        assert await deliver(cluster) == [(1, 2, 1, 1)]
        (shipment,), (order,) = cluster.rows(shipments, 2), cluster.rows(orders, 2)
        assert (shipment.status, order.status) == ("concluded", "DELIVERED")
        assert order.delivered_customer_date is not None
        for seller in (1, 2):  # both hear of the end
            assert [cluster.rows(table, seller) for table in (order_entries, entry_details)] == [[], []]
        assert counts_of(cluster, 2).delivery_count == 2


async def test_a6_both_sellers_of_an_order_may_be_served_by_one_call() -> None:
    async with marketplace(n_slots=16) as cluster:
        await order_of(cluster, 1, item(1, 1), item(2, 1))
        assert await deliver(cluster) == [(1, 1, 1, 1), (2, 1, 1, 1)]
        told = [event.value.status for event in await cluster.events(events.shipment_notification)]
        assert told == ["approved", "delivery_in_progress", "concluded"]
        assert [row.status for row in cluster.rows(orders, 1)] == ["DELIVERED"]


async def test_a6_it_is_one_transaction() -> None:
    async with marketplace(n_slots=16) as cluster:
        await order_of(cluster, 1, item(1, 1), item(2, 1))
        reply = await cluster.request("queue", 0, "update_delivery", "t")
        told = await cluster.events(events.delivery_notification)
        assert {(event.epoch, event.phase, event.tid) for event in told} == {(reply.epoch, reply.phase, reply.tid)}
        archived = await cluster.events(events.entries_archived)
        assert {event.tid for event in archived} == {reply.tid}


async def test_s6_calls_at_once_deliver_each_package_once() -> None:
    async with marketplace(sellers=8, n_slots=16) as cluster:
        for customer in (1, 2, 3):
            for seller in (1, 2, *range(3, 11)):
                await order_of(cluster, customer, item(seller, 1), item(1, 2))
        await asyncio.gather(*[cluster.submit("queue", 0, "update_delivery", f"t{n}") for n in range(12)])
        while await deliver(cluster):
            pass
        told = await cluster.events(events.delivery_notification)
        each = Counter((event.value.customer_id, event.value.order_id, event.value.package_id) for event in told)
        assert set(each.values()) == {1}
        assert len(each) == sum(len(cluster.rows(packages, customer)) for customer in (1, 2, 3))
        ended = [event.value for event in await cluster.events(events.shipment_notification)]
        concluded = Counter((event.customer_id, event.order_id) for event in ended if event.status == "concluded")
        assert set(concluded.values()) == {1}
        assert len(concluded) == 30
        for customer in (1, 2, 3):
            assert {row.status for row in cluster.rows(orders, customer)} == {"DELIVERED"}


async def test_ord_packages_come_before_the_end_of_their_shipment() -> None:
    async with marketplace(n_slots=16) as cluster:
        await order_of(cluster, 1, item(1, 1), item(1, 2))
        await deliver(cluster)
        packages_told = await cluster.events(events.delivery_notification)
        steps = await cluster.events(events.shipment_notification)
        assert max(event.id for event in packages_told) < min(event.id for event in steps if event.tid != steps[0].tid)


async def test_what_cannot_be_delivered_is_refused() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1))
        await refused(cluster, "LookupError", "shipment", 1, "deliver", 1, [2])
        await refused(cluster, "LookupError", "shipment", 1, "deliver", 1, [1, 2])
        await refused(cluster, "LookupError", "shipment", 1, "deliver", 9, [1])
        await deliver(cluster)
        await refused(cluster, "LookupError", "shipment", 1, "deliver", 1, [1])


async def test_an_order_takes_no_step_but_the_next() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1))
        message = await refused(cluster, "WrongStep", "order", 1, "follow_shipment", 1, ["concluded"])
        assert "is READY_FOR_SHIPMENT, and cannot become DELIVERED" in message
        await refused(cluster, "UnknownOrder", "order", 1, "follow_shipment", 7, ["concluded"])
        await refused(cluster, "UnknownOrder", "order", 1, "show", 7)


async def test_ord_times_rise_though_a_transaction_may_have_an_earlier_time_than_the_one_before_it() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1))
        (order,) = cluster.rows(orders, 1)
        order.updated_at += timedelta(hours=1)  # as if the steps before had been asked for later, and had come first
        await cluster.load_rows(orders, [(1, order)], replace=True)
        await deliver(cluster)
        steps = cluster.rows(order_history, 1)
        assert steps[-1].created_at == steps[-2].created_at == order.updated_at > steps[-3].created_at
