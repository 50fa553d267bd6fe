"""The orders of one district. Each is initial, or is named in a reply, or belongs to a request without an answer.

Orders come by number, one at a time, and are not kept. Sums for other rules are made meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from benchmarks.tpcc import conditions
from benchmarks.tpcc.answers import StatusLine, Wanted
from benchmarks.tpcc.arithmetic import total_of
from benchmarks.tpcc.conditions import OrdersTally
from benchmarks.tpcc.constant import Buyer, Good, of_goods, of_terms
from benchmarks.tpcc.ledger.differences import differences
from benchmarks.tpcc.ledger.supplies import Supplies
from benchmarks.tpcc.population import orders as initial
from benchmarks.tpcc.reads import OrderFound
from benchmarks.tpcc.records import AskedOrder, Ordered, Place, Shown
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.tables import Item, Order, OrderLine
from benchmarks.tpcc.text import ORIGINAL
from benchmarks.tpcc.told import Told

LAST_ORDERS: Final = 20
"""The last orders of a district, which a StockLevel reads (clause 2.8.2.2)."""


class Terms(NamedTuple):
    """The terms of a district's orders: taxes in ten-thousandths; customers and items by number."""

    w_tax: int
    d_tax: int
    buyers: Sequence[Buyer]
    items: Sequence[Item]


class Made(NamedTuple):
    """An order made since the start; `place` is None if no client was told of it."""

    c_id: int
    place: Place | None


class HandedOver(NamedTuple):
    """An order delivered since the start. `amount` in cents."""

    c_id: int
    amount: int
    carrier_id: int
    delivery_d: int | None


