"""DEL: each event has had its effect in each service that hears of it, exactly once, and stands in its log once.

For each consumer the multiset of what it has processed, by its state, is compared with the multiset of what was told.
Consumers whose effect is the same however often it comes, such as a copy of a price, are those of S#1, R1 and C.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria.customer_counts import COLUMNS
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.state import State
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.cart.rows import checkouts
from benchmarks.marketplace.services.customer.rows import counts
from benchmarks.marketplace.services.order.rows import order_history
from benchmarks.marketplace.services.payment.rows import PaymentStatus, payments
from benchmarks.marketplace.services.seller.rows import order_entries
from benchmarks.marketplace.services.shipment.rows import packages, shipments
from benchmarks.marketplace.services.stock.rows import stock_items
from benchmarks.marketplace.values import OrderStatus, PackageStatus, ShipmentStatus
from styx import Event

Multiset = Counter[Any]


class Consumer(NamedTuple):
    """A service that hears of an event. `told` gives what it should have processed of one event, as keys; `processed`
    counts, by the same keys, what a state says that it has.
    """

    event: Event[Any]
    service: str
    told: Callable[[Any], list[Any]]
    processed: Callable[[State], Multiset]


def violations(run: Run) -> Iterator[Violation]:
    """Compares each consumer with its log, and looks for what stands in a log twice."""
    for event in events.EVENTS:
        ids = Counter(told.id for told in run.history.of(event))
        for name, count in ids.items():
            if count > 1:
                yield Violation(Criterion.DEL, f"{event.name} {name}", f"{count} times in its log", "once")
    for consumer in CONSUMERS:
        told: Multiset = Counter()
        for each in run.history.of(consumer.event):
            told.update(consumer.told(each.value))
        processed = consumer.processed(run.after)
        processed.subtract(consumer.processed(run.before))
        yield from _compare(consumer, told, processed)
    yield from _entries(run)


def _compare(consumer: Consumer, told: Multiset, processed: Multiset) -> Iterator[Violation]:
    for key in told.keys() | processed.keys():
        if told[key] != processed[key]:
            entity = f"{consumer.event.name} at {consumer.service}, {key}"
            yield Violation(Criterion.DEL, entity, f"processed {processed[key]} times", f"{told[key]}, as it was told")


def _entries(run: Run) -> Iterator[Violation]:
    """E5 at Seller: each line of an invoice is an open entry or an archived one."""
    if not run.terms.archive:
        return
    told: Multiset = Counter()
    for each in run.history.of(events.invoice_issued):
        invoice, seller = each.value.invoice, each.value.seller_id
        told.update((seller, invoice.buyer.customer_id, invoice.order_id, line.product_id) for line in invoice.lines)
    processed = _open_entries(run.after)
    processed.subtract(_open_entries(run.before))
    for archived in run.history.of(events.entries_archived):
        seller = archived.value.seller_id
        processed.update((seller, row.customer_id, row.order_id, row.product_id) for row in archived.value.entries)
    yield from _compare(Consumer(events.invoice_issued, "Seller", lambda value: [], _open_entries), told, processed)


def _open_entries(state: State) -> Multiset:
    return Counter(
        (seller, row.customer_id, row.order_id, row.product_id) for seller, row in state.all_rows(order_entries)
    )


# What states say of it --------------------------------------------------------------------------------------


def _counted(column: str) -> Callable[[State], Multiset]:
    return lambda state: Counter({key: getattr(row, column) for key, row in state.all_rows(counts)})


def _steps(*statuses: OrderStatus) -> Callable[[State], Multiset]:
    return lambda state: Counter(
        (customer, row.order_id, row.status)
        for customer, row in state.all_rows(order_history)
        if row.status in statuses
    )


def _failed(cause: str) -> Callable[[State], Multiset]:
    return lambda state: Counter(
        (customer, row.checkout_id)
        for customer, row in state.all_rows(checkouts)
        if row.failed_at is not None and row.cause.startswith(cause)
    )


def _abandoned(state: State) -> Multiset:
    return Counter(
        (customer, row.checkout_id) for customer, row in state.all_rows(checkouts) if row.abandoned_at is not None
    )


def _submitted(state: State) -> Multiset:
    return Counter((customer, row.checkout_id) for customer, row in state.all_rows(checkouts))


def _sold(state: State) -> Multiset:
    return Counter({key: row.order_count for key, row in state.all_rows(stock_items)})


def _shipped(state: State) -> Multiset:
    return Counter((customer, row.order_id) for customer, row in state.all_rows(shipments))


def _handed_over(state: State) -> Multiset:
    return Counter(
        (customer, row.order_id, row.package_id)
        for customer, row in state.all_rows(packages)
        if row.status == PackageStatus.DELIVERED
    )


def _paid(*statuses: PaymentStatus) -> Callable[[State], Multiset]:
    return lambda state: Counter(
        (customer, row.order_id)
        for customer, row in state.all_rows(payments)
        if row.sequential == 1 and row.status in statuses
    )


# What events say of it --------------------------------------------------------------------------------------


def _customer(value: Any) -> list[Any]:
    return [value.buyer.customer_id if hasattr(value, "buyer") else value.customer_id]


def _checkout(value: Any) -> list[Any]:
    return [(value.buyer.customer_id, value.buyer.checkout_id)]


def _order(value: Any) -> list[Any]:
    return [(value.buyer.customer_id, value.order_id)]


def _step(status: OrderStatus) -> Callable[[Any], list[Any]]:
    return lambda value: [(value.buyer.customer_id, value.order_id, status)]


def _shipment_step(value: Any) -> list[Any]:
    return [(value.customer_id, value.order_id, _OF_SHIPMENT[value.status])]


def _lines(value: Any) -> list[Any]:
    return [(line.seller_id, line.product_id) for line in value.lines]


_OF_SHIPMENT: Final = {
    ShipmentStatus.APPROVED: OrderStatus.READY_FOR_SHIPMENT,
    ShipmentStatus.IN_PROGRESS: OrderStatus.IN_TRANSIT,
    ShipmentStatus.CONCLUDED: OrderStatus.DELIVERED,
}

CONSUMERS: Final = [
    Consumer(events.reserve_stock, "Cart", _checkout, _submitted),
    Consumer(events.reserve_stock_failed, "Cart", _checkout, _failed("NOT_RESERVED")),
    Consumer(events.payment_failed, "Cart", _checkout, _failed("PAYMENT_")),
    Consumer(events.payment_confirmed, "Payment", _order, _paid(PaymentStatus.SUCCEEDED)),
    Consumer(
        *(events.payment_failed, "Payment", _order),
        _paid(PaymentStatus.REQUIRES_PAYMENT_METHOD, PaymentStatus.CANCELED),
    ),
    Consumer(events.payment_confirmed, "Stock", _lines, _sold),
    Consumer(events.payment_confirmed, "Shipment", _order, _shipped),
    Consumer(
        *(events.payment_confirmed, "Order", _step(OrderStatus.PAYMENT_PROCESSED)),
        _steps(OrderStatus.PAYMENT_PROCESSED),
    ),
    Consumer(
        *(events.payment_failed, "Order", _step(OrderStatus.PAYMENT_FAILED)),
        _steps(OrderStatus.PAYMENT_FAILED),
    ),
    Consumer(events.shipment_notification, "Order", _shipment_step, _steps(*_OF_SHIPMENT.values())),
    Consumer(
        events.delivery_notification,
        "Shipment",
        lambda value: [(value.customer_id, value.order_id, value.package_id)],
        _handed_over,
    ),
    Consumer(events.cart_abandoned, "Cart", lambda value: [(value.customer_id, value.checkout_id)], _abandoned),
    *(Consumer(event, "Customer", _customer, _counted(column)) for column, event in COLUMNS.items()),
]
