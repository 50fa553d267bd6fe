"""What all order lines of a run have taken out of each stock, and what that leaves of it. Never reads a row."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from benchmarks.tpcc.arithmetic import left_of
from benchmarks.tpcc.ledger.differences import differences
from benchmarks.tpcc.tables import OrderLine, Stock


class Supplies:
    """Of all warehouses: 12 bytes a row of STOCK, for warehouses that have supplied anything."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._quantity: dict[int, array[int]] = {}
        self._count: dict[int, array[int]] = {}
        self._remote: dict[int, array[int]] = {}

    def take(self, w_id: int, line: OrderLine) -> None:
        """A line of an order at warehouse `w_id`, made since the start."""
        supplier, i_id = line.supply_w_id, line.i_id
        if not 1 <= i_id <= self._items:
            return
        if supplier not in self._quantity:
            for sums in (self._quantity, self._count, self._remote):
                sums[supplier] = array("I", bytes(4 * (self._items + 1)))
        self._quantity[supplier][i_id] += line.quantity
        self._count[supplier][i_id] += 1
        self._remote[supplier][i_id] += supplier != w_id

    def violations(self, w_id: int, i_id: int, initial: Stock, found: Stock | None) -> Iterator[str]:
        """What is wrong with a row that was `initial` at the start, which is changed to what it should be."""
        if w_id in self._quantity:
            initial.ytd += self._quantity[w_id][i_id]
            initial.order_cnt += self._count[w_id][i_id]
            initial.remote_cnt += self._remote[w_id][i_id]
            initial.quantity = left_of(initial.quantity, self._quantity[w_id][i_id])
        yield from differences(f"stock: {(w_id, i_id)}", found, initial)