class OrdersLedger:
    """The ledger of the district `key`, whose row has `next_o_id`. `look` takes the numbers from 1 on.

    `tally` is for the conditions. `delivered` are the cents of all delivered orders and `last_order` the highest
    number, by customer. `items` are those of the orders that a StockLevel may have looked at, `made` and `handed_over`
    the orders that were so since the start, by number.
    """

    def __init__(
        self, key: tuple[int, int], next_o_id: int, settings: Settings, told: Told, terms: Terms, supplies: Supplies
    ) -> None:
        self._key = key
        self._next_o_id = next_o_id
        self._settings = settings
        self._terms = terms
        self._supplies = supplies
        self._witnessed = told.witnessed
        self._initial = zip(initial.orders(settings, *key), initial.order_lines(settings, *key), strict=True)
        self._told: dict[int, Ordered] = {}
        self._twice: list[int] = []
        for ordered in told.about(Ordered, *key):
            if self._told.setdefault(ordered.o_id, ordered) is not ordered:
                self._twice.append(ordered.o_id)
        self._asked = Counter((asked.c_id, *map(_wanted, asked.lines)) for asked in told.about(AskedOrder, *key))
        self._shown: defaultdict[int, list[Shown]] = defaultdict(list)
        for shown in told.about(Shown, *key):
            self._shown[shown.status.o_id].append(shown)
        self.tally = OrdersTally()
        self.delivered: Counter[int] = Counter()
        self.last_order: dict[int, int] = {}
        self.made: dict[int, Made] = {}
        self.items: dict[int, list[int]] = {}
        self.handed_over: dict[int, HandedOver] = {}

    def look(self, o_id: int, found: OrderFound) -> Iterator[str]:
        """The violations of the rows under the next number."""
        key = (*self._key, o_id)
        row, lines = found.row, [line for line in found.lines if line is not None]
        self.tally.add(o_id, row, found.new_order, lines)
        yield from conditions.condition_5(key, row, found.new_order)
        yield from conditions.condition_6(key, row, lines)
        yield from conditions.condition_7(key, row, lines)
        if row is None:
            if o_id < self._next_o_id:
                yield f"order: {key} is missing: a gap in the numbers"
        elif o_id >= self._next_o_id:
            yield f"order: {key} stands, but D_NEXT_O_ID is {self._next_o_id}"
        if o_id <= self._settings.orders:
            yield from self._as_at_the_start(o_id, found)
        elif row is not None:
            yield from self._as_asked_for(o_id, row, found.lines[: row.ol_cnt])
        times = {line.delivery_d for line in lines if line.delivery_d is not None}
        if len(times) > 1:
            yield f"order: {key} was delivered at once, but its lines at {', '.join(map(str, sorted(times)))}"
        if row is not None:
            self._add(o_id, row, lines)
            for shown in self._shown.pop(o_id, []):
                yield from self._as_shown(o_id, row, lines, shown)

    def violations(self) -> Iterator[str]:
        """The violations found after the last number."""
        for o_id in self._twice:
            yield f"order: {(*self._key, o_id)} was told of twice"
        for o_id, told in self._told.items():
            yield f"order: {(*self._key, o_id)} does not stand, but customer {told.c_id} was told of it"
        for o_id in self._shown:
            yield f"order: {(*self._key, o_id)} does not stand, but an OrderStatus showed it"

    def _as_at_the_start(self, o_id: int, found: OrderFound) -> Iterator[str]:
        order, order_lines = next(self._initial)
        if o_id > self._settings.delivered:
            # These may have been delivered since; nothing else may have happened to any.
            if found.row is not None:
                order.carrier_id = found.row.carrier_id
            for expected, line in zip(order_lines, found.lines, strict=False):
                expected.delivery_d = None if line is None else line.delivery_d
        yield from differences(f"order: {(*self._key, o_id)}", found.row, order)
        yield from self._line_differences(o_id, found.lines, order_lines)

    def _as_asked_for(self, o_id: int, row: Order, lines: list[OrderLine | None]) -> Iterator[str]:
        key = (*self._key, o_id)
        told = self._told.pop(o_id, None)
        self.made[o_id] = Made(row.c_id, None if told is None else told.place)
        if told is not None:
            yield from self._as_told(o_id, row, lines, told)
        elif self._witnessed:
            asked = (row.c_id, *((line.i_id, line.supply_w_id, line.quantity) for line in lines if line is not None))
            if not self._asked[asked]:
                yield f"order: {key} of customer {row.c_id} stands, and nobody has asked for it"
            self._asked[asked] -= 1
        for number, line in enumerate(lines, 1):
            if line is not None:
                yield from self._as_sold((*key, number), line)

    def _as_sold(self, key: tuple[int, int, int, int], line: OrderLine) -> Iterator[str]:
        amount = line.quantity * self._price(line.i_id)
        if line.amount != amount:
            yield f"order line: {key} has amount {line.amount} rather than {amount}"
        if not self._supplies.is_from(self._key[1], line):
            yield f"order line: {key} has dist_info {line.dist_info!r}, which is another stock's or district's"

    def _as_told(self, o_id: int, row: Order, lines: list[OrderLine | None], told: Ordered) -> Iterator[str]:
        key = (*self._key, o_id)
        all_local = all(line.supply_w_id == self._key[0] for line in told.lines)
        order = Order(told.c_id, told.entry_d, row.carrier_id, len(told.lines), int(all_local))
        yield from differences(f"order: {key}", row, order)
        amount = sum(line.quantity * self._price(line.i_id) for line in told.lines)
        terms = self._terms
        buyer = terms.buyers[told.c_id]
        total = total_of(amount, buyer.discount, terms.w_tax + terms.d_tax)
        if total != told.total:
            yield f"order: {key} has a total of {total}, but {told.total} was told"
        if told.terms != of_terms(buyer, terms.w_tax, terms.d_tax):
            yield f"order: {key} is of {buyer} with W_TAX {terms.w_tax} and D_TAX {terms.d_tax}, but others were told"
        goods = [self._good(line) for line in told.lines if line.i_id < len(terms.items)]
        if told.goods != of_goods(goods):
            yield f"order: {key} is of {goods}, but other names, prices, brands or generics were told"
        yield from self._line_differences(o_id, lines, [_line_of(*pair) for pair in zip_longest(told.lines, lines)])

    def _line_differences(
        self, o_id: int, lines: Sequence[OrderLine | None], expected: Sequence[OrderLine | None]
    ) -> Iterator[str]:
        for number, (line, should) in enumerate(zip_longest(lines[: len(expected)], expected), 1):
            if should is not None:
                yield from differences(f"order line: {(*self._key, o_id, number)}", line, should)

    def _price(self, i_id: int) -> int:
        items = self._terms.items
        return items[i_id].price if i_id < len(items) else 0

    def _good(self, line: Wanted) -> Good:
        item = self._terms.items[line.i_id]
        brand = ORIGINAL in item.data and self._supplies.is_original(line.supply_w_id, line.i_id)
        return Good(item.name, item.price, "B" if brand else "G")

    def _as_shown(self, o_id: int, row: Order, lines: list[OrderLine], shown: Shown) -> Iterator[str]:
        key, status = (*self._key, o_id), shown.status
        what = f"order status: customer {status.c_id} of district {self._key} was shown order {o_id}"
        if (row.c_id, row.entry_d) != (status.c_id, status.entry_d):
            yield f"{what} entered at {status.entry_d}, but order {key} is of customer {row.c_id}, {row.entry_d}"
        if status.carrier_id not in (None, row.carrier_id):
            yield f"{what} with carrier {status.carrier_id}, but it has {row.carrier_id}"
        times = {line.delivery_d for line in lines} | {None}
        if any(line.delivery_d not in times for line in status.lines):
            yield f"{what} with another time of delivery than it has"
        there = [StatusLine(line.i_id, line.supply_w_id, line.quantity, line.amount, None) for line in lines]
        for line in status.lines:
            line.delivery_d = None
        if status.lines != there:
            yield f"{what} with the lines {status.lines} rather than {there}"

    def _add(self, o_id: int, row: Order, lines: list[OrderLine]) -> None:
        self.last_order[row.c_id] = o_id
        if o_id > self._settings.orders - LAST_ORDERS:
            self.items[o_id] = [line.i_id for line in lines]
        amount = sum(line.amount for line in lines if line.delivery_d is not None)
        self.delivered[row.c_id] += amount
        if o_id > self._settings.delivered and row.carrier_id is not None:
            delivery_d = lines[0].delivery_d if lines else None
            self.handed_over[o_id] = HandedOver(row.c_id, amount, row.carrier_id, delivery_d)
        if o_id > self._settings.orders:
            for line in lines:
                self._supplies.take(self._key[0], line)


def _wanted(line: Wanted) -> tuple[int, int, int]:
    return line.i_id, line.supply_w_id, line.quantity


def _line_of(wanted: Wanted | None, found: OrderLine | None) -> OrderLine | None:
    """The line as requested, completed from the row."""
    if wanted is None:
        return None
    what = wanted.i_id, wanted.supply_w_id
    if found is None:
        return OrderLine(*what, None, wanted.quantity, 0, "")
    return OrderLine(*what, found.delivery_d, wanted.quantity, found.amount, found.dist_info)
