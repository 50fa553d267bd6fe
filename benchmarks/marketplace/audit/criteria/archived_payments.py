"""LOG-d: each payment is archived once, however it ended, with its card; the card's security number is nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria.archiving import once
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import LOADED, Step
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.payment.rows import cards, payments


def violations(run: Run) -> Iterator[Violation]:
    """Joins the archive with the payments' ends, and with what the service still has of them."""
    if not run.terms.archive:
        return
    numbered = {story.invoice_number: key for key, story in run.stories.items()}
    found: dict[Any, list[Step]] = {}
    for told in run.history.of(events.payment_archived):
        number, customer = told.value.invoice_number, told.value.customer_id
        found.setdefault(number, []).append((told.place, told.id))
        if number not in numbered:
            continue
        order_id = numbered[number][1]
        for table, archived in ((payments, told.value.payments), (cards, told.value.cards)):
            rows = run.after.rows_of_order(table, customer, order_id)
            if rows != archived:
                entity = f"payment {number}"
                yield Violation(Criterion.LOG_D, entity, f"{archived} archived", f"{rows}, its rows of {table.name}")
    ended = {
        story.invoice_number: steps[0]
        for story in run.stories.values()
        if (steps := story.paid or story.failed or (story.approved if LOADED in story.approved else []))
    }
    yield from once(Criterion.LOG_D, "payment", found, ended)
