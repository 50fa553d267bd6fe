"""S#5: the changes of a product are a register of (version, price). They have one order, in which a price follows only
the version that it is for, and which is the order of their answers. A price for another version changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from benchmarks.marketplace import events
from benchmarks.marketplace.answers import PriceOutcome, PriceResult
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Asked, Ended, Kind, Place
from benchmarks.marketplace.services.product.rows import Product, product

Key = tuple[int, int]


class Change(NamedTuple):
    """A change of a product, by the transaction at `place`: a price, or a whole product. The first one was loaded."""

    place: Place
    change: int
    version: str
    price: int
    active: bool
    is_price: bool


def changes_of(run: Run) -> dict[Key, list[Change]]:
    """The changes of each product in the serial order, behind what was loaded."""
    first = Place(-1, 0, 0)
    found = {
        key: [Change(first, each.change, each.version, each.price, each.active, is_price=False)]
        for key, each in run.before.values(product).items()
    }
    prices = {
        (told.value.seller_id, told.value.product_id, told.value.change)
        for told in run.history.of(events.price_updated)
    }
    for told in run.history.of(events.product_changed):
        value = told.value
        key, number = (value.seller_id, value.product_id), value.change
        made = Change(told.place, number, value.version, value.price, value.active, (*key, number) in prices)
        found.setdefault(key, []).append(made)
    return found


def violations(run: Run) -> Iterator[Violation]:
    """Looks at the log, then at the answers, then at what stands in the end."""
    changes = changes_of(run)
    for key, those in changes.items():
        yield from _log(key, those)
    yield from _answers(run, changes)
    for key, those in changes.items():
        yield from _at_the_end(key, those[-1], run.after.value(product, key))


def _log(key: Key, those: list[Change]) -> Iterator[Violation]:
    for before, after in pairwise(those):
        if after.change <= before.change:
            expected = f"a number above {before.change}, that of the change before it"
            yield _violation(key, f"change {after.change} at {tuple(after.place)}", expected)
        if after.is_price and (after.version != before.version or not before.active):
            expected = f"none: the product was version {before.version}, {'active' if before.active else 'inactive'}"
            yield _violation(key, f"a price for version {after.version} in change {after.change}", expected)


def _answers(run: Run, changes: dict[Key, list[Change]]) -> Iterator[Violation]:
    """Each answer is that of the log, and what was answered before another change was sent is before it."""
    numbered = {(key, each.change): each for key, those in changes.items() for each in those}
    timed: dict[Key, list[tuple[int, int, int]]] = {}
    for asked in run.record:
        if asked.ended is not Ended.COMMITTED or asked.kind not in (Kind.PRICE, Kind.REPLACE):
            continue
        key = (asked.key[0], asked.key[1])
        if asked.kind is Kind.PRICE:
            result = asked.result_as(PriceResult)
            yield from _price(key, asked, result, changes, numbered)
            number = result.change if result.outcome is PriceOutcome.UPDATED else None
        else:
            made = asked.result_as(Product)
            number = made.change
            found = numbered.get((key, number))
            if found is None or (found.version, found.price) != (made.version, made.price):
                yield _violation(
                    key, f"change {number} is {_shown(found)}", f"{made.version} at {made.price}: its answer"
                )
        if number is not None:
            timed.setdefault(key, []).append((asked.sent_us, asked.ended_us, number))
    for key, those in timed.items():
        yield from _in_time(key, those)


def _price(
    key: Key,
    asked: Asked,
    result: PriceResult,
    changes: dict[Key, list[Change]],
    numbered: dict[tuple[Key, int], Change],
) -> Iterator[Violation]:
    price, version = asked.arguments
    if result.outcome is PriceOutcome.UPDATED:
        found = numbered.get((key, result.change))
        if found is None or (found.version, found.price, found.place) != (version, price, asked.place):
            expected = f"version {version} at {price}, by the request at {asked.place}: its answer"
            yield _violation(key, f"change {result.change} is {_shown(found)}", expected)
        return
    if any(each.place == asked.place for each in changes.get(key, [])):
        yield _violation(key, f"a change at {asked.place}", "none, since the answer was STALE")
    current = [each for each in changes.get(key, []) if asked.place is None or each.place < asked.place]
    if current and current[-1].version == version:
        yield _violation(key, f"STALE for version {version} at {asked.place}", "UPDATED: it is the product's version")


def _in_time(key: Key, those: list[tuple[int, int, int]]) -> Iterator[Violation]:
    """In the order of sending, no change comes before one that was answered by then. Linear but for sorting."""
    by_end = sorted(those, key=lambda each: each[1])
    at, highest = 0, -1
    for sent_us, _, number in sorted(those):
        while at < len(by_end) and by_end[at][1] < sent_us:
            highest = max(highest, by_end[at][2])
            at += 1
        if number < highest:
            yield _violation(key, f"change {number}", f"one above {highest}, which was answered before it was sent")


def _at_the_end(key: Key, last: Change, found: Product | None) -> Iterator[Violation]:
    if found is None:
        yield _violation(key, "no product", _shown(last))
        return
    have = (found.change, found.version, found.price, found.active)
    if have != (last.change, last.version, last.price, last.active):
        yield _violation(key, f"change {found.change}: version {found.version} at {found.price}", _shown(last))


def _shown(change: Change | None) -> str:
    if change is None:
        return "not in the log"
    return f"version {change.version} at {change.price}, change {change.change} at {tuple(change.place)}"


def _violation(key: Key, found: str, expected: str) -> Violation:
    return Violation(Criterion.S5, f"product {key}", found, expected)
