"""S#4: a customer's counts are the numbers of the events about the customer: E6, E7, E4, E9, and abandoned carts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.customer.rows import counts
from styx import Event

COLUMNS: Final[dict[str, Event[Any]]] = {
    "success_payment_count": events.payment_confirmed,
    "failed_payment_count": events.payment_failed,
    "failed_reservation_count": events.reserve_stock_failed,
    "delivery_count": events.delivery_notification,
    "abandoned_cart_count": events.cart_abandoned,
}
_OF_BUYER: Final = ("success_payment_count", "failed_payment_count", "failed_reservation_count")


def violations(run: Run) -> Iterator[Violation]:
    """Recounts."""
    before = dict(run.before.all_rows(counts))
    told = {column: _told(run, column) for column in COLUMNS}
    found = dict(run.after.all_rows(counts))
    customers = found.keys() | before.keys() | {customer for each in told.values() for customer in each}
    for customer in sorted(customers):
        row = found.get(customer)
        if row is None:
            yield Violation(Criterion.S4, f"customer {customer}", "no counts", "a row")
            continue
        for column, each in told.items():
            expected = getattr(before.get(customer), column, 0) + each[customer]
            if getattr(row, column) != expected:
                number = f"{expected}, as many as there are events"
                yield Violation(Criterion.S4, f"customer {customer}", f"{column} {getattr(row, column)}", number)


def _told(run: Run, column: str) -> Counter[int]:
    """How many events there are of each customer."""
    those = run.history.of(COLUMNS[column])
    if column in _OF_BUYER:
        return Counter(told.value.buyer.customer_id for told in those)
    return Counter(told.value.customer_id for told in those)
