"""LOG-b: when an order has ended, each of its sellers archives its entries and their details once, as they are then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria.archiving import once
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import Step
from benchmarks.marketplace.audit.violation import Criterion, Violation


def violations(run: Run) -> Iterator[Violation]:
    """Joins the archive with the orders' ends, for all sellers of each order."""
    if not run.terms.archive:
        return
    found: dict[Any, list[Step]] = {}
    for told in run.history.of(events.entries_archived):
        value = told.value
        key = (value.seller_id, value.details.customer_id, value.details.order_id)
        found.setdefault(key, []).append((told.place, told.id))
        yield from _whole(run, key, value)
    ended = {
        (seller, *key): story.end
        for key, story in run.stories.items()
        for seller in {line.seller_id for line in story.lines}
        if story.end is not None
    }
    yield from once(Criterion.LOG_B, "entries (seller, customer, order)", found, ended)


def _whole(run: Run, key: tuple[int, int, int], value: Any) -> Iterator[Violation]:
    story = run.stories.get(key[1:])
    if story is None:
        return
    expected = sorted(
        (line.product_id, line.quantity, line.total_amount, story.status)
        for line in story.lines
        if line.seller_id == key[0]
    )
    archived = sorted((row.product_id, row.quantity, row.total_amount, row.order_status) for row in value.entries)
    if archived != expected:
        entity = f"entries (seller, customer, order) {key}"
        yield Violation(Criterion.LOG_B, entity, f"{archived} archived", f"{expected}, by the order's lines and end")
