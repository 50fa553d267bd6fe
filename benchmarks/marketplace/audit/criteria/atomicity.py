"""ATOM: a checkout's effects are in all services or in none, and so are those of its payment. What the events tell of
an order implies its rows in each service; events that one transaction tells together are of one transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria.customer_counts import COLUMNS
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import LOADED, OrderKey, Story
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Place
from benchmarks.marketplace.services.cart.rows import checkouts
from benchmarks.marketplace.services.customer.rows import counts
from benchmarks.marketplace.services.order.rows import order_items, orders
from benchmarks.marketplace.services.payment.rows import payments
from benchmarks.marketplace.services.seller.rows import entry_details, order_entries
from benchmarks.marketplace.services.shipment.rows import packages, shipments


def violations(run: Run) -> Iterator[Violation]:
    """Looks at each order's rows, at each customer's counts, and at the transactions."""
    yield from _rows(run)
    yield from _counts(run)
    yield from _checkouts(run)
    yield from _transactions(run)
    yield from _marks(run)


def _rows(run: Run) -> Iterator[Violation]:
    """Each service's rows of all orders, against those that the events imply."""
    implied: dict[str, set[Any]] = {name: set() for name in _SERVICES}
    for key, story in run.stories.items():
        for name, row in _implied(key, story):
            implied[name].add(row)
    for name, found in _found(run).items():
        for row in found - implied[name]:
            yield Violation(Criterion.ATOM, f"{name} {row}", "a row", "none, by the events of the order")
        for row in implied[name] - found:
            yield Violation(Criterion.ATOM, f"{name} {row}", "no row", "one, by the events of the order")


_SERVICES = ("order with status", "order line", "payment", "shipment", "package", "open entry", "entry's details")


def _implied(key: OrderKey, story: Story) -> Iterator[tuple[str, Any]]:
    yield "order with status", (*key, story.status)
    for line in story.lines:
        yield "order line", (*key, line.order_item_id, line.seller_id, line.product_id, line.quantity)
    if story.status != "INVOICED":
        yield "payment", (*key, "failed" if story.failed else "succeeded")
    if story.paid or (story.approved and story.approved[0] == LOADED):
        yield "shipment", key
        for number, line in story.packages.items():
            yield "package", (*key, number, line.seller_id, line.product_id, number in story.delivered)
    if not story.ended:
        for line in story.lines:
            yield "open entry", (line.seller_id, *key, line.product_id, line.quantity)
        for seller in {line.seller_id for line in story.lines}:
            yield "entry's details", (seller, *key)


def _found(run: Run) -> dict[str, set[Any]]:
    state = run.after
    return {
        "order with status": {(key, row.order_id, row.status) for key, row in state.all_rows(orders)},
        "order line": {
            (key, row.order_id, row.order_item_id, row.seller_id, row.product_id, row.quantity)
            for key, row in state.all_rows(order_items)
        },
        "payment": {
            (key, row.order_id, "succeeded" if row.status == "succeeded" else "failed")
            for key, row in state.all_rows(payments)
        },
        "shipment": {(key, row.order_id) for key, row in state.all_rows(shipments)},
        "package": {
            (key, row.order_id, row.package_id, row.seller_id, row.product_id, row.status == "delivered")
            for key, row in state.all_rows(packages)
        },
        "open entry": {
            (key, row.customer_id, row.order_id, row.product_id, row.quantity)
            for key, row in state.all_rows(order_entries)
        },
        "entry's details": {(key, row.customer_id, row.order_id) for key, row in state.all_rows(entry_details)},
    }


