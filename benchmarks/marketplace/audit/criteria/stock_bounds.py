"""S#3: at every moment 0 <= reserved <= available, and no piece comes from nowhere: those that were loaded or restocked
are there or are sold, and those that are reserved are those of the orders that wait for their payments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.stock.rows import stock_items

Key = tuple[int, int]


def violations(run: Run) -> Iterator[Violation]:
    """Adds up what the events say was reserved, given back, sold and restocked; answers count as they were given."""
    available: Counter[Key] = Counter()
    reserved: Counter[Key] = Counter()
    for key, row in run.before.all_rows(stock_items):
        available[key], reserved[key] = row.qty_available, row.qty_reserved
    kinds = (events.stock_confirmed, events.payment_confirmed, events.payment_failed, events.stock_increased)
    for place, those in run.history.transactions(*kinds):
        changed: set[Key] = set()
        for event, told in those:
            if event is events.stock_increased:
                key = (told.value.seller_id, told.value.product_id)
                available[key] += told.value.quantity
                changed.add(key)
                continue
            lines = told.value.items if event is events.stock_confirmed else told.value.lines
            for line in lines:
                key = (line.seller_id, line.product_id)
                reserved[key] += line.quantity if event is events.stock_confirmed else -line.quantity
                available[key] -= line.quantity if event is events.payment_confirmed else 0
                changed.add(key)
        for key in sorted(changed):
            if not 0 <= reserved[key] <= available[key]:
                found = f"{reserved[key]} reserved of {available[key]} at {tuple(place)}"
                yield Violation(Criterion.S3, f"stock {key}", found, "0 <= reserved <= available")
    yield from _at_the_end(run, available, reserved)


def _at_the_end(run: Run, available: Counter[Key], reserved: Counter[Key]) -> Iterator[Violation]:
    for key, row in run.after.all_rows(stock_items):
        entity = f"stock {key}"
        if not 0 <= row.qty_reserved <= row.qty_available:
            found = f"{row.qty_reserved} reserved of {row.qty_available}"
            yield Violation(Criterion.S3, entity, found, "0 <= reserved <= available")
        if row.qty_available != available[key]:
            expected = f"{available[key]}: what was loaded and restocked, without what was paid"
            yield Violation(Criterion.S3, entity, f"{row.qty_available} available", expected)
        if row.qty_reserved != reserved[key]:
            expected = f"{reserved[key]}: what was reserved, and neither paid nor given back"
            yield Violation(Criterion.S3, entity, f"{row.qty_reserved} reserved", expected)
        if run.settled and row.qty_reserved:
            yield Violation(Criterion.S3, entity, f"{row.qty_reserved} reserved", "none, since no payment is awaited")
