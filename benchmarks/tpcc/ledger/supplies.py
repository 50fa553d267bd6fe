"""The quantities that the order lines of a run have taken from each stock, and the remaining stock."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from zlib import crc32

from benchmarks.tpcc.arithmetic import left_of
from benchmarks.tpcc.ledger.differences import differences
from benchmarks.tpcc.population import goods
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.tables import DISTRICTS, OrderLine, Stock
from benchmarks.tpcc.text import ORIGINAL


class Supplies:
    """The supplies of all warehouses: 53 bytes for each row of STOCK of a warehouse that has supplied anything."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._items = settings.items
        self._dists: dict[int, array[int]] = {}
        self._originals: dict[int, bytearray] = {}
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

    def is_from(self, d_id: int, line: OrderLine) -> bool:
        """Whether OL_DIST_INFO is what the item's stock has for orders of the district with that number."""
        supplier, i_id = line.supply_w_id, line.i_id
        if not (1 <= i_id <= self._items and 1 <= supplier <= self._settings.warehouses):
            return False
        self._know(supplier)
        return self._dists[supplier][(i_id - 1) * DISTRICTS + d_id - 1] == crc32(line.dist_info.encode())

    def is_original(self, supplier: int, i_id: int) -> bool:
        """Whether the item's stock at that warehouse is of a brand."""
        self._know(supplier)
        return bool(self._originals[supplier][i_id - 1])

    def _know(self, supplier: int) -> None:
        if supplier in self._dists:
            return
        self._dists[supplier], self._originals[supplier] = array("I"), bytearray()
        for row in goods.stocks(self._settings, supplier):
            self._dists[supplier].extend(crc32(dist.encode()) for dist in row.dists)
            self._originals[supplier].append(ORIGINAL in row.data)

    def taken(self, w_id: int, i_id: int) -> int:
        """How many of the item orders have taken out of that warehouse."""
        return self._quantity[w_id][i_id] if w_id in self._quantity else 0

    def violations(self, w_id: int, i_id: int, initial: Stock, found: Stock | None) -> Iterator[str]:
        """The violations of a row that was `initial` at the start. `initial` becomes the expected row."""
        if w_id in self._quantity:
            initial.ytd += self._quantity[w_id][i_id]
            initial.order_cnt += self._count[w_id][i_id]
            initial.remote_cnt += self._remote[w_id][i_id]
            initial.quantity = left_of(initial.quantity, self._quantity[w_id][i_id])
        yield from differences(f"stock: {(w_id, i_id)}", found, initial)
