"""What has ended is archived, exactly once, with the transaction that ends it (LOG-a to LOG-d, MONEY)."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.marketplace import charging, events, settings
from benchmarks.marketplace.services.order.rows import order_history, order_items, orders
from benchmarks.marketplace.services.payment.rows import cards, payments
from benchmarks.marketplace.services.shipment.rows import packages, shipments
from tests.benchmarks.marketplace.shop import buy, item, marketplace, order_of

pytestmark = pytest.mark.anyio


async def values(cluster: Any, event: Any) -> list[Any]:
    return [found.value for found in await cluster.events(event)]


async def test_log_nothing_that_is_open_is_archived_but_its_payment() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1))
        for event in (events.order_archived, events.entries_archived, events.shipment_archived):
            assert await cluster.events(event) == []
        assert len(await cluster.events(events.payment_archived)) == 1


async def test_log_a_to_d_of_a_delivered_order() -> None:
    async with marketplace(n_slots=16) as cluster:
        await order_of(cluster, 1, item(1, 1, voucher=5), item(2, 1), item(2, 2))
        await cluster.call("queue", 0, "update_delivery", "t")
        (order,) = await values(cluster, events.order_archived)
        assert order.order == cluster.rows(orders, 1)[0]
        assert order.items == cluster.rows(order_items, 1)
        assert order.history == cluster.rows(order_history, 1)
        assert [row.status for row in order.history][-1] == "DELIVERED"
        entries = await values(cluster, events.entries_archived)
        assert sorted((each.seller_id, len(each.entries)) for each in entries) == [(1, 1), (2, 2)]
        assert {entry.order_status for each in entries for entry in each.entries} == {"DELIVERED"}
        assert all(entry.delivery_date is not None for each in entries for entry in each.entries)
        assert {each.details.customer_id for each in entries} == {1}
        (shipment,) = await values(cluster, events.shipment_archived)
        assert shipment.shipment == cluster.rows(shipments, 1)[0]
        assert shipment.packages == cluster.rows(packages, 1)
        assert {row.status for row in shipment.packages} == {"delivered"}
        (payment,) = await values(cluster, events.payment_archived)
        assert (payment.payments, payment.cards) == (cluster.rows(payments, 1), cluster.rows(cards, 1))


async def test_log_a_b_and_d_of_an_order_that_is_not_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charging, "decide", lambda number: charging.Answer.REJECTED)
    async with marketplace() as cluster:
        await buy(cluster, 1, item(1, 1), item(2, 1))
        (order,) = await values(cluster, events.order_archived)
        assert order.order.status == "PAYMENT_FAILED"
        assert len(await values(cluster, events.entries_archived)) == 2
        (payment,) = await values(cluster, events.payment_archived)
        assert [row.status for row in payment.payments] == ["requires_payment_method"]
        assert await values(cluster, events.shipment_archived) == []


async def test_log_archives_survive_a_crash_and_are_not_doubled(tmp_path: Any) -> None:
    async with marketplace(data_dir=tmp_path) as cluster:
        await order_of(cluster, 1, item(1, 1))
        await cluster.call("queue", 0, "update_delivery", "t")
        await cluster.crash_and_recover()
        for event in (
            events.order_archived,
            events.entries_archived,
            events.shipment_archived,
            events.payment_archived,
        ):
            assert len(await cluster.events(event)) == 1


async def test_log_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ARCHIVE", False)
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1))
        await cluster.call("queue", 0, "update_delivery", "t")
        assert await cluster.events(events.order_archived) == []
        assert await cluster.events(events.payment_archived) == []


async def test_money_open_archived_and_failed_entries_are_all_that_was_invoiced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "REJECTED", 40.0)
    async with marketplace(pieces=1000, n_slots=16) as cluster:
        for number in range(30):
            lines = [item(1, 1, 1 + number % 3, voucher=number * 10), item(2, 1 + number % 2, 2)]
            await buy(cluster, 1 + number % 5, *lines)
            if number % 4 == 0:
                await cluster.call("queue", 0, "update_delivery", "t")
        invoiced = sum(
            line.total_amount + line.freight_value
            for event in await values(cluster, events.invoice_issued)
            for line in event.invoice.lines
        )
        ended = sum(
            entry.total_invoice for event in await values(cluster, events.entries_archived) for entry in event.entries
        )
        boards = [await cluster.call("seller", number, "dashboard") for number in (1, 2)]
        assert ended + sum(each["board"]["total_invoice"] for each in boards) == invoiced
        statuses = {row.status for customer in range(1, 6) for row in cluster.rows(orders, customer)}
        assert {"PAYMENT_FAILED", "DELIVERED", "READY_FOR_SHIPMENT"} <= statuses
