"""S#1: each stock is of a product and has its version, and nothing of another version is reserved: neither behind a
replacement in the serial order, nor by a checkout that was sent when the replacement had been answered.

An available product may be ahead of its stock while things are under way; this application is held to the consistent
form: at every commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.asked import is_checkout, submitted
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import LOADED
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Ended, Kind, Place
from benchmarks.marketplace.services.product.rows import Product, product
from benchmarks.marketplace.services.stock.rows import stock_items

Key = tuple[int, int]
_CHANGES = {Kind.REPLACE, Kind.WITHDRAW}


def violations(run: Run) -> Iterator[Violation]:
    """Compares rows with products, and reservations with versions."""
    yield from _at_the_end(run)
    yield from _in_serial_order(run)
    yield from _in_time(run)


def _at_the_end(run: Run) -> Iterator[Violation]:
    products = run.after.values(product)
    for key, row in run.after.all_rows(stock_items):
        found = products.get(key)
        if found is None:
            yield Violation(Criterion.S1, f"stock {key}", "a stock without a product", "a product")
        elif (row.version, row.active) != (found.version, found.active):
            expected = f"that of its product, {_of(found.version, found.active)}"
            yield Violation(Criterion.S1, f"stock {key}", _of(row.version, row.active), expected)


def _of(version: str, active: bool) -> str:
    return f"version {version}, {'active' if active else 'inactive'}"


def _in_serial_order(run: Run) -> Iterator[Violation]:
    current = {key: _current(each) for key, each in run.before.values(product).items()}
    for event, told in run.history.merged(events.product_updated, events.stock_confirmed):
        value: Any = told.value
        if event is events.product_updated:
            current[value.seller_id, value.product_id] = _current(value.product)
            continue
        for item in value.items:
            version = current.get((item.seller_id, item.product_id))
            if version != item.version:
                yield _stale(value.buyer.checkout_id, item, f"{version}, the product's version in the serial order")


def _current(found: Product) -> str | None:
    return found.version if found.active else None


def _stale(checkout_id: str, item: Any, expected: str) -> Violation:
    entity = f"checkout {checkout_id}, product {(item.seller_id, item.product_id)}"
    return Violation(Criterion.S1, entity, f"version {item.version} reserved", expected)


def _in_time(run: Run) -> Iterator[Violation]:
    """Once a replacement is answered, no checkout that is sent then may reserve what was there before it."""
    ended: dict[Place, int] = {}
    sent: dict[str, int] = {}
    for asked in run.record:
        if is_checkout(asked):
            checkout_id = submitted(asked).checkout_id
            sent[checkout_id] = min(asked.sent_us, sent.get(checkout_id, asked.sent_us))
        elif asked.kind in _CHANGES and asked.ended is Ended.COMMITTED and asked.place is not None:
            ended[asked.place] = asked.ended_us
    versions = {key: [(LOADED[0], each.version)] for key, each in run.before.values(product).items()}
    for told in run.history.of(events.product_updated):
        version = told.value.product.version if told.value.product.active else ""
        versions.setdefault((told.value.seller_id, told.value.product_id), []).append((told.place, version))
    gone = _ends(versions, ended)
    for confirmed in run.history.of(events.stock_confirmed):
        at = sent.get(confirmed.value.buyer.checkout_id)
        for item in confirmed.value.items if at is not None else ():
            end = gone.get(((item.seller_id, item.product_id), item.version))
            if end is not None and at is not None and at > end:
                expected = f"none, since the answer that it is gone came {at - end} us before the checkout was sent"
                yield _stale(confirmed.value.buyer.checkout_id, item, expected)


def _ends(versions: dict[Key, list[tuple[Place, str]]], ended: dict[Place, int]) -> dict[tuple[Key, str], int]:
    """For each version when the first answer came by which it was gone, for good."""
    gone: dict[tuple[Key, str], int] = {}
    for key, those in versions.items():
        later: set[str] = set()
        first_end: int | None = None
        for place, version in reversed(those):
            if version and version not in later and first_end is not None:
                gone[key, version] = first_end
            later.add(version)
            end = ended.get(place)
            if end is not None:
                first_end = end if first_end is None else min(end, first_end)
    return gone
