"""SNAP, and query C.1: a dashboard's sums are those of its entries, and both are what the log says of the place at
which it was answered. In the end the views that are kept are what the entries add up to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.marketplace import events
from benchmarks.marketplace.answers import Board
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import Story
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import DashboardSeen, Ended, Kind, Place
from benchmarks.marketplace.services.seller.rows import (
    OrderEntry,
    board,
    open_orders,
    open_products,
    order_entries,
)
from benchmarks.marketplace.values import OrderLine, ShipmentStatus

Entry = tuple[int, int, int]
"""(customer, order, product)."""


class Open:
    """The open entries of one seller in the replay, with their sums."""

    __slots__ = ("entries", "orders", "products", "sums")

    def __init__(self) -> None:
        self.entries: dict[Entry, int] = {}
        self.orders: Counter[tuple[int, int]] = Counter()
        self.products: Counter[int] = Counter()
        self.sums: Counter[str] = Counter()

    def put(self, customer: int, order_id: int, line: OrderLine | OrderEntry, sign: int) -> None:
        """Opens an entry, or closes it with -1."""
        total = line.total_amount + line.freight_value
        if sign > 0:
            self.entries[customer, order_id, line.product_id] = total
        elif self.entries.pop((customer, order_id, line.product_id), None) is None:
            return
        self.orders[customer, order_id] += sign
        self.products[line.product_id] += sign
        if not self.orders[customer, order_id]:
            del self.orders[customer, order_id]
        if not self.products[line.product_id]:
            del self.products[line.product_id]
        self.sums["amount"] += sign * line.total_amount
        self.sums["freight"] += sign * line.freight_value
        self.sums["items"] += sign * line.total_items

    def board(self, seller_id: int) -> Board:
        """The sums, as a dashboard has them."""
        amount, freight, items = self.sums["amount"], self.sums["freight"], self.sums["items"]
        numbers = (len(self.orders), len(self.products), len(self.entries))
        return Board(seller_id, *numbers, amount, freight, items - amount, amount + freight, items)


class Answer(NamedTuple):
    """A dashboard that was answered at `place`."""

    place: Place
    seller_id: int
    seen: DashboardSeen


def violations(run: Run) -> Iterator[Violation]:
    """Replays the log, stops at each dashboard, and looks at what is kept in the end."""
    sellers: dict[int, Open] = {}
    for seller, row in run.before.all_rows(order_entries):
        sellers.setdefault(seller, Open()).put(row.customer_id, row.order_id, row, 1)
    rest = iter(_answers(run))
    answer = next(rest, None)
    kinds = (events.invoice_issued, events.payment_failed, events.shipment_notification)
    for event, told in run.history.merged(*kinds):
        while answer is not None and answer.place < told.place:
            yield from _compare(answer, sellers)
            answer = next(rest, None)
        _replay(run, sellers, event.name, told.value)
    while answer is not None:
        yield from _compare(answer, sellers)
        answer = next(rest, None)
    yield from _at_the_end(run, sellers)


def _answers(run: Run) -> list[Answer]:
    found = [
        Answer(asked.place, asked.key, asked.result_as(DashboardSeen))
        for asked in run.record
        if asked.kind is Kind.DASHBOARD and asked.ended is Ended.COMMITTED and asked.place is not None
    ]
    return sorted(found, key=lambda answer: answer.place)


def _replay(run: Run, sellers: dict[int, Open], name: str, value: Any) -> None:
    if name == events.invoice_issued.name:
        invoice = value.invoice
        for line in invoice.lines:
            opened = sellers.setdefault(value.seller_id, Open())
            opened.put(invoice.buyer.customer_id, invoice.order_id, line, 1)
        return
    if name == events.payment_failed.name:
        key = (value.buyer.customer_id, value.order_id)
    elif value.status == ShipmentStatus.CONCLUDED:
        key = (value.customer_id, value.order_id)
    else:
        return
    story: Story | None = run.stories.get(key)
    for line in story.lines if story is not None else ():
        sellers.setdefault(line.seller_id, Open()).put(*key, line, -1)


def _compare(answer: Answer, sellers: dict[int, Open]) -> Iterator[Violation]:
    seen, entity = answer.seen, f"dashboard of seller {answer.seller_id} at {tuple(answer.place)}"
    opened = sellers.get(answer.seller_id) or Open()
    expected = opened.board(answer.seller_id)
    if seen.complete and seen.summed != seen.board:
        yield Violation(Criterion.SNAP, entity, f"the board {seen.board}", f"{seen.summed}, the sums of its entries")
    if seen.board != expected:
        yield Violation(Criterion.SNAP, entity, f"the board {seen.board}", f"{expected}, by the log")
    if seen.entries is not None and seen.complete:
        found = {(row.customer_id, row.order_id, row.product_id): row.total_invoice for row in seen.entries}
        if found != opened.entries:
            yield Violation(Criterion.SNAP, entity, f"entries {sorted(found)}", f"{sorted(opened.entries)}, by the log")


def _at_the_end(run: Run, sellers: dict[int, Open]) -> Iterator[Violation]:
    """The rows of each seller, and the views of them where they were read."""
    for seller in sorted({*sellers, *run.after.keys(order_entries)}):
        opened = sellers.get(seller) or Open()
        rows = run.after.rows(order_entries, seller)
        found = {(row.customer_id, row.order_id, row.product_id): row.total_invoice for row in rows}
        if found != opened.entries:
            told = f"{sorted(opened.entries)}, by the log"
            yield Violation(Criterion.SNAP, f"entries of seller {seller}", f"{sorted(found)}", told)
    if run.after.has_views:
        for seller in sorted({*sellers, *run.after.keys(order_entries)}):
            yield from _views(run, seller)


def _views(run: Run, seller: int) -> Iterator[Violation]:
    opened = Open()
    for row in run.after.rows(order_entries, seller):
        opened.put(row.customer_id, row.order_id, row, 1)
    sums = next(iter(run.after.rows(board, seller)), None)
    orders = next(iter(run.after.rows(open_orders, seller)), None)
    products = {row.product_id: row.count for row in run.after.rows(open_products, seller)}
    found = (
        (0, 0, 0, 0, 0)
        if sums is None
        else (sums.count, sums.total_amount, sums.freight_value, sums.total_incentive, sums.total_items)
    )
    made = opened.board(seller)
    expected = (made.count_lines, made.total_amount, made.total_freight, made.total_incentive, made.total_items)
    if found != expected:
        what = "(lines, amount, freight, incentive, items)"
        yield Violation(Criterion.SNAP, f"board of seller {seller}", f"{what} {found}", f"{expected}, of its entries")
    if (0 if orders is None else orders.count) != made.count_orders or products != dict(opened.products):
        count = 0 if orders is None else orders.count
        told = f"{made.count_orders} orders, products {dict(opened.products)}"
        yield Violation(Criterion.SNAP, f"views of seller {seller}", f"{count} orders, products {products}", told)
