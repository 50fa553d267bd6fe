"""Faults planted in what was read of a sound run: each is found, by the criterion that it breaks, and told in words."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

import msgspec
import pytest

from benchmarks.marketplace import events, settings
from benchmarks.marketplace.audit.asked import submitted
from benchmarks.marketplace.audit.audit import VIOLATIONS_MAX, audit
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion
from benchmarks.marketplace.record import Asked, Charge, Ended, Kind, Place
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.cart.rows import checkouts
from benchmarks.marketplace.services.customer.rows import counts
from benchmarks.marketplace.services.order.rows import order_history, order_items, orders
from benchmarks.marketplace.services.payment.rows import payments
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller.rows import low_stock, order_entries
from benchmarks.marketplace.services.shipment.rows import packages, shipments, waiting
from benchmarks.marketplace.services.stock.rows import stock_items
from tests.benchmarks.marketplace.audit.planting import (
    Plant,
    asked,
    both,
    last,
    of_kind,
    other,
    rows,
    told,
    twice,
    value,
    without_last,
)
from tests.benchmarks.marketplace.audit.workload import red, run_of


@cache
def sound() -> Run:
    """A run of all kinds of requests, in which everything is right. The tests only read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "REJECTED", 20.0)
        return asyncio.run(run_of(lambda shop: shop.mix(8), pieces=12))


def booked(run: Run) -> Run:
    """With the book of a provider that has decided as it was told."""
    book = [_charge(run, event.value, approved=True) for event in run.history.of(events.payment_confirmed)]
    book += [_charge(run, event.value, approved=False) for event in run.history.of(events.payment_failed)]
    return replace(run, book=book)


def _charge(run: Run, paid: Any, *, approved: bool) -> Charge:
    story = run.stories[paid.buyer.customer_id, paid.order_id]
    return Charge(
        invoice_number=story.invoice_number,
        customer_id=paid.buyer.customer_id,
        cents=paid.total_amount,
        payment_type=paid.buyer.payment_type,
        approved=approved,
        at=paid.date,
        asked=1,
    )


def charged(change: Any) -> Plant:
    """The book, changed."""

    def plant(run: Run) -> Run:
        run = booked(run)
        assert run.book is not None
        return replace(run, book=change(list(run.book)))

    return plant


def add(column: str, by: Any = 1) -> Any:
    """A change of rows: the last one has so much more."""

    def change(those: list[Any]) -> None:
        setattr(those[-1], column, getattr(those[-1], column) + by)

    return change


def later(place: Place) -> Place:
    return place._replace(epoch=place.epoch + 1_000)


def early(those: list[Any]) -> list[Any]:
    """The last event is told before all others."""
    return [*those[:-1], those[-1]._replace(place=Place(-1, 9, 9))]


def late(those: list[Any]) -> list[Any]:
    return [those[0]._replace(place=later(those[0].place)), *those[1:]]


def lines(**changes: Any) -> Any:
    """A change of a list of items or lines: the first one has other values."""
    return lambda those: [msgspec.structs.replace(those[0], **changes), *those[1:]]


def ended_before_it_was_sent(run: Run) -> Run:
    """The answer to each replacement comes before all checkouts, so no old version may be reserved."""
    those = [other(each, ended_us=each.sent_us - 10**9) if each.kind is Kind.REPLACE else each for each in run.record]
    return replace(run, record=those)


def reversed_in_time(run: Run) -> Run:
    """The answers of price updates come in another order than their numbers."""
    those = [
        other(each, sent_us=-each.ended_us, ended_us=-each.sent_us) if each.kind is Kind.PRICE else each
        for each in run.record
    ]
    return replace(run, record=those)


def wrong_mirror(run: Run) -> Run:
    mirrored = msgspec.structs.replace(run.mirror[0], price=run.mirror[0].price + 1)
    return replace(run, mirror=[mirrored, *run.mirror[1:]])


@cache
def submissions() -> Counter[str]:
    """How often each checkout id was sent."""
    return Counter(submitted(each).checkout_id for each in sound().record if each.kind is Kind.CHECKOUT)


def told_alone(each: Asked) -> bool:
    """A submission that was accepted, and never sent again."""
    accepted = of_kind(Kind.CHECKOUT)(each) and each.result["outcome"] == "ACCEPTED"
    return accepted and submissions()[submitted(each).checkout_id] == 1


