"""The audit: all criteria on one run, and what each one says that it has looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria import (
    abandonments,
    archived_entries,
    archived_orders,
    archived_payments,
    archived_shipments,
    atomicity,
    carts,
    charges,
    checkouts_once,
    communication,
    copies_at_end,
    customer_counts,
    dashboards,
    deliveries,
    low_stock,
    mirror,
    money,
    order_steps,
    processed_once,
    product_order,
    refusals,
    replication,
    stock_bounds,
    stock_follows_product,
    stock_replay,
)
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Ended, Kind

VIOLATIONS_MAX: Final = 50
"""Violations of one criterion that are told; a broken rule can break for every order."""
COUNTED_MAX: Final = 10_000
"""Violations of one criterion that are counted beyond these."""

Judge = Callable[[Run], Iterator[Violation]]

CRITERIA: Final[dict[tuple[Criterion, ...], Judge]] = {
    (Criterion.ATOM,): atomicity.violations,
    (Criterion.COMM,): communication.violations,
    (Criterion.S1,): stock_follows_product.violations,
    (Criterion.S2,): checkouts_once.violations,
    (Criterion.S3,): stock_bounds.violations,
    (Criterion.S4,): customer_counts.violations,
    (Criterion.S5,): product_order.violations,
    (Criterion.S6,): deliveries.violations,
    (Criterion.S7,): stock_replay.violations,
    (Criterion.ORD,): order_steps.violations,
    (Criterion.DEL,): processed_once.violations,
    (Criterion.R1,): copies_at_end.violations,
    (Criterion.R2, Criterion.R3, Criterion.TOGETHER): replication.violations,
    (Criterion.SNAP,): dashboards.violations,
    (Criterion.LOG_A,): archived_orders.violations,
    (Criterion.LOG_B,): archived_entries.violations,
    (Criterion.LOG_C,): archived_shipments.violations,
    (Criterion.LOG_D,): archived_payments.violations,
    (Criterion.PSP,): charges.violations,
    (Criterion.MONEY,): money.violations,
    (Criterion.BAL,): mirror.violations,
    (Criterion.C2,): abandonments.violations,
    (Criterion.C3,): low_stock.violations,
    (Criterion.CART,): carts.violations,
    (Criterion.ERR,): refusals.violations,
}
"""The functions, with the criteria that each of them judges."""


def audit(run: Run) -> list[Violation]:
    """All that breaks a criterion, in the order of the criteria. It is empty if the run is as it should be."""
    found: list[Violation] = []
    for criteria, judge in CRITERIA.items():
        those = judge(run)
        found += islice(those, VIOLATIONS_MAX)
        more = sum(1 for _ in islice(those, COUNTED_MAX))
        if more:
            at_least = "at least " if more == COUNTED_MAX else ""
            found.append(Violation(criteria[0], "in all", f"{at_least}{more} violations more", "none"))
    return found


def checked(run: Run) -> list[str]:
    """What was looked at, for whoever reads that nothing was found."""
    asked = Counter((each.kind, each.ended) for each in run.record)
    committed = {kind: asked[kind, Ended.COMMITTED] for kind in Kind if asked[kind, Ended.COMMITTED]}
    told = {event.name: run.history.count(event) for event in events.EVENTS}
    counts = replication.anomalies(run)
    unknown = sum(count for (_, ended), count in asked.items() if ended is Ended.UNKNOWN)
    return [
        f"{len(CRITERIA)} criteria on {len(run.stories)} orders, of {sum(told.values())} events",
        f"requests that committed: {', '.join(f'{number} {kind}' for kind, number in committed.items()) or 'none'}; "
        f"{unknown} without an answer",
        f"copies follow {run.terms.replication}: of {counts.lines} lines {counts.stale} saw a stale price, "
        f"{counts.back} an older one than before; of {counts.carts} carts of a seller {counts.torn} saw no beginning "
        "of its changes",
    ]
