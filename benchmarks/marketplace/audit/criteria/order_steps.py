"""ORD: an order is invoiced, then paid, approved, in delivery, concluded; each delivery of a package comes before the
end of its shipment. Its history has these steps and no others, and its times and numbers rise.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import LOADED, Step, Story
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.order.rows import order_history
from benchmarks.marketplace.values import OrderStatus

NEXT: Final[dict[OrderStatus | None, tuple[OrderStatus, ...]]] = {
    None: (OrderStatus.INVOICED,),
    OrderStatus.INVOICED: (OrderStatus.PAYMENT_PROCESSED, OrderStatus.PAYMENT_FAILED),
    OrderStatus.PAYMENT_PROCESSED: (OrderStatus.READY_FOR_SHIPMENT,),
    OrderStatus.READY_FOR_SHIPMENT: (OrderStatus.IN_TRANSIT,),
    OrderStatus.IN_TRANSIT: (OrderStatus.DELIVERED,),
    OrderStatus.DELIVERED: (),
    OrderStatus.PAYMENT_FAILED: (),
}
"""The steps that there are, by the benchmark's definition."""


def violations(run: Run) -> Iterator[Violation]:
    """Looks at the events of each order, then at its history."""
    for key, story in run.stories.items():
        yield from _events(f"order {key}", story)
    for customer in run.after.keys(order_history):
        rows: dict[int, list[Any]] = {}
        for row in run.after.rows(order_history, customer):
            rows.setdefault(row.order_id, []).append(row)
        for order_id, those in rows.items():
            yield from _history(f"order {(customer, order_id)}", those)


def _events(entity: str, story: Story) -> Iterator[Violation]:
    named = [
        ("invoiced", story.invoiced),
        ("paid", story.paid or story.failed),
        ("approved", story.approved),
        ("in delivery", story.in_progress),
        ("concluded", story.concluded),
    ]
    for (earlier, first), (later, then) in pairwise(named):
        if then and not first and then[0] != LOADED:
            yield Violation(Criterion.ORD, entity, f"{later}, never {earlier}", f"{earlier} before {later}")
        elif first and then and not _before(max(first), min(then)):
            found = f"{later} at {_shown(min(then))}, {earlier} at {_shown(max(first))}"
            yield Violation(Criterion.ORD, entity, found, f"{earlier} before {later}")
    if story.paid and story.failed:
        yield Violation(Criterion.ORD, entity, "a payment that succeeded and one that failed", "one of them")
    for package, steps in story.delivered.items():
        if story.concluded and not _before(max(steps), min(story.concluded)):
            found = f"package {package} delivered at {_shown(max(steps))}, behind its end"
            yield Violation(Criterion.ORD, entity, found, "all packages before the end of their shipment")


def _before(first: Step, then: Step) -> bool:
    return first < then or then == LOADED


def _shown(step: Step) -> str:
    return f"{tuple(step[0])}"


def _history(entity: str, rows: list[Any]) -> Iterator[Violation]:
    status: OrderStatus | None = None
    for number, row in enumerate(rows):
        if row.status not in NEXT[status]:
            yield Violation(Criterion.ORD, entity, f"{row.status} behind {status}", f"one of {list(NEXT[status])}")
        if number and (row.created_at < rows[number - 1].created_at or row.seq <= rows[number - 1].seq):
            found = f"{row.status} at {row.created_at}, behind {rows[number - 1].created_at}"
            yield Violation(Criterion.ORD, entity, found, "times and numbers that rise")
        status = row.status
