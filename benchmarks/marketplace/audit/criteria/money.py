"""MONEY: all sums are exact, in cents. A voucher and a discount are for a line, and never pay freight; freight is paid
once for a line. What was invoiced is what is open, what is delivered and what was not paid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import OrderKey, Story
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.order.rows import Order, order_items, orders
from benchmarks.marketplace.services.payment.rows import payments
from benchmarks.marketplace.services.seller.rows import order_entries
from benchmarks.marketplace.services.shipment.rows import packages, shipments
from benchmarks.marketplace.values import OrderLine, RequestedItem

VOUCHER = "VOUCHER"


def violations(run: Run) -> Iterator[Violation]:
    """Adds up anew, from what was reserved to what was archived."""
    yield from _invoices(run)
    for customer, row in run.after.all_rows(orders):
        yield from _order(run, (customer, row.order_id), row)
    for customer, row in run.after.all_rows(shipments):
        yield from _shipment(run, (customer, row.order_id), row.total_freight_value)
    yield from _entries(run)


def expected_line(number: int, item: RequestedItem) -> tuple[int, ...]:
    """(number, seller, product, quantity, items, incentive, amount, freight) of a line, by the rules."""
    total = item.unit_price * item.quantity
    incentive = min(item.voucher + item.price_discount, total)
    what = (number, item.seller_id, item.product_id, item.quantity)
    return (*what, total, incentive, total - incentive, item.freight_value)


def _line(line: OrderLine) -> tuple[int, ...]:
    what = (line.order_item_id, line.seller_id, line.product_id, line.quantity)
    return (*what, line.total_items, line.total_incentive, line.total_amount, line.freight_value)


def _invoices(run: Run) -> Iterator[Violation]:
    """An invoice's lines are those that were reserved; its sum is theirs."""
    invoiced: dict[tuple[int, str], tuple[OrderKey, Story]] = {
        (key[0], story.checkout_id): (key, story) for key, story in run.stories.items()
    }
    for told in run.history.of(events.stock_confirmed):
        buyer = told.value.buyer
        key, story = invoiced.get((buyer.customer_id, buyer.checkout_id), (None, None))
        if story is None:
            continue
        expected = [expected_line(number, item) for number, item in enumerate(told.value.items, 1)]
        found = [_line(line) for line in story.lines]
        if found != expected:
            what = "(line, seller, product, quantity, items, incentive, amount, freight)"
            yield _violation(f"invoice of order {key}", f"{what} {found}", f"{expected}, by what was reserved")
    for key, story in run.stories.items():
        total = sum(line.total_amount + line.freight_value for line in story.lines)
        if story.total_invoice != total:
            yield _violation(f"invoice of order {key}", f"{story.total_invoice}", f"{total}, the sum of its lines")


def _order(run: Run, key: OrderKey, row: Order) -> Iterator[Violation]:
    lines = run.after.rows_of_order(order_items, *key)
    sums = {
        "count_items": len(lines),
        "total_items": sum(line.unit_price * line.quantity for line in lines),
        "total_incentive": sum(line.total_incentive for line in lines),
        "total_amount": sum(line.unit_price * line.quantity - line.total_incentive for line in lines),
        "total_freight": sum(line.freight_value for line in lines),
    }
    sums["total_invoice"] = sums["total_amount"] + sums["total_freight"]
    for column, expected in sums.items():
        if getattr(row, column) != expected:
            yield _violation(f"order {key}", f"{column} {getattr(row, column)}", f"{expected}, the sum of its lines")
    paid = run.after.rows_of_order(payments, *key)
    if not paid:
        return
    asked = sum(each.value for each in paid if each.type != VOUCHER)
    vouchers = sum(each.value for each in paid if each.type == VOUCHER)
    succeeded = paid[0].status == "succeeded"
    if asked != row.total_invoice:
        yield _violation(f"payment of order {key}", f"{asked}", f"{row.total_invoice}, its invoice")
    if vouchers != (row.total_incentive if succeeded else 0):
        expected_vouchers = f"{row.total_incentive}, its incentive" if succeeded else "0, as it is not paid"
        yield _violation(f"payment of order {key}", f"vouchers of {vouchers}", expected_vouchers)


def _shipment(run: Run, key: OrderKey, freight: int) -> Iterator[Violation]:
    lines = run.after.rows_of_order(order_items, *key)
    parcels = run.after.rows_of_order(packages, *key)
    expected = sum(line.freight_value for line in lines)
    packed = sum(each.freight_value for each in parcels)
    if (freight, packed) != (expected, expected):
        found = f"freight {freight}, of its packages {packed}"
        yield _violation(f"shipment {key}", found, f"{expected}, the sum of its lines")


def _entries(run: Run) -> Iterator[Violation]:
    """What was invoiced is open, or archived as delivered or not paid."""
    for seller, row in run.after.all_rows(order_entries):
        if row.total_invoice != row.total_amount + row.freight_value:
            entity = f"entry (seller, customer, order) {(seller, row.customer_id, row.order_id)}"
            yield _violation(entity, f"{row.total_invoice}", f"{row.total_amount} and freight {row.freight_value}")
    if not run.terms.archive:
        return
    invoiced = _sum_of_entries(run.before) + sum(
        line.total_amount + line.freight_value
        for told in run.history.of(events.invoice_issued)
        for line in told.value.invoice.lines
    )
    archived = sum(row.total_invoice for told in run.history.of(events.entries_archived) for row in told.value.entries)
    found = _sum_of_entries(run.after) + archived
    if found != invoiced:
        yield _violation("all sellers", f"{found} open or archived", f"{invoiced}, what was invoiced")


def _sum_of_entries(state: Any) -> int:
    return sum(row.total_invoice for _, row in state.all_rows(order_entries))


def _violation(entity: str, found: str, expected: str) -> Violation:
    return Violation(Criterion.MONEY, entity, found, expected)
