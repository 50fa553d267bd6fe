"""S#7: the stock's events are serializable. Replaying them in the order of their commits gives the same answers and
ends with the same stock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.stock.rows import stock_items
from benchmarks.marketplace.values import ItemStatus, OrderLine, RequestedItem

Key = tuple[int, int]


class Level:
    """The stock of one product in the replay."""

    __slots__ = ("active", "available", "order_count", "reserved", "version", "ytd")

    def __init__(self, row: Any) -> None:
        self.available, self.reserved = row.qty_available, row.qty_reserved
        self.order_count, self.ytd = row.order_count, row.ytd
        self.version, self.active = row.version, row.active

    def answer(self, item: RequestedItem) -> ItemStatus:
        """Reserves, or says why not."""
        if not self.active or self.version != item.version:
            return ItemStatus.UNAVAILABLE
        if item.quantity > self.available - self.reserved:
            return ItemStatus.OUT_OF_STOCK
        self.reserved += item.quantity
        return ItemStatus.RESERVED

    def told(self) -> str:
        """All of it, for a violation."""
        return (
            f"{self.available} available, {self.reserved} reserved, {self.order_count} orders, {self.ytd} sold, "
            f"version {self.version}, {'active' if self.active else 'inactive'}"
        )


Levels = dict[Key, Level]


def violations(run: Run) -> Iterator[Violation]:
    """Replays, and compares."""
    levels: Levels = {key: Level(row) for key, row in run.before.all_rows(stock_items)}
    kinds = (
        *(events.reserve_stock, events.stock_confirmed, events.reserve_stock_failed, events.payment_confirmed),
        *(events.payment_failed, events.product_updated, events.stock_increased),
    )
    for _, those in run.history.transactions(*kinds):
        answers: dict[Key, ItemStatus] = {}
        for event, told in those:
            yield from _replay(levels, event.name, told.value, answers)
    for key in sorted(levels.keys() | set(run.after.keys(stock_items))):
        (row,) = run.after.rows(stock_items, key) or [None]
        found = "no row" if row is None else Level(row).told()
        expected = levels[key].told() if key in levels else "no row"
        if found != expected:
            yield Violation(Criterion.S7, f"stock {key}", found, f"{expected}, as its events leave it")


def _replay(levels: Levels, name: str, value: Any, answers: dict[Key, ItemStatus]) -> Iterator[Violation]:
    if name == events.reserve_stock.name:
        for item in value.items:
            key = (item.seller_id, item.product_id)
            answers[key] = levels[key].answer(item) if key in levels else ItemStatus.UNAVAILABLE
    elif name == events.stock_confirmed.name:
        given = [(item, ItemStatus.RESERVED) for item in value.items] + [(each, each.status) for each in value.refused]
        yield from _compare(value.buyer.checkout_id, given, answers)
    elif name == events.reserve_stock_failed.name:
        yield from _compare(value.buyer.checkout_id, [(each, each.status) for each in value.products], answers)
    elif name == events.product_updated.name:
        level = levels.get((value.seller_id, value.product_id))
        if level is not None:
            level.version, level.active = value.product.version, value.product.active
    elif name == events.stock_increased.name:
        levels[value.seller_id, value.product_id].available += value.quantity
    else:
        for line in value.lines:
            _pay(levels, line, paid=name == events.payment_confirmed.name)


def _compare(
    checkout_id: str, given: list[tuple[Any, ItemStatus]], answers: dict[Key, ItemStatus]
) -> Iterator[Violation]:
    """The answers that a checkout was told against those of the replay."""
    told = {(each.seller_id, each.product_id): status for each, status in given}
    for key in sorted(told.keys() | answers.keys()):
        found, expected = told.get(key), answers.get(key)
        if found != expected:
            entity = f"checkout {checkout_id}, product {key}"
            yield Violation(Criterion.S7, entity, str(found), f"{expected}, which the stock answers one by one")


def _pay(levels: Levels, line: OrderLine, *, paid: bool) -> None:
    level = levels.get((line.seller_id, line.product_id))
    if level is None:
        return
    level.reserved -= line.quantity
    if paid:
        level.available -= line.quantity
        level.order_count += 1
        level.ytd += line.quantity
