"""The audit after a run: what clients were told is so. Every order that was told is there once, was paid as the
provider and its mark say, and every product is what its seller's client believes it to be.

It reads by ordinary requests, so it works wherever the load does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.driver.reading import Unread, read_all, read_each
from benchmarks.driver.workload import Audit
from benchmarks.marketplace.answers import CheckoutOutcome, OrderShown, PaymentShown
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.provider.own import read_book
from benchmarks.marketplace.record import Charge, Ended, Kind, Record
from benchmarks.marketplace.services.order.rows import Order, order
from benchmarks.marketplace.services.payment.rows import PaymentStatus, payment
from benchmarks.marketplace.services.product.rows import Product, product
from benchmarks.marketplace.values import OrderStatus
from styx.client.base import Client

SHOWN_MAX: Final = 20
"""Violations that are described; further ones are counted."""
_VOUCHER: Final = "VOUCHER"


class Placed(NamedTuple):
    """An order that a client was told of: (customer, order)."""

    customer_id: int
    order_id: int


async def audited(client: Client, witnesses: list[Any], provider: str) -> Audit:
    """Reads and compares. `provider` is the address whose book is read, empty if there is none."""
    record = record_of(witnesses)
    found = Findings()
    placed = told_orders(record, found)
    book = None if not provider else await asyncio.to_thread(read_book, provider)
    await _products(client, record, found)
    await _orders(client, record, placed, book, found)
    checked = [
        f"{len(record.mirror)} products that were changed: each is as its seller's client believes",
        f"{len(placed)} orders that were told: each is there, once, and was paid or not as its mark says",
    ]
    if book is not None:
        checked.append(f"{len(book)} charges of the provider: each order has one, of its sum")
    return Audit(checked, found.texts())


class Findings:
    """Violations, the first ones in words."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._more = 0

    def add(self, text: str) -> None:
        """One more."""
        if len(self._texts) < SHOWN_MAX:
            self._texts.append(text)
        else:
            self._more += 1

    def texts(self) -> list[str]:
        """All that are described, and how many are not."""
        return [*self._texts, *([f"and {self._more} more"] if self._more else [])]


def told_orders(record: Record, found: Findings) -> dict[Placed, str]:
    """The checkout of each order that was told. One order for two checkouts, and two for one, are violations."""
    of_order: dict[Placed, str] = {}
    of_session: dict[str, Placed] = {}
    for placed, session in _accepted(record):
        if of_order.setdefault(placed, session) != session:
            found.add(f"order {tuple(placed)} was told to the checkouts {of_order[placed]} and {session}")
        if of_session.setdefault(session, placed) != placed:
            found.add(f"the checkout {session} has the orders {tuple(of_session[session])} and {tuple(placed)}")
    return of_order


def _accepted(record: Record) -> Iterator[tuple[Placed, str]]:
    for asked in record:
        submitted = asked.kind in (Kind.CHECKOUT, Kind.CHECKOUT_AGAIN) and asked.ended is Ended.COMMITTED
        if submitted and asked.result["outcome"] == CheckoutOutcome.ACCEPTED:
            yield Placed(asked.key, asked.result["order_id"]), asked.session


async def _products(client: Client, record: Record, found: Findings) -> None:
    believed = {(each.seller_id, each.product_id): each for each in record.mirror if each.certain}
    for key, shown in (await read_each(client, product, believed, "show")).items():
        if isinstance(shown, Unread) or shown is None:
            found.add(f"product {key} could not be read: {shown}")
            continue
        there, each = msgspec.convert(shown, Product), believed[key]
        if (there.price, there.version, there.active) != (each.price, each.version, each.active):
            found.add(
                f"product {key} is {there.version} at {there.price}, active {there.active}; the last acknowledged "
                f"change made it {each.version} at {each.price}, active {each.active}"
            )


async def _orders(
    client: Client, record: Record, placed: dict[Placed, str], book: list[Charge] | None, found: Findings
) -> None:
    marks = {mark.session: mark.status for mark in record.marks}
    charges = None if book is None else {charge.invoice_number: charge for charge in book}
    reads = [(each.customer_id, (each.order_id,)) for each in placed]
    orders, payments = await read_all(client, order, reads, "show"), await read_all(client, payment, reads, "show")
    for each, session in placed.items():
        key = (each.customer_id, (each.order_id,))
        if isinstance(orders[key], Unread) or isinstance(payments[key], Unread):
            found.add(f"order {tuple(each)} of the checkout {session} could not be read: {orders[key]}")
            continue
        shown = msgspec.convert(orders[key], OrderShown).order
        paid = msgspec.convert(payments[key], PaymentShown)
        for text in _wrong(shown, paid, session, marks.get(session), charges):
            found.add(f"order {tuple(each)}: {text}")
    for charge in book or ():
        if charge.differing:
            found.add(f"the provider was asked {charge.differing} times for something else as {charge.invoice_number}")


def _wrong(
    shown: Order, paid: PaymentShown, session: str, mark: str | None, charges: dict[str, Charge] | None
) -> Iterator[str]:
    """What is wrong with an order that was told to the checkout `session`."""
    if shown.checkout_id != session:
        yield f"it is that of the checkout {shown.checkout_id}, and was told to {session}"
    if shown.status == OrderStatus.INVOICED:
        yield "its payment has not ended"
        return
    failed = shown.status == OrderStatus.PAYMENT_FAILED
    if mark is not None and mark != ("ABORT" if failed else "SUCCESS"):
        yield f"it is {shown.status}, and its mark says {mark}"
    asked = sum(row.value for row in paid.payments if row.type != _VOUCHER)
    vouchers = sum(row.value for row in paid.payments if row.type == _VOUCHER)
    if asked != shown.total_invoice or vouchers != (0 if failed else shown.total_incentive):
        yield f"{asked} and vouchers of {vouchers} were paid for {shown.total_invoice} and {shown.total_incentive}"
    if any((row.status != PaymentStatus.SUCCEEDED) != failed for row in paid.payments):
        yield f"it is {shown.status}, and its payments are {[row.status.value for row in paid.payments]}"
    # Of what was unreachable the provider may have decided without being heard.
    if charges is not None and all(row.status != PaymentStatus.CANCELED for row in paid.payments):
        charge = charges.get(shown.invoice_number)
        if charge is None:
            yield f"it is {shown.status}, and the provider was not asked about {shown.invoice_number}"
        elif charge is not None and (charge.cents != shown.total_invoice or charge.approved == failed):
            yield (
                f"it is {shown.status} with {shown.total_invoice}; the provider has "
                f"{'approved' if charge.approved else 'rejected'} {charge.cents}"
            )