def wrong_board(each: Any) -> Any:
    board = each.result[0] | {"total_amount": each.result[0]["total_amount"] + 1}
    return other(each, result=[board, *each.result[1:]])


def both_parts_of_another_moment(each: Any) -> Any:
    """Sums and entries agree, but are of no moment of the log."""
    empty = dict.fromkeys(each.result[0], 0) | {"seller_id": each.key}
    return other(each, result=[empty, empty, True, None])


PLANTS: Final[dict[str, tuple[Criterion, Plant]]] = {
    "a shipment is missing": (Criterion.ATOM, rows(shipments, lambda those: those[:-1])),
    "a payment is missing": (Criterion.ATOM, rows(payments, lambda those: [])),
    "an order that has not ended": (Criterion.ATOM, told(events.shipment_notification, without_last)),
    "a mark is missing": (Criterion.ATOM, told(events.transaction_mark, without_last)),
    "a reservation without an answer": (Criterion.ATOM, told(events.stock_confirmed, without_last)),
    "an invoice of another transaction": (Criterion.ATOM, told(events.invoice_issued, late)),
    "a checkout with another order": (
        Criterion.ATOM,
        rows(checkouts, add("order_id", 1), where=lambda row: row.order_id),
    ),
    "a graph lets a cart read products": (
        Criterion.COMM,
        lambda run: replace(run, calls=[*run.calls, ("cart.checkout", "product.show")]),
    ),
    "a cart has tried to": (Criterion.COMM, asked(lambda each: other(each, error="OutsideGraph"))),
    "a stock of another version": (Criterion.S1, rows(stock_items, lambda those: setattr(those[0], "version", "old"))),
    "an old version is reserved": (Criterion.S1, told(events.stock_confirmed, last(items=lines(version="old")))),
    "an old version, by the clocks": (Criterion.S1, ended_before_it_was_sent),
    "a submission with two orders": (
        Criterion.S2,
        rows(orders, lambda those: [*those, msgspec.structs.replace(those[-1], order_id=99)]),
    ),
    "a second answer that is none": (
        Criterion.S2,
        asked(
            lambda each: other(each, result=each.result | {"repeated": False}),
            where=lambda each: each.kind is Kind.CHECKOUT and each.result["repeated"],
        ),
    ),
    "another order in a second answer": (
        Criterion.S2,
        asked(
            lambda each: other(each, result=each.result | {"order_id": 99}),
            where=lambda each: each.kind is Kind.CHECKOUT and each.result["repeated"],
        ),
    ),
    "an order that was told and is not there": (
        Criterion.S2,
        asked(lambda each: other(each, result=each.result | {"order_id": 99}), where=told_alone),
    ),
    "an order that is there and was not told": (
        Criterion.S2,
        asked(
            lambda each: other(each, result=each.result | {"order_id": None, "outcome": "NOT_ACCEPTED"}),
            where=told_alone,
        ),
    ),
    "a second submission is refused": (
        Criterion.S2,
        asked(
            lambda each: other(each, ended=Ended.ABORTED, error="EmptyCart", sent_us=2**60),
            where=lambda each: each.kind is Kind.CHECKOUT and each.result["repeated"],
        ),
    ),
    "a piece from nowhere": (Criterion.S3, rows(stock_items, add("qty_available"))),
    "more reserved than there is": (
        Criterion.S3,
        rows(stock_items, lambda those: setattr(those[0], "qty_reserved", those[0].qty_available + 1)),
    ),
    "more reserved for a moment": (Criterion.S3, told(events.stock_confirmed, last(items=lines(quantity=500)))),
    "a reservation that stays": (Criterion.S3, told(events.payment_failed, without_last)),
    "one count too many": (Criterion.S4, rows(counts, add("delivery_count"))),
    "one count too few": (Criterion.S4, told(events.reserve_stock_failed, twice)),
    "two changes with one number": (Criterion.S5, told(events.product_changed, twice)),
    "a price of an old version": (
        Criterion.S5,
        both(
            told(events.price_updated, last(change=lambda number: 10**6, version=lambda version: "v0")),
            told(events.product_changed, last(change=lambda number: 10**6)),
        ),
    ),
    "a product that no change made": (Criterion.S5, value(product, (1, 1), price=1)),
    "an update that is not in the log": (
        Criterion.S5,
        asked(
            lambda each: other(each, result=each.result | {"outcome": "UPDATED", "change": 10**6}),
            where=of_kind(Kind.PRICE),
        ),
    ),
    "answers in another order": (Criterion.S5, reversed_in_time),
    "a package delivered twice": (Criterion.S6, told(events.delivery_notification, twice)),
    "a queue that lacks an order": (Criterion.S6, rows(waiting, lambda those: those[:-1])),
    "an older order passed over": (Criterion.S6, told(events.delivery_notification, early)),
    "a delivery with another answer": (
        Criterion.S6,
        asked(
            lambda each: other(each, result=each.result | {"delivered": []}),
            where=lambda each: each.kind is Kind.DELIVERY and each.result["delivered"],
        ),
    ),
    "an answer of the stock that is wrong": (
        Criterion.S7,
        told(events.reserve_stock_failed, last(products=lines(status="UNAVAILABLE"))),
    ),
    "a stock that its events do not make": (Criterion.S7, rows(stock_items, add("ytd"))),
    "a step left out": (Criterion.ORD, rows(order_history, lambda those: those[:1] + those[2:])),
    "a time that falls": (
        Criterion.ORD,
        rows(order_history, lambda those: setattr(those[1], "created_at", those[0].created_at - timedelta(1))),
    ),
    "a shipment before its payment": (Criterion.ORD, told(events.payment_confirmed, late)),
    "a package behind the end": (Criterion.ORD, told(events.delivery_notification, late)),
    "an event lost": (Criterion.DEL, told(events.reserve_stock_failed, without_last)),
    "an event processed twice": (Criterion.DEL, rows(stock_items, add("order_count"))),
    "an event in its log twice": (
        Criterion.DEL,
        told(events.transaction_mark, lambda those: [*those[:-1], those[-1], those[-1]]),
    ),
    "a copy that differs": (Criterion.R1, value("replica", (1, 1), price=1)),
    "a board of another moment": (Criterion.SNAP, asked(wrong_board, where=of_kind(Kind.DASHBOARD))),
    "a whole dashboard of no moment": (
        Criterion.SNAP,
        asked(
            both_parts_of_another_moment,
            where=lambda each: each.kind is Kind.DASHBOARD and each.result[0]["count_orders"] > 0,
        ),
    ),
    "an entry that is not open": (
        Criterion.SNAP,
        rows(order_entries, lambda those: setattr(those[0], "order_id", 999)),
    ),
    "an order not archived": (Criterion.LOG_A, told(events.order_archived, without_last)),
    "an order archived twice": (Criterion.LOG_A, told(events.order_archived, twice)),
    "an order archived as it was not": (
        Criterion.LOG_A,
        rows(order_items, add("quantity"), where=lambda row: row.order_id == 1),
    ),
    "entries not archived": (Criterion.LOG_B, told(events.entries_archived, without_last)),
    "entries archived in part": (Criterion.LOG_B, told(events.entries_archived, last(entries=lambda those: []))),
    "a shipment not archived": (Criterion.LOG_C, told(events.shipment_archived, without_last)),
    "a shipment archived early": (Criterion.LOG_C, told(events.shipment_archived, early)),
    "a package archived as it was not": (
        Criterion.LOG_C,
        rows(packages, add("quantity"), where=lambda row: row.order_id == 1 and row.status == "delivered"),
    ),
    "a payment not archived": (Criterion.LOG_D, told(events.payment_archived, without_last)),
    "a card archived that is not there": (
        Criterion.LOG_D,
        told(events.payment_archived, last(cards=lambda those: [])),
    ),
    "a payment that the seed rejects": (
        Criterion.PSP,
        lambda run: replace(run, terms=replace(run.terms, rejected=100.0)),
    ),
    "an invoice charged twice": (Criterion.PSP, charged(lambda book: [*book, book[0]])),
    "an invoice not charged": (Criterion.PSP, charged(lambda book: book[1:])),
    "another sum charged": (
        Criterion.PSP,
        charged(lambda book: [msgspec.structs.replace(book[0], cents=1), *book[1:]]),
    ),
    "a question that differs": (
        Criterion.PSP,
        charged(lambda book: [msgspec.structs.replace(book[0], differing=1), *book[1:]]),
    ),
    "a charge without a payment": (
        Criterion.PSP,
        charged(lambda book: [*book, msgspec.structs.replace(book[0], invoice_number="x")]),
    ),
    "a cent too much": (Criterion.MONEY, rows(orders, add("total_invoice"))),
    "a cent too little is paid": (Criterion.MONEY, rows(payments, add("value", -1))),
    "freight of a shipment": (Criterion.MONEY, rows(shipments, add("total_freight_value"))),
    "a voucher beyond its line": (
        Criterion.MONEY,
        told(events.stock_confirmed, last(items=lines(voucher=1, price_discount=1, unit_price=1))),
    ),
    "entries that are not all": (Criterion.MONEY, rows(order_entries, add("total_invoice"))),
    "a mirror that differs": (Criterion.BAL, wrong_mirror),
    "an abandoned cart not told": (Criterion.C2, told(events.cart_abandoned, without_last)),
    "an abandoned cart told twice": (Criterion.C2, told(events.cart_abandoned, twice)),
    "an abandoned cart that was retried": (
        Criterion.C2,
        told(events.reserve_stock_failed, lambda those: []),
    ),
    "an abandoned cart not kept": (
        Criterion.C2,
        rows(checkouts, lambda those: setattr(those[0], "abandoned_at", None), where=lambda row: row.abandoned_at),
    ),
    "a warning not told": (Criterion.C3, told(events.low_stock_warning, without_last)),
    "a warning of another level": (Criterion.C3, told(events.low_stock_warning, last(level=lambda level: level + 1))),
    "a warning not kept": (Criterion.C3, rows(low_stock, lambda those: [])),
    "a rise that is paid": (
        Criterion.CART,
        told(events.reserve_stock, last(items=lambda those: [*those, *_dearer(those[:1])])),
    ),
    "another quantity": (Criterion.CART, told(events.reserve_stock, last(items=lines(quantity=7)))),
    "a line that was not in the cart": (Criterion.CART, told(events.reserve_stock, last(items=lines(seller_id=77)))),
    "a line left out": (Criterion.CART, told(events.reserve_stock, last(items=lambda those: those[1:]))),
    "an error nobody declares": (
        Criterion.ERR,
        asked(lambda each: other(each, ended=Ended.ABORTED, error="KeyError"), where=of_kind(Kind.DELIVERY)),
    ),
}


