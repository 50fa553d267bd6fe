"""What became of each order, as the events tell it: its invoice, and each step with the place where it was told. Orders
that were loaded have their steps at `LOADED`, before all others.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.history import History
from benchmarks.marketplace.audit.state import State
from benchmarks.marketplace.record import Place
from benchmarks.marketplace.services.order.rows import order_history, order_items, orders
from benchmarks.marketplace.services.shipment.rows import packages
from benchmarks.marketplace.values import OrderLine, OrderStatus, PackageStatus, ShipmentStatus

OrderKey = tuple[int, int]
"""(customer, order)."""
Step = tuple[Place, str]
"""Where something was told: `(place, id)`, which sorts as the serial order does."""
LOADED: Final[Step] = (Place(-1, 0, 0), "")


class Story:
    """An order. Each list has a step for each time that it was told; exactly one is usual, and two are a fault.

    `delivered` has, for each package, the steps at which it was told.
    """

    __slots__ = (
        "approved",
        "checkout_id",
        "concluded",
        "delivered",
        "failed",
        "in_progress",
        "invoice_number",
        "invoiced",
        "lines",
        "loaded",
        "paid",
        "paid_lines",
        "sellers",
        "total_invoice",
    )

    def __init__(self) -> None:
        self.loaded = False
        self.checkout_id = ""
        self.invoice_number = ""
        self.total_invoice = 0
        self.lines: list[OrderLine] = []
        self.paid_lines: list[OrderLine] | None = None
        self.sellers: list[int] = []
        self.invoiced: list[Step] = []
        self.paid: list[Step] = []
        self.failed: list[Step] = []
        self.approved: list[Step] = []
        self.in_progress: list[Step] = []
        self.concluded: list[Step] = []
        self.delivered: dict[int, list[Step]] = {}

    @property
    def status(self) -> OrderStatus:
        """That of the last step."""
        if self.failed:
            return OrderStatus.PAYMENT_FAILED
        if self.concluded:
            return OrderStatus.DELIVERED
        if self.in_progress:
            return OrderStatus.IN_TRANSIT
        if self.approved:
            return OrderStatus.READY_FOR_SHIPMENT
        return OrderStatus.PAYMENT_PROCESSED if self.paid else OrderStatus.INVOICED

    @property
    def ended(self) -> bool:
        """It is delivered, or is not paid."""
        return bool(self.failed or self.concluded)

    @property
    def end(self) -> Step | None:
        """Where it ended."""
        steps = self.failed or self.concluded
        return steps[0] if steps else None

    @property
    def packages(self) -> dict[int, OrderLine]:
        """Its packages by number: one for each line."""
        return dict(enumerate(self.lines, 1))


Stories = dict[OrderKey, Story]


def stories_of(before: State, history: History) -> Stories:
    """All orders that were loaded, or are in an event."""
    found: Stories = {}
    for customer in before.keys(orders):
        _loaded(found, before, customer)
    _invoices(found, history)
    _payments(found, history)
    _shipments(found, history)
    return found


def _of(found: Stories, customer: int, order: int) -> Story:
    return found.setdefault((customer, order), Story())


def _invoices(found: Stories, history: History) -> None:
    for told in history.of(events.invoice_issued):
        invoice = told.value.invoice
        story = _of(found, invoice.buyer.customer_id, invoice.order_id)
        story.checkout_id, story.invoice_number = invoice.buyer.checkout_id, invoice.invoice_number
        story.total_invoice = invoice.total_invoice
        story.sellers.append(told.value.seller_id)
        story.invoiced.append((told.place, told.id))
        story.lines = sorted([*story.lines, *invoice.lines], key=lambda line: line.order_item_id)


def _payments(found: Stories, history: History) -> None:
    for told in history.of(events.payment_confirmed):
        story = _of(found, told.value.buyer.customer_id, told.value.order_id)
        story.paid.append((told.place, told.id))
        if told.value.lines != story.lines:
            story.paid_lines = told.value.lines
    for failed in history.of(events.payment_failed):
        story = _of(found, failed.value.buyer.customer_id, failed.value.order_id)
        story.failed.append((failed.place, failed.id))
        if failed.value.lines != story.lines:
            story.paid_lines = failed.value.lines


def _shipments(found: Stories, history: History) -> None:
    for told in history.of(events.shipment_notification):
        story = _of(found, told.value.customer_id, told.value.order_id)
        steps = {
            ShipmentStatus.APPROVED: story.approved,
            ShipmentStatus.IN_PROGRESS: story.in_progress,
            ShipmentStatus.CONCLUDED: story.concluded,
        }[told.value.status]
        steps.append((told.place, told.id))
    for delivery in history.of(events.delivery_notification):
        story = _of(found, delivery.value.customer_id, delivery.value.order_id)
        story.delivered.setdefault(delivery.value.package_id, []).append((delivery.place, delivery.id))


def _loaded(found: Stories, before: State, customer: int) -> None:
    lines: dict[int, list[OrderLine]] = {}
    for row in before.rows(order_items, customer):
        lines.setdefault(row.order_id, []).append(_line(row))
    for row in before.rows(orders, customer):
        story = _of(found, customer, row.order_id)
        story.loaded = True
        story.checkout_id, story.invoice_number = row.checkout_id, row.invoice_number
        story.total_invoice, story.lines = row.total_invoice, lines.get(row.order_id, [])
        story.sellers = sorted({line.seller_id for line in story.lines})
        story.invoiced = [LOADED]
    steps = {
        OrderStatus.PAYMENT_PROCESSED: "paid",
        OrderStatus.PAYMENT_FAILED: "failed",
        OrderStatus.READY_FOR_SHIPMENT: "approved",
        OrderStatus.IN_TRANSIT: "in_progress",
        OrderStatus.DELIVERED: "concluded",
    }
    for row in before.rows(order_history, customer):
        if row.status in steps:
            setattr(_of(found, customer, row.order_id), steps[row.status], [LOADED])
    for row in before.rows(packages, customer):
        if row.status == PackageStatus.DELIVERED:
            _of(found, customer, row.order_id).delivered[row.package_id] = [LOADED]


def _line(row: Any) -> OrderLine:
    """The line of an order as its invoice has it; a loaded one does not say its version."""
    return OrderLine(
        row.order_item_id,
        row.seller_id,
        row.product_id,
        row.product_name,
        row.unit_price,
        row.freight_value,
        row.quantity,
        row.total_items,
        row.total_incentive,
        row.total_amount,
        "",
    )
