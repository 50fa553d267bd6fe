"""What a run's record says beside latencies and rates: shares as they were planned and as they came, what became of
sessions, when payments had ended, and each epoch by itself. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.marketplace.answers import CheckoutOutcome, PriceOutcome
from benchmarks.marketplace.driving.mixes import TRANSACTIONS
from benchmarks.marketplace.record import Asked, Ended, Kind, Record

SECOND_US: Final = 1_000_000
NOT_MEASURED_US: Final = 0
"""The time of a mark that was read later."""


class Epoch(NamedTuple):
    """One epoch: transactions that were answered in it, by kind, and their latencies in microseconds, sorted."""

    answered: Counter[Kind]
    latencies: list[int]


class Report(NamedTuple):
    """`sent` are transactions, by kind, and sessions instead of checkouts. `ended` is what became of sessions and
    changes, by a word for each.

    `paid_us` is how long each checkout took from its submission to its mark, sorted. `epochs` are whole ones, from the
    first request on.
    """

    sent: Counter[Kind]
    ended: Counter[str]
    paid_us: list[int]
    epochs: list[Epoch]


def report_of(record: Record, epoch_s: float) -> Report:
    """Reads the record once."""
    marks = {mark.session: mark for mark in record.marks}
    sent: Counter[Kind] = Counter()
    ended: Counter[str] = Counter(mark.status for mark in record.marks)
    paid_us: list[int] = []
    spans: list[tuple[int, int, Kind]] = []
    begin_us = min((asked.sent_us for asked in record), default=0)
    sessions: set[str] = set()
    for asked in record:
        if asked.session:
            sessions.add(asked.session)
        if asked.kind in TRANSACTIONS:
            sent[asked.kind] += 1
            if asked.ended in (Ended.COMMITTED, Ended.ABORTED):
                spans.append((asked.ended_us - begin_us, asked.ended_us - asked.sent_us, asked.kind))
        ended.update(_words(asked))
        mark = marks.get(asked.session) if asked.kind is Kind.CHECKOUT else None
        if mark is not None and mark.seen_us != NOT_MEASURED_US:
            paid_us.append(mark.seen_us - asked.sent_us)
    # A cart that was not checked out has taken a checkout's turn.
    sent[Kind.CHECKOUT] = len(sessions)
    return Report(sent, ended, sorted(paid_us), _epochs(spans, epoch_s))


def lines_of(report: Report, planned: Mapping[str, float], warm_up_s: float, epoch_s: float) -> list[str]:
    """The lines of a summary."""
    whole = max(report.sent.total(), 1)
    shares = ", ".join(
        f"{kind} {report.sent[Kind(kind)] / whole:.2%} (planned {share:.2%})" for kind, share in planned.items()
    )
    ended = ", ".join(f"{report.ended[word]} {word}" for word in sorted(report.ended)) or "nothing"
    lines = [f"shares       {shares}", f"ended        {ended}"]
    if report.paid_us:
        figures = "  ".join(f"p{share} {_ms(at_share(report.paid_us, share))}" for share in (50, 90, 99))
        lines.append(f"paid         {len(report.paid_us)} checkouts, from submission to mark: {figures}")
    for number, epoch in enumerate(report.epochs):
        warm = " (warm-up)" if number * epoch_s < warm_up_s else ""
        kinds = ", ".join(f"{count / epoch_s:.1f} {kind.value}" for kind, count in sorted(epoch.answered.items()))
        lines.append(
            f"epoch {number + 1:<6} {epoch.answered.total() / epoch_s:.1f}/s  p50 {_ms(at_share(epoch.latencies, 50))}"
            f"  p99 {_ms(at_share(epoch.latencies, 99))}  ({kinds}){warm}"
        )
    return lines


def at_share(values: Sequence[int], percent: float) -> int:
    """The value of sorted `values` below which so many percent are; 0 of none."""
    return values[min(int(len(values) * percent / 100), len(values) - 1)] if values else 0


def _epochs(spans: Iterable[tuple[int, int, Kind]], epoch_s: float) -> list[Epoch]:
    found: dict[int, Epoch] = {}
    last = 0
    for at_us, latency_us, kind in spans:
        number = int(at_us / (epoch_s * SECOND_US))
        last = max(last, number)
        epoch = found.setdefault(number, Epoch(Counter(), []))
        epoch.answered[kind] += 1
        epoch.latencies.append(latency_us)
    # The last one has just begun.
    epochs = [found.get(number, Epoch(Counter(), [])) for number in range(last)]
    for epoch in epochs:
        epoch.latencies.sort()
    return epochs


def _words(asked: Asked) -> list[str]:
    """What became of a session or a change."""
    if asked.ended is not Ended.COMMITTED:
        return [f"{asked.kind.value} {asked.ended.value}"]
    result: Any = asked.result
    if asked.kind is Kind.CHECKOUT:
        accepted = result["outcome"] == CheckoutOutcome.ACCEPTED
        some = ["orders with refused lines"] if accepted and result["refused"] else []
        return [*some, "orders" if accepted else "checkouts without an order"]
    if asked.kind is Kind.ABANDON:
        return ["carts sealed"]
    if asked.kind is Kind.PRICE and result["outcome"] == PriceOutcome.STALE:
        return ["prices for a stale version"]
    if asked.kind is Kind.DELIVERY and not result["delivered"]:
        return ["deliveries of nothing"]
    return []


def _ms(us: int) -> str:
    return f"{us / 1000:.1f} ms"
