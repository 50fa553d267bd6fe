"""PSP: the provider has one charge for each invoice, of its sum, and what it answered is what happened to the order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.marketplace import charging, events
from benchmarks.marketplace.audit.run import Run, Terms
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.charging import Answer
from benchmarks.marketplace.record import Charge


def violations(run: Run) -> Iterator[Violation]:
    """Joins the provider's book with the payments that were told; without a provider, with what it would decide."""
    paid: dict[str, tuple[Answer, Any]] = {}
    for event, told in run.history.merged(events.payment_confirmed, events.payment_failed):
        value = told.value
        story = run.stories[value.buyer.customer_id, value.order_id]
        answer = Answer.APPROVED if event is events.payment_confirmed else Answer(value.status)
        if story.invoice_number in paid:
            yield _violation(story.invoice_number, "a second payment", "one")
        paid[story.invoice_number] = (answer, value)
        if value.total_amount != story.total_invoice:
            yield _violation(story.invoice_number, f"{value.total_amount} paid", f"{story.total_invoice}, its invoice")
    if run.book is None:
        yield from _computed(paid, run.terms)
    else:
        yield from _booked(run, paid, run.book)


def _computed(paid: dict[str, tuple[Answer, Any]], terms: Terms) -> Iterator[Violation]:
    for number, (answer, _) in paid.items():
        rejected = charging.rejected(number, terms.rejected, terms.seed)
        expected = Answer.REJECTED if rejected else Answer.APPROVED
        if answer != expected:
            yield _violation(number, str(answer), f"{expected}, which its number and the seed decide")


def _booked(run: Run, paid: dict[str, tuple[Answer, Any]], book: Sequence[Charge]) -> Iterator[Violation]:
    charges = {charge.invoice_number: charge for charge in book}
    for number, count in Counter(charge.invoice_number for charge in book).items():
        if count > 1:
            yield _violation(number, f"{count} charges", "one")
    for number, charge in charges.items():
        if charge.differing:
            yield _violation(number, f"{charge.differing} questions that differ", "the same question each time")
        if number not in paid and run.settled:
            yield _violation(number, "a charge", "none: no payment of it was told")
    for number, (answer, value) in paid.items():
        booked = charges.get(number)
        if answer is Answer.UNREACHABLE:
            continue  # the provider may have decided, and not been heard
        if booked is None:
            yield _violation(number, f"{answer}, without a charge", "a charge")
            continue
        told = (value.buyer.customer_id, value.total_amount, str(value.buyer.payment_type), answer is Answer.APPROVED)
        asked = (booked.customer_id, booked.cents, str(booked.payment_type), booked.approved)
        if told != asked:
            yield _violation(number, f"(customer, cents, type, approved) {told}", f"{asked}, as it was charged")


def _violation(number: str, found: str, expected: str) -> Violation:
    return Violation(Criterion.PSP, f"invoice {number}", found, expected)
