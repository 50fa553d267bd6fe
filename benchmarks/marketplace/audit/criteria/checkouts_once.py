"""S#2: a submission has one order at most, however often it is sent, and gets the same answer each time: the order that
is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.asked import checkout_result, is_checkout, submitted
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Ended
from benchmarks.marketplace.services.order.rows import orders


def violations(run: Run) -> Iterator[Violation]:
    """Counts orders and events by submission, and compares its answers."""
    made = Counter((customer, row.checkout_id) for customer, row in run.after.all_rows(orders))
    told = Counter((each.value.buyer.customer_id, each.value.buyer.checkout_id) for each in _requested(run))
    for kind, counts in (("orders", made), ("reservations", told)):
        for (customer, checkout_id), count in counts.items():
            if count > 1:
                yield Violation(Criterion.S2, _name(customer, checkout_id), f"{count} {kind}", "one at most")
    placed = {(customer, row.checkout_id): row.order_id for customer, row in run.after.all_rows(orders)}
    yield from _answers(run, placed)


def _requested(run: Run) -> Iterator[Any]:
    return run.history.of(events.reserve_stock)


def _answers(run: Run, placed: dict[tuple[int, str], int]) -> Iterator[Violation]:
    """The first answer is the only one that is no repetition, and all others say the same: the order that is `placed`,
    or none.
    """
    first: dict[tuple[int, str], tuple[Any, int]] = {}
    fresh: Counter[tuple[int, str]] = Counter()
    for asked in run.record:
        if not is_checkout(asked):
            continue
        checkout_id, result = submitted(asked).checkout_id, checkout_result(asked)
        name = (asked.key, checkout_id)
        if result is not None:
            fresh[name] += not result.repeated
            answer = (result.outcome, result.order_id)
            known, ended_us = first.setdefault(name, (answer, asked.ended_us))
            first[name] = (known, min(ended_us, asked.ended_us))
            if answer != known:
                yield Violation(Criterion.S2, _name(*name), _answer(answer), f"{_answer(known)}, as it was answered")
        elif asked.ended is Ended.ABORTED and name in first and asked.sent_us > first[name][1]:
            expected = f"{_answer(first[name][0])}, as it was answered before it was sent again"
            yield Violation(Criterion.S2, _name(*name), f"refused by {asked.error}", expected)
    for name, (known, _) in first.items():
        there = placed.get(name)
        if known[1] != there:
            expected = "no order, as there is none" if there is None else f"order {there}, which is there"
            yield Violation(Criterion.S2, _name(*name), _answer(known), expected)
    for name, count in fresh.items():
        if count > 1:
            yield Violation(Criterion.S2, _name(*name), f"{count} answers that are no repetition", "one")


def _name(customer: int, checkout_id: str) -> str:
    return f"checkout {checkout_id} of customer {customer}"


def _answer(answer: tuple[Any, Any]) -> str:
    outcome, order_id = answer
    return f"{outcome}, order {order_id}"
