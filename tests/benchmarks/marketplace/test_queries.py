"""The three continuous queries: the dashboard (C.1), abandoned carts (C.2) and low stock (C.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from benchmarks.marketplace import charging, events
from benchmarks.marketplace.services.cart.rows import checkouts, failures
from benchmarks.marketplace.services.seller.dashboard import dashboard
from benchmarks.marketplace.services.seller.rows import entry_details, low_stock, open_products, order_entries, seller
from benchmarks.marketplace.services.stock import demand as demands
from benchmarks.marketplace.services.stock.rows import demand, stock_items
from tests.benchmarks.marketplace.shop import (
    FREIGHT,
    buy,
    counts_of,
    fill,
    item,
    marketplace,
    order_of,
    price_of,
    request,
)

pytestmark = pytest.mark.anyio
MINUTE, WEEK = timedelta(minutes=1), timedelta(weeks=1)


def assert_sums_up(found: Any) -> None:
    """The board is what its entries add up to."""
    board, entries = found.board, found.entries
    assert board.count_lines == len(entries)
    assert board.count_orders == len({(each.customer_id, each.order_id) for each in entries}) == len(found.details)
    assert board.count_items == len({each.product_id for each in entries})
    assert board.total_amount == sum(each.total_amount for each in entries)
    assert board.total_freight == sum(each.freight_value for each in entries)
    assert board.total_incentive == sum(each.total_items - each.total_amount for each in entries)
    assert board.total_invoice == board.total_amount + board.total_freight
    assert board.total_items == sum(each.total_items for each in entries)
    assert found.complete


async def test_c1_a_seller_with_nothing_open_has_zeros() -> None:
    async with marketplace() as cluster:
        found = await cluster.call(seller, 99, dashboard)
        assert (found.entries, found.board.count_orders, found.board.total_invoice) == ([], 0, 0)
        assert_sums_up(found)


async def test_c1_and_a7_9_orders_are_counted_by_customer_and_number() -> None:
    async with marketplace() as cluster:
        for customer in (1, 2):
            await order_of(cluster, customer, item(1, 1, 2, voucher=3_00), item(1, 2))
        await order_of(cluster, 1, item(1, 1))
        found = await cluster.call(seller, 1, dashboard)
        board = found.board
        assert (board.count_orders, board.count_items, board.count_lines) == (3, 2, 5)
        assert board.total_items == 5 * price_of((1, 1)) + 2 * price_of((1, 2))
        assert (board.total_incentive, board.total_freight) == (6_00, 5 * FREIGHT)
        assert_sums_up(found)


async def test_c1_and_a7_8_an_order_is_open_from_its_invoice_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(invoice_number: str) -> charging.Answer:
        return charging.Answer.REJECTED if invoice_number.endswith("-2") else charging.Answer.APPROVED

    monkeypatch.setattr(charging, "decide", decide)
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1), item(2, 1))
        assert (await cluster.call(seller, 1, dashboard)).board.count_orders == 1
        await cluster.call("queue", 0, "update_delivery", "t")
        for number in (1, 2):
            found = await cluster.call(seller, number, dashboard)
            assert found.board.count_lines == 0
            assert_sums_up(found)
        await buy(cluster, 1, item(1, 1))  # its second order, which is not paid
        assert (await cluster.call(seller, 1, dashboard)).board.count_lines == 0
        assert [cluster.rows(table, 1) for table in (order_entries, entry_details, open_products)] == [[], [], []]


async def test_c1_board_and_entries_are_of_one_snapshot() -> None:
    async with marketplace(n_slots=16, pieces=1000) as cluster:
        waiting = []
        for customer in (1, 2, 3, 4):
            await fill(cluster, customer, item(1, 1), item(1, 2), item(2, 1))
            waiting.append(cluster.submit("cart", customer, "checkout", request(customer)))
            waiting.append(cluster.submit("seller", 1, "dashboard"))
            waiting.append(cluster.submit("queue", 0, "update_delivery", "t"))
            reply = await cluster.call(seller, 1, dashboard)
            assert_sums_up(reply)
        for each in waiting:
            assert (await each).error is None
            assert_sums_up(await cluster.call(seller, 1, dashboard))


async def test_c1_a_long_dashboard_is_given_in_part_and_says_so() -> None:
    async with marketplace() as cluster:
        await order_of(cluster, 1, item(1, 1), item(1, 2))
        found = await cluster.call(seller, 1, dashboard, 1)
        assert (len(found.entries), found.board.count_lines, found.complete) == (1, 2, False)
        assert (await cluster.call(seller, 1, dashboard, 0)).entries == []
        reply = await cluster.request("seller", 1, "dashboard", 5_001)
        assert reply.error is not None


async def abandoned(cluster: Any) -> list[tuple[str, str]]:
    return [(event.value.checkout_id, event.value.cause) for event in await cluster.events(events.cart_abandoned)]


async def fails(cluster: Any, name: str, customer: int = 1) -> None:
    """A checkout of which nothing can be reserved."""
    result = await buy(cluster, customer, item(1, 1, 99), checkout_id=name)
    assert result["order_id"] is None


async def test_c2_a_failed_checkout_is_abandoned_after_ten_minutes_once() -> None:
    async with marketplace() as cluster:
        await fails(cluster, "a")
        await cluster.advance(10 * MINUTE - timedelta(seconds=2))
        assert await abandoned(cluster) == []
        await cluster.advance(timedelta(seconds=3))
        assert await abandoned(cluster) == [("a", "NOT_RESERVED")]
        await cluster.advance(60 * MINUTE)
        assert len(await abandoned(cluster)) == 1
        (told,) = await cluster.events(events.cart_abandoned)
        assert told.time - told.value.failed_at > 10 * MINUTE  # a retry at ten minutes exactly is in time
        (row,) = cluster.rows(checkouts, 1)
        assert row.abandoned_at - row.failed_at == 10 * MINUTE
        assert counts_of(cluster, 1).abandoned_cart_count == 1
        assert cluster.rows(failures, 1) == []


async def test_c2_another_submission_in_time_keeps_it_from_that_whatever_it_buys() -> None:
    async with marketplace() as cluster:
        await fails(cluster, "a")
        await cluster.advance(5 * MINUTE)
        await order_of(cluster, 1, item(2, 1))
        await cluster.advance(60 * MINUTE)
        assert await abandoned(cluster) == []


async def test_c2_a_retry_that_fails_opens_a_window_of_its_own() -> None:
    async with marketplace() as cluster:
        await fails(cluster, "a")
        await cluster.advance(8 * MINUTE)
        await fails(cluster, "b")
        await cluster.advance(8 * MINUTE)
        assert await abandoned(cluster) == []
        await cluster.advance(3 * MINUTE)
        assert await abandoned(cluster) == [("b", "NOT_RESERVED")]


async def test_c2_a_failed_payment_counts_and_two_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charging, "decide", lambda number: charging.Answer.UNREACHABLE)
    async with marketplace() as cluster:
        await buy(cluster, 1, item(1, 1), checkout_id="a")
        await fails(cluster, "x", customer=2)
        await cluster.advance(11 * MINUTE)
        assert sorted(await abandoned(cluster)) == [("a", "PAYMENT_UNREACHABLE"), ("x", "NOT_RESERVED")]


async def test_c2_what_is_no_submission_is_no_retry() -> None:
    async with marketplace() as cluster:
        await fails(cluster, "a")
        await fill(cluster, 1, item(2, 1))
        await cluster.call("cart", 1, "seal")
        assert (await cluster.request("cart", 1, "checkout", request(1))).error is not None  # empty
        await cluster.call("cart", 1, "checkout", request(1, checkout_id="a"))  # the same one again
        await cluster.advance(11 * MINUTE)
        assert await abandoned(cluster) == [("a", "NOT_RESERVED")]


async def test_c2_a_crash_in_the_window_neither_loses_nor_doubles_it(tmp_path: Any) -> None:
    async with marketplace(data_dir=tmp_path) as cluster:
        await fails(cluster, "a")
        await cluster.crash_and_recover()
        await cluster.advance(11 * MINUTE)
        await cluster.crash_and_recover()
        await cluster.advance(11 * MINUTE)
        assert await abandoned(cluster) == [("a", "NOT_RESERVED")]


async def warnings(cluster: Any) -> list[tuple[bool, int, int]]:
    found = await cluster.events(events.low_stock_warning)
    return [(event.value.low, event.value.level, event.value.demand) for event in found]


async def test_c3_a_week_that_needs_more_than_what_is_left_is_told_once() -> None:
    async with marketplace(pieces=10) as cluster:
        await order_of(cluster, 1, item(1, 1, 8))  # 8 in 28 days are 2 a week, and 2 are left
        assert await warnings(cluster) == []
        await order_of(cluster, 1, item(1, 1, 1))  # 9 / 4 > 1
        await order_of(cluster, 2, item(1, 1, 1))
        assert await warnings(cluster) == [(True, 1, 9)]
        (row,) = cluster.rows(low_stock, 1)
        assert (row.product_id, row.level, row.demand) == (1, 1, 9)


async def test_c3_refused_pieces_count_and_restocking_takes_the_warning_back() -> None:
    async with marketplace(pieces=10) as cluster:
        await buy(cluster, 1, item(1, 1, 41))
        assert await warnings(cluster) == [(True, 10, 41)]
        await cluster.call("stock", (1, 1), "restock", 1)
        assert await warnings(cluster) == [(True, 10, 41), (False, 11, 41)]
        assert cluster.rows(low_stock, 1) == []


async def test_c3_time_alone_takes_the_warning_back() -> None:
    async with marketplace(pieces=10) as cluster:
        await buy(cluster, 1, item(1, 1, 30))
        await cluster.advance(2 * WEEK)
        await buy(cluster, 1, item(1, 1, 20))
        assert await warnings(cluster) == [(True, 10, 50)]
        await cluster.advance(2 * WEEK - timedelta(hours=2))
        assert len(await warnings(cluster)) == 1
        await cluster.advance(timedelta(hours=2))
        assert await warnings(cluster) == [(True, 10, 50), (False, 10, 20)]
        assert [row.quantity for row in cluster.rows(demand, (1, 1))] == [20]
        await cluster.advance(8 * WEEK)
        assert len(await warnings(cluster)) == 2


async def test_c3_a_warning_stays_while_later_hours_still_need_more() -> None:
    async with marketplace(pieces=10) as cluster:
        await buy(cluster, 1, item(1, 1, 50))
        await cluster.advance(WEEK)
        await buy(cluster, 1, item(1, 1, 60))
        await cluster.advance(3 * WEEK)
        assert await warnings(cluster) == [(True, 10, 50)]
        assert cluster.rows(stock_items, (1, 1))[0].demand == 60
        await cluster.advance(WEEK)
        assert await warnings(cluster) == [(True, 10, 50), (False, 10, 0)]


async def test_c3_a_request_counts_in_its_own_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes behind later ones with the time of an earlier hour, as one that was carried does."""

    async def hours(cluster: Any) -> list[int]:
        (row,) = cluster.rows(stock_items, (1, 1))
        found = cluster.rows(demand, (1, 1))
        assert (row.oldest_hour, row.latest_hour) == (found[0].hour, found[-1].hour)
        assert row.demand == sum(each.quantity for each in found)
        return [each.quantity for each in found]

    async with marketplace(pieces=100) as cluster:
        now = datetime.now(UTC)
        await cluster.advance(demands.hour_of(now) + timedelta(hours=1) - now)  # an hour begins, and does not end here
        for quantity in (2, 3):
            await buy(cluster, 1, item(1, 1, quantity))
        assert await hours(cluster) == [5]
        await cluster.advance(timedelta(hours=3))
        for quantity in (4, 1):
            await buy(cluster, 1, item(1, 1, quantity))
        assert await hours(cluster) == [5, 5]
        hour_of = demands.hour_of
        for earlier, expected in ((3, [12, 5]), (2, [12, 7, 5]), (0, [12, 7, 12]), (9, [7, 12, 7, 12])):
            monkeypatch.setattr(demands, "hour_of", lambda time, back=earlier: hour_of(time) - timedelta(hours=back))
            await buy(cluster, 1, item(1, 1, 7))
            assert await hours(cluster) == expected
        await cluster.advance(4 * WEEK - timedelta(hours=3))
        monkeypatch.setattr(demands, "hour_of", hour_of)
        await buy(cluster, 1, item(1, 1, 6))
        assert await hours(cluster) == [7, 12, 6]
        await cluster.advance(5 * WEEK)
        await buy(cluster, 1, item(1, 1, 8))
        assert await hours(cluster) == [8]


