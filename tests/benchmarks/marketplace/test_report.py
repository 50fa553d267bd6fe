"""What a record says of a run: shares, ends of sessions, payments and epochs, from requests made by hand."""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace.driving.report import at_share, lines_of, report_of
from benchmarks.marketplace.record import Asked, Ended, Kind, MarkSeen, Record
from tests.benchmarks.marketplace.test_record import asked

ACCEPTED = {"outcome": "ACCEPTED", "order_id": 1, "refused": [], "repeated": False}


def at(seconds: float, kind: Kind, took_ms: int = 10, **given: Any) -> Asked:
    sent_us = int(seconds * 1e6) + 77_000_000
    values = {"session": "", "ended_us": sent_us + took_ms * 1000, "result": {"delivered": [1]}}
    return asked(1, kind=kind, sent_us=sent_us, **values | given)


def checkout(seconds: float, session: str, **result: Any) -> Asked:
    return at(seconds, Kind.CHECKOUT, session=session, result=ACCEPTED | result)


RECORD = Record.of(
    [
        at(0, Kind.ADD, session="a"),
        checkout(0.5, "a"),
        checkout(1.5, "b", refused=[1]),
        checkout(1.6, "c", outcome="NOT_ACCEPTED", order_id=None),
        at(1.7, Kind.ABANDON, session="d", result=3),
        at(2.5, Kind.DELIVERY, took_ms=700),
        at(2.6, Kind.DELIVERY, result={"delivered": []}),
        at(2.7, Kind.PRICE, result={"outcome": "STALE", "version": "v0", "price": 1, "change": 0}),
        at(2.8, Kind.REPLACE, ended=Ended.UNKNOWN, result=None),
        at(3.9, Kind.DASHBOARD),
        at(4.5, Kind.DELIVERY),
    ],
    [MarkSeen("a", "SUCCESS", 77_900_000), MarkSeen("b", "ABORT", 0), MarkSeen("c", "NOT_ACCEPTED", 78_700_000)],
)


def test_a_session_is_a_checkout_in_the_shares_also_if_it_was_abandoned() -> None:
    report = report_of(RECORD, 1.0)
    assert report.sent == {Kind.CHECKOUT: 4, Kind.DELIVERY: 3, Kind.PRICE: 1, Kind.REPLACE: 1, Kind.DASHBOARD: 1}
    planned = {"checkout": 0.5, "delivery": 0.5}
    assert lines_of(report, planned, 0, 1.0)[0] == (
        "shares       checkout 40.00% (planned 50.00%), delivery 30.00% (planned 50.00%)"
    )


def test_ends_are_counted_by_what_they_were() -> None:
    assert report_of(RECORD, 1.0).ended == {
        "SUCCESS": 1,
        "ABORT": 1,
        "NOT_ACCEPTED": 1,
        "orders": 2,
        "orders with refused lines": 1,
        "checkouts without an order": 1,
        "carts sealed": 1,
        "deliveries of nothing": 1,
        "prices for a stale version": 1,
        "replace unknown": 1,
    }


def test_a_payment_counts_from_the_submission_to_its_mark_if_that_was_seen() -> None:
    report = report_of(RECORD, 1.0)
    assert report.paid_us == [100_000, 400_000]
    assert "paid         2 checkouts, from submission to mark: p50 400.0 ms" in "\n".join(lines_of(report, {}, 0, 1.0))


def test_epochs_are_whole_ones_by_the_time_of_the_answers() -> None:
    epochs = report_of(RECORD, 1.0).epochs
    assert [epoch.answered.total() for epoch in epochs] == [1, 2, 2, 2]
    assert epochs[3].answered == {Kind.DELIVERY: 1, Kind.DASHBOARD: 1}
    assert epochs[3].latencies == [10_000, 700_000]
    lines = [line for line in lines_of(report_of(RECORD, 2.0), {}, 2.0, 2.0) if line.startswith("epoch")]
    assert lines == [
        "epoch 1      1.5/s  p50 10.0 ms  p99 10.0 ms  (1.5 checkout) (warm-up)",
        "epoch 2      2.0/s  p50 10.0 ms  p99 700.0 ms  (0.5 dashboard, 1.0 delivery, 0.5 price)",
    ]


def test_nothing_has_no_figures() -> None:
    assert lines_of(report_of(Record(), 1.0), {"checkout": 1.0}, 0, 1.0) == [
        "shares       checkout 0.00% (planned 100.00%)",
        "ended        nothing",
    ]


def test_a_percentile_is_one_of_the_values() -> None:
    values = [*range(100)]
    assert [at_share(values, share) for share in (0, 50, 99, 100)] == [0, 50, 99, 99]
    assert at_share([], 50) == 0
