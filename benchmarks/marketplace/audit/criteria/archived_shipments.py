"""LOG-c: a shipment that is concluded is archived once, with all of its packages, which are delivered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria.archiving import once
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import Step
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.shipment.rows import packages, shipments


def violations(run: Run) -> Iterator[Violation]:
    """Joins the archive with the shipments' ends, and with what the service still has of them."""
    if not run.terms.archive:
        return
    found: dict[Any, list[Step]] = {}
    for told in run.history.of(events.shipment_archived):
        customer, order_id = told.value.customer_id, told.value.shipment.order_id
        found.setdefault((customer, order_id), []).append((told.place, told.id))
        for table, archived in ((shipments, [told.value.shipment]), (packages, told.value.packages)):
            rows = run.after.rows_of_order(table, customer, order_id)
            if rows != archived:
                entity = f"shipment {(customer, order_id)}"
                yield Violation(Criterion.LOG_C, entity, f"{archived} archived", f"{rows}, its rows of {table.name}")
        for row in told.value.packages:
            if row.delivery_date is None:
                entity = f"shipment {(customer, order_id)}"
                yield Violation(Criterion.LOG_C, entity, f"package {row.package_id} not delivered", "delivered")
    ended = {key: story.concluded[0] for key, story in run.stories.items() if story.concluded}
    yield from once(Criterion.LOG_C, "shipment", found, ended)
