"""R2, R3 and TOGETHER: what checkouts saw of the products, and by which promise of the copies that may be so.

A checkout tells which price it took for a version. That is consistent with a copy at some of the product's changes. An
anomaly is what is consistent with none, so what is found is certain, and what cannot be told apart is not counted:

- stale: not what the product was at the checkout's place;
- back: of one product, what is older than an earlier checkout has seen;
- torn: of one seller's products in one cart, what is no beginning of the seller's changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.criteria.product_order import Change, changes_of
from benchmarks.marketplace.audit.history import Told
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.events import ReserveStock
from benchmarks.marketplace.record import Place
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.values import RequestedItem

Key = tuple[int, int]


class Anomalies(NamedTuple):
    """How many anomalies there were: `stale` and `back` of `lines`, `torn` of `carts` (those of one seller each)."""

    lines: int
    carts: int
    stale: int
    back: int
    torn: int


FORBIDDEN: dict[str, tuple[Replication, ...]] = {
    "stale": (Replication.TOGETHER,),
    "back": (Replication.TOGETHER, Replication.SELLER, Replication.OBJECT),
    "torn": (Replication.TOGETHER, Replication.SELLER),
}
"""By which promise an anomaly must not be."""
_CRITERIA = {"stale": Criterion.TOGETHER, "back": Criterion.R2, "torn": Criterion.R3}


class Seen(NamedTuple):
    """An anomaly: its kind, what it is of, what was seen there."""

    kind: str
    entity: str
    found: str


def violations(run: Run) -> Iterator[Violation]:
    """The anomalies that the run's promise forbids."""
    watch = _Watch(changes_of(run))
    for told in run.history.of(events.reserve_stock):
        for seen in watch.checkout(told):
            if run.terms.replication in FORBIDDEN[seen.kind]:
                expected = f"no {seen.kind} copy: they follow their products {run.terms.replication}"
                yield Violation(_CRITERIA[seen.kind], seen.entity, seen.found, expected)


def anomalies(run: Run) -> Anomalies:
    """All anomalies, whatever the promise."""
    watch = _Watch(changes_of(run))
    counts = dict.fromkeys(FORBIDDEN, 0)
    lines = carts = 0
    for told in run.history.of(events.reserve_stock):
        lines += len(told.value.items)
        carts += len({item.seller_id for item in told.value.items})
        for seen in watch.checkout(told):
            counts[seen.kind] += 1
    return Anomalies(lines, carts, **counts)


class _Watch:
    """Follows the checkouts in the serial order. `at_least`: how far a product's copy must have been."""

    def __init__(self, changes: dict[Key, list[Change]]) -> None:
        self._changes = changes
        self._at_least: dict[Key, int] = {}

    def checkout(self, told: Told[ReserveStock]) -> Iterator[Seen]:
        """The anomalies in one checkout."""
        sellers: dict[int, list[RequestedItem]] = {}
        for item in told.value.items:
            key = (item.seller_id, item.product_id)
            if key in self._changes:
                sellers.setdefault(item.seller_id, []).append(item)
                yield from self._line(told, key, item)
        for seller, items in sellers.items():
            if len(items) > 1 and not self._is_beginning(items, told.place):
                entity = f"checkout {told.value.buyer.checkout_id}, seller {seller}"
                shown = ", ".join(f"product {each.product_id} at {each.unit_price}" for each in items)
                yield Seen("torn", entity, f"{shown}: no beginning of the seller's changes")

    def _line(self, told: Told[ReserveStock], key: Key, item: RequestedItem) -> Iterator[Seen]:
        changes = self._changes[key]
        entity = f"checkout {told.value.buyer.checkout_id}, product {key}"
        last = _last_before(changes, told.place)
        if last is not None and not _fits(changes[last], item):
            found = f"{item.unit_price} for version {item.version}"
            yield Seen("stale", entity, f"{found}, the product being at {changes[last].price}")
        at_least = self._at_least.get(key, 0)
        fitting = next((at for at in range(at_least, (last or 0) + 1) if _fits(changes[at], item)), None)
        if fitting is None:
            found = f"{item.unit_price} for version {item.version}"
            yield Seen("back", entity, f"{found}, older than change {changes[at_least].change}, seen before")
        else:
            self._at_least[key] = fitting

    def _is_beginning(self, items: list[RequestedItem], place: Place) -> bool:
        """Whether there is a place before which all changes, and behind which none, give what is seen of the items."""
        end = place
        while True:
            lowered = end
            for item in items:
                changes = self._changes[item.seller_id, item.product_id]
                at = _last_before(changes, lowered)
                while at is not None and at >= 0 and not _fits(changes[at], item):
                    at -= 1
                if at is None or at < 0:
                    return False
                if at + 1 < len(changes):
                    lowered = min(lowered, changes[at + 1].place)  # the next change is not seen
            if lowered == end:
                return True
            end = lowered


def _fits(change: Change, item: RequestedItem) -> bool:
    """Whether a copy at this change gives the checkout what it took: a copy of another version gives nothing."""
    return change.version != item.version or change.price == item.unit_price


def _last_before(changes: list[Change], place: Place) -> int | None:
    """The last change before the place; None if there is none."""
    return bisect_left(changes, place, key=lambda change: change.place) - 1 if changes[0].place < place else None
