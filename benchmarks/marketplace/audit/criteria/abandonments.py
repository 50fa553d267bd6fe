"""C.2: a failed checkout is told as abandoned once if its customer has not submitted another one within ten minutes,
and never otherwise. A submission at ten minutes exactly is in time.

Whose time is earlier may stand later in the serial order. One that comes behind what was told is too late for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.history import Told
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.events import CartAbandoned
from benchmarks.marketplace.record import Place
from benchmarks.marketplace.services.cart.rows import checkouts

WINDOW: Final = timedelta(minutes=10)
LATE_MAX: Final = timedelta(minutes=1)
"""How long behind its window a failure may be told: workers may be down when it ends."""


class Failure(NamedTuple):
    """A checkout that failed. `retried`: where another submission came in time, None if none did."""

    customer: int
    checkout_id: str
    cause: str
    at: datetime
    retried: Place | None


def violations(run: Run) -> Iterator[Violation]:
    """Runs the query from scratch, and compares it with what was told."""
    told: dict[tuple[int, str], list[Told[CartAbandoned]]] = {}
    for each in run.history.of(events.cart_abandoned):
        told.setdefault((each.value.customer_id, each.value.checkout_id), []).append(each)
    for failure in _failures(run):
        those = told.pop((failure.customer, failure.checkout_id), [])
        yield from _judge(run, failure, those)
    for customer, checkout_id in told:
        yield _violation(customer, checkout_id, "abandoned", "nothing: it has not failed")
    yield from _rows(run)


def _judge(run: Run, failure: Failure, those: list[Told[CartAbandoned]]) -> Iterator[Violation]:
    name = (failure.customer, failure.checkout_id)
    ends = failure.at + WINDOW
    if failure.retried is not None and those and failure.retried < those[0].place:
        yield _violation(*name, "abandoned", "nothing: another submission came in time")
    elif len(those) > 1:
        yield _violation(*name, f"told {len(those)} times", "once")
    elif failure.retried is None and not those and run.end is not None and run.end > ends + LATE_MAX:
        yield _violation(*name, "nothing", f"abandoned at {ends}: nobody has tried again")
    for each in those:
        value = each.value
        if (value.cause, value.failed_at, value.abandoned_at) != (failure.cause, failure.at, ends):
            found = f"{value.cause} at {value.failed_at}, abandoned at {value.abandoned_at}"
            yield _violation(*name, found, f"{failure.cause} at {failure.at}, abandoned at {ends}")
        if each.time <= ends:
            yield _violation(*name, f"told at {each.time}", f"later than {ends}: a submission then is in time")


def _failures(run: Run) -> Iterator[Failure]:
    """All of them, each with whether the next submission of its customer came in time."""
    requests: dict[int, list[tuple[Place, datetime]]] = {}
    for told in run.history.of(events.reserve_stock):
        requests.setdefault(told.value.buyer.customer_id, []).append((told.place, told.time))
    for event, told in run.history.merged(events.reserve_stock_failed, events.payment_failed):
        value: Any = told.value
        buyer = value.buyer
        cause = "NOT_RESERVED" if event is events.reserve_stock_failed else f"PAYMENT_{value.status.upper()}"
        later = _next(requests.get(buyer.customer_id, []), told.place)
        retried = later[0] if later is not None and later[1] <= told.time + WINDOW else None
        yield Failure(buyer.customer_id, buyer.checkout_id, cause, told.time, retried)


def _next(requests: list[tuple[Place, datetime]], place: Place) -> tuple[Place, datetime] | None:
    """The first of these that is behind the place."""
    low = bisect_right(requests, place, key=lambda request: request[0])
    return requests[low] if low < len(requests) else None


def _rows(run: Run) -> Iterator[Violation]:
    """Each submission's row says what was told."""
    told = {
        (each.value.customer_id, each.value.checkout_id): each.value.abandoned_at
        for each in run.history.of(events.cart_abandoned)
    }
    for customer, row in run.after.all_rows(checkouts):
        expected = told.get((customer, row.checkout_id))
        if row.abandoned_at != expected:
            yield _violation(customer, row.checkout_id, f"abandoned_at {row.abandoned_at}", f"{expected}, as told")


def _violation(customer: int, checkout_id: str, found: str, expected: str) -> Violation:
    return Violation(Criterion.C2, f"checkout {checkout_id} of customer {customer}", found, expected)