def _counts(run: Run) -> Iterator[Violation]:
    """What customers have counted of their orders, against the orders themselves."""
    told: dict[str, Counter[int]] = {column: Counter() for column in COLUMNS}
    for (customer, _), story in run.stories.items():
        told["success_payment_count"][customer] += any(step != LOADED for step in story.paid)
        told["failed_payment_count"][customer] += any(step != LOADED for step in story.failed)
        delivered = [steps for steps in story.delivered.values() if steps[0] != LOADED]
        told["delivery_count"][customer] += len(delivered)
    before = dict(run.before.all_rows(counts))
    for customer, row in run.after.all_rows(counts):
        for column in ("success_payment_count", "failed_payment_count", "delivery_count"):
            expected = getattr(before.get(customer), column, 0) + told[column][customer]
            if getattr(row, column) != expected:
                found = f"{column} {getattr(row, column)}"
                yield Violation(Criterion.ATOM, f"customer {customer}", found, f"{expected}, by the customer's orders")


def _checkouts(run: Run) -> Iterator[Violation]:
    """Each submission's row names the order that it has, and no other."""
    ordered = {(key[0], story.checkout_id): key[1] for key, story in run.stories.items()}
    for customer, row in run.after.all_rows(checkouts):
        expected = ordered.pop((customer, row.checkout_id), None)
        if row.order_id != expected:
            entity = f"checkout {row.checkout_id} of customer {customer}"
            yield Violation(Criterion.ATOM, entity, f"order {row.order_id}", f"order {expected}, by its invoice")
    for (customer, checkout_id), order_id in ordered.items():
        if not run.stories[customer, order_id].loaded:
            entity = f"checkout {checkout_id} of customer {customer}"
            yield Violation(Criterion.ATOM, entity, "no row in the cart", f"one, with order {order_id}")


def _transactions(run: Run) -> Iterator[Violation]:
    """E2, E3 and E5 are told together or not at all, so are E2 and E4, E6 and the shipment's E8."""
    kinds = (events.reserve_stock, events.stock_confirmed, events.reserve_stock_failed, events.invoice_issued)
    for place, those in run.history.transactions(*kinds):
        names = Counter(event.name for event, _ in those)
        requested, confirmed = names["reserve-stock"], names["stock-confirmed"]
        if requested != confirmed + names["reserve-stock-failed"]:
            yield _torn(place, names, "one answer to each request of reservation")
        sellers = sum(
            len({item.seller_id for item in told.value.items})
            for event, told in those
            if event is events.stock_confirmed
        )
        if names["invoice-issued"] != sellers:
            yield _torn(place, names, f"invoices for the {sellers} sellers of what is confirmed")
    for key, story in run.stories.items():
        paid = [place for place, _ in story.paid]
        approved = [step[0] for step in story.approved if step != LOADED]
        if [place for place in paid if place != LOADED[0]] != approved:
            found = f"paid at {list(map(tuple, paid))}, its shipment approved at {list(map(tuple, approved))}"
            yield Violation(Criterion.ATOM, f"order {key}", found, "both in one transaction")
        if run.settled and not (story.paid or story.failed or story.approved):
            yield Violation(Criterion.ATOM, f"order {key}", "neither paid nor not paid", "the end of its payment")


def _torn(place: Place, names: Counter[str], expected: str) -> Violation:
    return Violation(Criterion.ATOM, f"transaction {tuple(place)}", f"{dict(names)}", expected)


def _marks(run: Run) -> Iterator[Violation]:
    """The mark of each checkout, which tells its client how it has ended."""
    expected: Counter[Any] = Counter()
    for (customer, _), story in run.stories.items():
        expected[customer, story.checkout_id, "SUCCESS"] += sum(step != LOADED for step in story.paid)
        expected[customer, story.checkout_id, "ABORT"] += sum(step != LOADED for step in story.failed)
    for told in run.history.of(events.reserve_stock_failed):
        expected[told.value.buyer.customer_id, told.value.buyer.checkout_id, "NOT_ACCEPTED"] += 1
    marks = run.history.of(events.transaction_mark)
    found = Counter((told.value.actor_id, told.value.tid, told.value.status) for told in marks)
    for mark in expected.keys() | found.keys():
        if expected[mark] != found[mark]:
            yield Violation(Criterion.ATOM, f"mark {mark}", f"{found[mark]} times", f"{expected[mark]} times")