def _dearer(those: list[Any]) -> Iterator[Any]:
    for each in those:
        yield msgspec.structs.replace(each, unit_price=each.unit_price + 100)


def test_the_run_is_sound_and_has_all_that_faults_are_planted_in() -> None:
    run = sound()
    assert audit(run) == []
    assert audit(booked(run)) == []
    assert all(run.history.count(event) for event in events.EVENTS)


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_found(name: str) -> None:
    criterion, plant = PLANTS[name]
    found = audit(plant(sound()))
    those = [violation for violation in found if violation.criterion is criterion]
    assert those, [str(violation)[:200] for violation in found]
    for violation in those:
        assert violation.entity
        assert violation.found != violation.expected
        assert str(violation).startswith(f"{criterion}: {violation.entity}: found ")


def test_every_criterion_has_a_planted_fault() -> None:
    elsewhere = {Criterion.R2, Criterion.R3, Criterion.TOGETHER}  # test_replication.py
    assert {criterion for criterion, _ in PLANTS.values()} | elsewhere == set(Criterion)


def test_many_violations_of_one_criterion_are_told_in_part_and_counted() -> None:
    run = replace(sound(), record=[other(each, ended=Ended.ABORTED, error="KeyError") for each in sound().record])
    those = [violation for violation in audit(run) if violation.criterion is Criterion.ERR]
    assert len(those) == VIOLATIONS_MAX + 1
    assert "violations more" in those[-1].found


def test_what_is_under_way_is_no_violation_of_what_holds_in_the_end() -> None:
    differing = value("replica", (1, 1), price=1)(sound())
    assert red(differing) == {"R1"}
    eventual = replace(differing.terms, replication=Replication.EVENTUAL)
    assert red(replace(differing, terms=eventual, settled=False)) == set()


def test_without_archives_none_are_demanded() -> None:
    run = sound()
    for event in (events.order_archived, events.entries_archived, events.shipment_archived, events.payment_archived):
        run = told(event, lambda those: [])(run)
    assert red(run) == {"LOG-a", "LOG-b", "LOG-c", "LOG-d", "MONEY", "DEL"}
    assert red(replace(run, terms=replace(run.terms, archive=False))) == set()
