"""C.3: a seller is warned of a product when a week's share of what was asked for in the last 28 days is more than what
is left, and told when that has ended; by each transaction that changes it, and when time alone does.

The window slides by the hour: an hour counts from its beginning until 28 days later.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.history import Told
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.events import LowStockWarning
from benchmarks.marketplace.record import Place
from benchmarks.marketplace.services.seller.rows import low_stock
from benchmarks.marketplace.services.stock.rows import demand, stock_items

WEEKS: Final = 4
WINDOW: Final = timedelta(weeks=WEEKS)
LATE_MAX: Final = timedelta(minutes=1)
"""How long behind the hour that ends it a warning may be taken back: workers may be down then."""

Key = tuple[int, int]
Change = tuple[bool, int, int]
"""(low, level, demand)."""


class Watched:
    """The query's answer for one product in the replay."""

    __slots__ = ("available", "demand", "hours", "low", "reserved")

    def __init__(self, available: int, reserved: int) -> None:
        self.available, self.reserved = available, reserved
        self.hours: dict[datetime, int] = {}
        self.demand = 0
        self.low = False

    @property
    def level(self) -> int:
        """The pieces that are left."""
        return self.available - self.reserved

    def ask(self, quantity: int, now: datetime) -> None:
        """Counts demand in its hour."""
        hour = now.replace(minute=0, second=0, microsecond=0)
        self.hours[hour] = self.hours.get(hour, 0) + quantity
        self.demand += quantity

    def judge(self, now: datetime) -> bool:
        """Whether too little is left at this time. At most 28 days of hours, and usually a few."""
        for hour in [hour for hour in self.hours if hour <= now - WINDOW]:
            self.demand -= self.hours.pop(hour)
        return self.demand > WEEKS * self.level

    def changed(self, now: datetime) -> list[Change]:
        """Looks at it anew: the change of the answer, if there is one."""
        was, self.low = self.low, self.judge(now)
        return [(self.low, self.level, self.demand)] if self.low != was else []


def violations(run: Run) -> Iterator[Violation]:
    """Runs the query from scratch behind each transaction, and compares its changes with the warnings."""
    watched = _loaded(run)
    kinds = (
        *(events.reserve_stock, events.stock_confirmed, events.reserve_stock_failed, events.payment_confirmed),
        *(events.payment_failed, events.stock_increased, events.low_stock_warning),
    )
    last: dict[Key, LowStockWarning] = {}
    for place, those in run.history.transactions(*kinds):
        warnings: dict[Key, list[Told[LowStockWarning]]] = {}
        expected: dict[Key, list[Change]] = {}
        for event, told in those:
            if event is events.low_stock_warning:
                warnings.setdefault((told.value.seller_id, told.value.product_id), []).append(told)
                continue
            for key in _replay(watched, event.name, told.value, told.time):
                expected.setdefault(key, []).extend(watched[key].changed(told.time))
        yield from _compare(watched, place, expected, warnings)
        last.update((key, told[-1].value) for key, told in warnings.items())
    yield from _at_the_end(run, watched, last)


def _loaded(run: Run) -> dict[Key, Watched]:
    found = {}
    for key, row in run.before.all_rows(stock_items):
        found[key] = Watched(row.qty_available, row.qty_reserved)
        found[key].low = row.low
        for hour in run.before.rows(demand, key):
            found[key].ask(hour.quantity, hour.hour)
    return found


def _replay(watched: dict[Key, Watched], name: str, value: Any, now: datetime) -> list[Key]:
    """What an event does to demand and levels; gives the products that are looked at anew."""
    if name == events.reserve_stock.name:
        for item in value.items:
            if (item.seller_id, item.product_id) in watched:
                watched[item.seller_id, item.product_id].ask(item.quantity, now)
        return []
    if name == events.stock_increased.name:
        watched[value.seller_id, value.product_id].available += value.quantity
        return [(value.seller_id, value.product_id)]
    if name == events.reserve_stock_failed.name:
        asked = value.products
    elif name == events.stock_confirmed.name:
        asked = [*value.items, *value.refused]
        for item in value.items:
            watched[item.seller_id, item.product_id].reserved += item.quantity
    else:
        asked = value.lines if name == events.payment_failed.name else []
        for line in value.lines:
            if (line.seller_id, line.product_id) in watched:
                found = watched[line.seller_id, line.product_id]
                found.reserved -= line.quantity
                found.available -= line.quantity if name == events.payment_confirmed.name else 0
    return [key for each in asked if (key := (each.seller_id, each.product_id)) in watched]


def _compare(
    watched: dict[Key, Watched],
    place: Place,
    expected: dict[Key, list[Change]],
    warnings: dict[Key, list[Told[LowStockWarning]]],
) -> Iterator[Violation]:
    """A transaction's warnings are the changes of the query's answer; one without a cause is made by time."""
    for key in expected.keys() | warnings.keys():
        told = warnings.get(key, [])
        if key not in watched:
            yield _violation(key, place, f"{len(told)} warnings", "none: it has no stock")
            continue
        changes = expected[key] if key in expected else watched[key].changed(told[0].time)
        have = [(each.value.low, each.value.level, each.value.demand) for each in told]
        if have != changes:
            yield _violation(key, place, f"(low, level, demand) {have}", f"{changes}, by the query")


def _at_the_end(run: Run, watched: dict[Key, Watched], last: dict[Key, LowStockWarning]) -> Iterator[Violation]:
    warned: dict[int, list[tuple[int, int, int]]] = {}
    for (seller, product), value in last.items():
        if value.low:
            warned.setdefault(seller, []).append((product, value.level, value.demand))
    for key, found in watched.items():
        for row in run.after.rows(stock_items, key):
            if (row.low, row.demand) != (found.low, found.demand):
                told = f"{(found.low, found.demand)}, by the query"
                yield Violation(Criterion.C3, f"stock {key}", f"(low, demand) {(row.low, row.demand)}", told)
        if found.low and run.end is not None and not found.judge(run.end - LATE_MAX):
            ended = "a warning that time has ended"
            yield Violation(Criterion.C3, f"product {key}", ended, "that it was taken back")
    for seller in warned.keys() | set(run.after.keys(low_stock)):
        loaded = run.before.rows(low_stock, seller)
        have = sorted((row.product_id, row.level, row.demand) for row in run.after.rows(low_stock, seller))
        expected = sorted(
            [
                *warned.get(seller, []),
                *((row.product_id, row.level, row.demand) for row in loaded if (seller, row.product_id) not in last),
            ]
        )
        if have != expected:
            told = f"{expected}, as it was warned"
            yield Violation(Criterion.C3, f"seller {seller}", f"(product, level, demand) {have}", told)


def _violation(key: Key, place: Place, found: str, expected: str) -> Violation:
    return Violation(Criterion.C3, f"product {key} at {tuple(place)}", found, expected)
