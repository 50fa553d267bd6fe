"""A checkout, from the cart to the sellers' entries, by the steps 1 to 9 of the specification and its rulings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from benchmarks.marketplace import charging, events, settings
from benchmarks.marketplace.answers import CheckoutOutcome
from benchmarks.marketplace.services.cart.rows import Cart, CartStatus, cart, items
from benchmarks.marketplace.services.order.rows import order_history, order_items, orders
from benchmarks.marketplace.services.payment.rows import cards, payments
from benchmarks.marketplace.services.seller.rows import entry_details, order_entries
from benchmarks.marketplace.services.shipment.rows import packages, shipments
from benchmarks.marketplace.values import OrderStatus, PaymentType
from tests.benchmarks.marketplace.shop import (
    FREIGHT,
    THEN,
    buy,
    counts_of,
    fill,
    item,
    marketplace,
    order_of,
    price_of,
    refused,
    request,
    stock_of,
)

pytestmark = pytest.mark.anyio


async def test_a_paid_checkout_leaves_its_rows_in_all_services() -> None:
    async with marketplace(n_slots=16) as cluster:
        number = await order_of(cluster, 1, item(1, 1, 2), item(2, 1, 3))
        (order,) = cluster.rows(orders, 1)
        total = 2 * price_of((1, 1)) + 3 * price_of((2, 1))
        assert (number, order.status, order.total_items) == (1, OrderStatus.READY_FOR_SHIPMENT, total)
        assert order.total_freight == 2 * FREIGHT
        assert order.total_invoice == order.total_amount + order.total_freight == total + 2 * FREIGHT
        assert [line.quantity for line in cluster.rows(order_items, 1)] == [2, 3]
        assert [row.value for row in cluster.rows(payments, 1)] == [order.total_invoice]
        assert [row.card_number for row in cluster.rows(cards, 1)] == ["4111"]
        (shipment,) = cluster.rows(shipments, 1)
        assert (shipment.package_count, shipment.total_freight_value) == (2, 2 * FREIGHT)
        assert [(row.package_id, row.seller_id) for row in cluster.rows(packages, 1)] == [(1, 1), (2, 2)]
        assert [stock_of(cluster, key) for key in [(1, 1), (2, 1)]] == [(8, 0), (7, 0)]
        assert counts_of(cluster, 1).success_payment_count == 1
        for seller in (1, 2):
            (entry,) = cluster.rows(order_entries, seller)
            assert (entry.order_status, entry.package_id) == (OrderStatus.READY_FOR_SHIPMENT, seller)
            assert entry.total_invoice == entry.total_amount + FREIGHT
            assert len(cluster.rows(entry_details, seller)) == 1
        history = [row.status for row in cluster.rows(order_history, 1)]
        assert history == ["INVOICED", "PAYMENT_PROCESSED", "READY_FOR_SHIPMENT"]
        (mark,) = await cluster.events(events.transaction_mark)
        assert (mark.value.status, mark.value.actor_id) == ("SUCCESS", 1)


async def test_with_payment_together_all_eight_services_are_in_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "PAYMENT", "together")
    async with marketplace(n_slots=16) as cluster:
        await fill(cluster, 1, item())
        reply = await cluster.request("cart", 1, "checkout", request(1))
        assert reply.error is None
        places = {
            (event.epoch, event.phase, event.tid)
            for kind in (events.reserve_stock, events.payment_confirmed, events.shipment_notification)
            for event in await cluster.events(kind)
        }
        assert places == {(reply.epoch, reply.phase, reply.tid)}


async def test_pieces_are_reserved_until_an_order_is_paid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def decide(invoice_number: str) -> charging.Answer:
        seen.append(invoice_number)
        return charging.Answer.APPROVED

    monkeypatch.setattr(charging, "decide", decide)
    async with marketplace() as cluster:
        await fill(cluster, 1, item(quantity=4))
        reply = await cluster.request("cart", 1, "checkout", request(1))
        assert reply.result["order_id"] == 1
        reserved = await cluster.events(events.stock_confirmed)
        paid = await cluster.events(events.payment_confirmed)
        assert (reserved[0].epoch, reserved[0].phase) < (paid[0].epoch, paid[0].phase)
        assert stock_of(cluster) == (6, 0)
        assert {number.rsplit("-", 1)[1] for number in seen} == {"1"}


async def test_a3_1_the_same_product_again_replaces_what_is_in_the_cart() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item(quantity=2, voucher=50), item(quantity=3, unit_price=9_00))
        (row,) = cluster.rows(items, 1)
        assert (row.quantity, row.voucher, row.added_price) == (3, 0, 9_00)


@pytest.mark.parametrize("values", [{"quantity": 0}, {"quantity": -1}, {"voucher": -1}, {"unit_price": -1}])
async def test_a3_1_an_item_that_cannot_be_is_refused(values: dict[str, int]) -> None:
    async with marketplace() as cluster:
        reply = await cluster.request("cart", 1, "add_item", _plain(**values))
        assert reply.error is not None
        assert "BadArguments" in (reply.error.type, reply.error.code) or reply.error.code == "bad_arguments"
        assert cluster.rows(items, 1) == []


def _plain(**values: Any) -> dict[str, Any]:
    whole = item()
    return {name: getattr(whole, name) for name in whole.__struct_fields__} | values


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("add_item", (item(),)),
        ("update_item", (1, 1, 2)),
        ("remove_item", (1, 1)),
        ("seal", ()),
        ("checkout", (request(1),)),
    ],
)
async def test_a3_1_a_cart_that_is_being_checked_out_is_closed(function: str, arguments: tuple[Any, ...]) -> None:
    async with marketplace() as cluster:
        await cluster.load(cart, [(1, Cart(CartStatus.CHECKOUT_SENT, THEN, THEN))])
        assert "is being checked out" in await refused(cluster, "CartClosed", "cart", 1, function, *arguments)


async def test_a3_1_items_are_changed_and_taken_out() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item(1, 1), item(2, 1))
        await cluster.call("cart", 1, "update_item", 1, 1, 5)
        await cluster.call("cart", 1, "update_item", 1, 1, None, 7)
        await cluster.call("cart", 1, "remove_item", 2, 1)
        found = await cluster.call("cart", 1, "contents")
        assert [(row["quantity"], row["voucher"]) for row in _rows(found)] == [(5, 7)]
        assert "no product 2 of seller 1" in await refused(cluster, "NotInCart", "cart", 1, "update_item", 1, 2, 5)
        await refused(cluster, "NotInCart", "cart", 1, "remove_item", 2, 1)


def _rows(contents: Any) -> list[dict[str, Any]]:
    names = ("seller_id", "product_id", "product_name", "unit_price", "freight_value", "quantity", "voucher")
    return [dict(zip(names, row, strict=False)) for row in contents["items"]]


async def test_a3_2_what_cannot_be_submitted() -> None:
    async with marketplace() as cluster:
        await refused(cluster, "EmptyCart", "cart", 1, "checkout", request(1))
        await fill(cluster, 1, item())
        assert "customer 2" in await refused(cluster, "WrongCustomer", "cart", 1, "checkout", request(2))
        await fill(cluster, 77, item())
        await refused(cluster, "UnknownCustomer", "cart", 77, "checkout", request(77))
        assert len(cluster.rows(items, 77)) == 1
        assert stock_of(cluster) == (10, 0)


async def test_a3_3_a_new_price_of_the_same_version_is_paid() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item(unit_price=11_00))
        await cluster.call("product", (1, 1), "set_price", 8_00, "v0")
        await cluster.call("cart", 1, "checkout", request(1))
        assert cluster.rows(order_items, 1)[0].unit_price == 8_00


async def test_a3_3_a_price_of_another_version_is_not_matched_and_the_line_is_unavailable() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item())
        await cluster.call("product", (1, 1), "replace", _offer(70_00), "v1")
        result = await cluster.call("cart", 1, "checkout", request(1))
        assert result["outcome"] == CheckoutOutcome.NOT_ACCEPTED
        assert [(line["status"], line["unit_price"]) for line in result["refused"]] == [("UNAVAILABLE", 11_00)]


def _offer(price: int) -> dict[str, Any]:
    return {"name": "x", "sku": "", "category": "", "description": "", "price": price, "freight_value": 0}


async def test_a3_4_a_checkout_empties_the_cart_and_a_new_session_may_begin() -> None:
    async with marketplace() as cluster:
        await buy(cluster, 1, item())
        assert cluster.rows(items, 1) == []
        assert (await cluster.call("cart", 1, "contents"))["status"] == "OPEN"
        assert await order_of(cluster, 1, item()) == 2


async def test_a3_5_lines_that_cannot_be_reserved_are_left_out() -> None:
    async with marketplace() as cluster:
        await cluster.call("product", (2, 2), "delete")
        lines = [item(1, 1, 10), item(1, 2, 11), item(2, 1, version="v9"), item(2, 2), item(9, 9)]
        result = await buy(cluster, 1, *lines)
        assert [(line["seller_id"], line["product_id"], line["status"]) for line in result["refused"]] == [
            (1, 2, "OUT_OF_STOCK"),
            (2, 1, "UNAVAILABLE"),
            (2, 2, "UNAVAILABLE"),
            (9, 9, "UNAVAILABLE"),
        ]
        assert [line.product_id for line in cluster.rows(order_items, 1)] == [1]
        assert [stock_of(cluster, key) for key in [(1, 1), (1, 2), (2, 1), (2, 2)]] == [(0, 0), *[(10, 0)] * 3]


async def test_a3_6_a_voucher_is_for_a_line_and_pays_no_freight() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1, 2, voucher=5_00), item(1, 2, 1, voucher=1_000_00))
        (order,) = cluster.rows(orders, 1)
        capped = 5_00 + price_of((1, 2))
        assert (order.total_incentive, order.total_amount) == (capped, 2 * price_of((1, 1)) - 5_00)
        assert order.total_invoice == order.total_amount + 2 * FREIGHT
        assert (order.count_items, order.total_items) == (2, order.total_amount + order.total_incentive)


async def test_a3_7_an_invoice_is_numbered_by_customer_day_and_order() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 3, item())
        await order_of(cluster, 3, item())
        rows = cluster.rows(orders, 3)
        assert [row.invoice_number for row in rows] == [f"3-{row.purchase_date:%Y%m%d}-{row.order_id}" for row in rows]


@pytest.mark.parametrize(("kind", "parts"), [("CREDIT_CARD", 3), ("DEBIT_CARD", 3), ("BOLETO", 1)])
async def test_a3_8_lines_of_a_payment_add_up(kind: str, parts: int) -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1, 1, voucher=2_00), item(2, 1), payment_type=PaymentType(kind))
        (order,), rows = cluster.rows(orders, 1), cluster.rows(payments, 1)
        assert [(row.type, row.installments) for row in rows] == [(kind, parts), ("VOUCHER", 1)]
        assert sum(row.value for row in rows if row.type != "VOUCHER") == order.total_invoice
        assert sum(row.value for row in rows if row.type == "VOUCHER") == order.total_incentive == 2_00
        assert len(cluster.rows(cards, 1)) == (0 if kind == "BOLETO" else 1)


@pytest.mark.parametrize("answer", [charging.Answer.REJECTED, charging.Answer.UNREACHABLE])
async def test_a3_9_and_a7_7_a_failed_payment_releases_the_pieces(
    answer: charging.Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charging, "decide", lambda invoice_number: answer)
    async with marketplace() as cluster:
        await buy(cluster, 1, item(1, 1, 2, voucher=1_00), item(2, 1))
        assert [row.status for row in cluster.rows(orders, 1)] == [OrderStatus.PAYMENT_FAILED]
        assert [stock_of(cluster, key) for key in [(1, 1), (2, 1)]] == [(10, 0), (10, 0)]
        assert cluster.rows(shipments, 1) == []
        assert [cluster.rows(order_entries, seller) for seller in (1, 2)] == [[], []]
        assert counts_of(cluster, 1).failed_payment_count == 1
        (row,) = cluster.rows(payments, 1)  # logged, too, without its vouchers
        assert row.status != "succeeded"
        (mark,) = await cluster.events(events.transaction_mark)
        assert mark.value.status == "ABORT"


async def test_a3_9_a_paid_order_counts_in_its_stock() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(quantity=4))
        row = await cluster.call("stock", (1, 1), "show")
        assert (row[2], row[3], row[4], row[5]) == (6, 0, 1, 4)


async def test_a7_3_a_price_that_rose_and_fell_leaves_no_discount() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item(quantity=3, unit_price=10_00))
        for price in (12_00, 9_00):
            await cluster.call("product", (1, 1), "set_price", price, "v0")
        await cluster.call("cart", 1, "checkout", request(1))
        (order,) = cluster.rows(orders, 1)
        assert (order.total_incentive, order.total_amount) == (0, 3 * 9_00)


async def test_a7_3_nobody_pays_more_than_what_was_seen() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item(quantity=3, unit_price=10_00, voucher=50))
        await cluster.call("product", (1, 1), "set_price", 12_00, "v0")
        await cluster.call("cart", 1, "checkout", request(1))
        (order,) = cluster.rows(orders, 1)
        assert (order.total_items, order.total_incentive) == (3 * 12_00, 3 * 2_00 + 50)


async def test_a7_5_what_was_refused_travels_with_what_was_reserved() -> None:
    async with marketplace() as cluster:
        await buy(cluster, 1, item(1, 1), item(1, 2, 99))
        (confirmed,) = await cluster.events(events.stock_confirmed)
        assert [each.product_id for each in confirmed.value.items] == [1]
        assert [(each.product_id, each.qty_available) for each in confirmed.value.refused] == [(2, 10)]
        assert await cluster.events(events.reserve_stock_failed) == []


async def test_a7_6_nothing_in_stock_takes_no_order_number_and_leaves_no_row() -> None:
    async with marketplace() as cluster:
        result = await buy(cluster, 1, item(quantity=11))
        assert (result["outcome"], result["order_id"]) == (CheckoutOutcome.NOT_ACCEPTED, None)
        assert [cluster.rows(each, 1) for each in (orders, order_items, order_history, payments, shipments)] == [[]] * 5
        assert counts_of(cluster, 1).failed_reservation_count == 1
        (mark,) = await cluster.events(events.transaction_mark)
        assert mark.value.status == "NOT_ACCEPTED"
        assert await order_of(cluster, 1, item()) == 1


async def test_a7_12_two_sellers_may_sell_products_with_one_number() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1, 2), item(2, 1, 3))
        assert [(row.seller_id, row.product_id, row.quantity) for row in cluster.rows(order_items, 1)] == [
            (1, 1, 2),
            (2, 1, 3),
        ]
        (first,), (second,) = cluster.rows(order_entries, 1), cluster.rows(order_entries, 2)
        assert (first.total_items, second.total_items) == (2 * price_of((1, 1)), 3 * price_of((2, 1)))


def test_a7_14_the_same_invoice_is_always_decided_alike() -> None:
    numbers = [f"{customer}-20260101-1" for customer in range(10_000)]
    found = [charging.rejected(number, 5, 1) for number in numbers]
    assert found == [charging.rejected(number, 5, 1) for number in numbers]
    assert 400 < sum(found) < 600
    assert not any(charging.rejected(number, 0, 1) for number in numbers)
    assert all(charging.rejected(number, 100, 1) for number in numbers)


async def test_s2_a_submission_that_comes_again_gets_the_same_order() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item())
        first = await cluster.call("cart", 1, "checkout", request(1, checkout_id="same"))
        await fill(cluster, 1, item(2, 1))
        again = await cluster.call("cart", 1, "checkout", request(1, checkout_id="same"))
        assert (again["order_id"], again["repeated"], first["repeated"]) == (first["order_id"], True, False)
        assert len(cluster.rows(orders, 1)) == 1
        assert len(cluster.rows(items, 1)) == 1  # the new session's cart is as it was


async def test_s2_a_refused_submission_that_comes_again_is_refused_again() -> None:
    async with marketplace() as cluster:
        await fill(cluster, 1, item(quantity=11))
        first = await cluster.call("cart", 1, "checkout", request(1, checkout_id="same"))
        await cluster.call("stock", (1, 1), "restock", 5)
        assert await cluster.call("cart", 1, "checkout", request(1, checkout_id="same")) == first | {"repeated": True}
        assert counts_of(cluster, 1).failed_reservation_count == 1


async def test_the_security_number_is_in_no_event_and_no_row() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(), card_security_number="SECRET-7")
        assert not any(b"SECRET-7" in value for value in cluster.state().values() if isinstance(value, bytes))
        assert "SECRET-7" not in repr(await cluster.events(events.reserve_stock))
        assert "SECRET-7" not in repr(await cluster.events(events.payment_confirmed))


async def test_a_full_cart_takes_no_other_product() -> None:
    async with marketplace() as cluster:
        for number in range(1, 101):
            await cluster.call("cart", 1, "add_item", item(1, number, unit_price=1))
        await refused(cluster, "CartFull", "cart", 1, "add_item", item(2, 1))
        await cluster.call("cart", 1, "add_item", item(1, 100, 5, unit_price=1))
        assert await cluster.call("cart", 1, "seal") == 100
        assert await cluster.call("cart", 1, "seal") == 0


async def test_a_crash_loses_and_doubles_nothing(tmp_path: Any) -> None:
    async with marketplace(data_dir=tmp_path) as cluster:
        await fill(cluster, 1, item(quantity=2))
        await cluster.call("cart", 1, "checkout", request(1, checkout_id="once"))
        await cluster.crash_and_recover()
        assert (await cluster.call("cart", 1, "checkout", request(1, checkout_id="once")))["repeated"]
        await cluster.advance(timedelta(0))
        assert stock_of(cluster) == (8, 0)
        assert counts_of(cluster, 1).success_payment_count == 1