async def test_c3_pieces_of_a_failed_payment_are_left_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charging, "decide", lambda number: charging.Answer.REJECTED)
    async with marketplace(pieces=10) as cluster:
        await buy(cluster, 1, item(1, 1, 9))
        assert await warnings(cluster) == [(True, 1, 9), (False, 10, 9)]


async def test_c3_a_purged_product_is_not_warned_of_any_more() -> None:
    async with marketplace(pieces=10) as cluster:
        await buy(cluster, 1, item(1, 1, 50))
        await cluster.call("product", (1, 1), "delete")
        await cluster.call("product", (1, 1), "purge")
        assert await warnings(cluster) == [(True, 10, 50), (False, 10, 0)]
        await cluster.advance(5 * WEEK)
        assert cluster.rows(low_stock, 1) == []


async def test_c2_a_submission_behind_the_window_is_no_retry_even_if_the_call_for_later_is_late() -> None:
    async with marketplace() as cluster:
        await fails(cluster, "a")
        (failure,) = cluster.rows(failures, 1)
        failure.failed_at -= 11 * MINUTE  # as if nothing had run for so long
        await cluster.load_rows(failures, [(1, failure)], replace=True)
        await order_of(cluster, 1, item(2, 1))
        await cluster.advance(11 * MINUTE)
        assert await abandoned(cluster) == [("a", "NOT_RESERVED")]
