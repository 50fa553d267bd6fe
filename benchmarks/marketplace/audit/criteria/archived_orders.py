"""LOG-a: an order that is delivered or not paid is archived once, with its lines and its history, as they stand."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria.archiving import once
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import OrderKey, Step
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.order.rows import order_history, order_items, orders


def violations(run: Run) -> Iterator[Violation]:
    """Joins the archive with the orders' ends, and with what the service still has of them."""
    if not run.terms.archive:
        return
    found: dict[OrderKey, list[Step]] = {}
    for told in run.history.of(events.order_archived):
        found.setdefault((told.value.customer_id, told.value.order.order_id), []).append((told.place, told.id))
    ended = {key: story.end for key, story in run.stories.items() if story.end is not None}
    yield from once(Criterion.LOG_A, "order", found, ended)
    yield from _whole(run)


def _whole(run: Run) -> Iterator[Violation]:
    for told in run.history.of(events.order_archived):
        customer, order_id = told.value.customer_id, told.value.order.order_id
        tables = ((orders, [told.value.order]), (order_items, told.value.items), (order_history, told.value.history))
        for table, archived in tables:
            rows = run.after.rows_of_order(table, customer, order_id)
            if rows != archived:
                entity = f"order {(customer, order_id)}"
                yield Violation(Criterion.LOG_A, entity, f"{archived} archived", f"{rows}, its rows of {table.name}")
