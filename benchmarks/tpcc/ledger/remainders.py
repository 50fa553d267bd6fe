"""The stock that NewOrders showed, in the serial order that their answers claim. Each must show the stock left by those
before it, less its own quantity.

Of a row that an order without an answer has taken from, nothing is said: that order has no place.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator

from benchmarks.tpcc.arithmetic import left_of
from benchmarks.tpcc.records import Ordered, Place
from benchmarks.tpcc.settings import Settings


class _Lines:
    """The lines of one supplying warehouse: 14 bytes for each line, chained by item."""

    def __init__(self, items: int) -> None:
        self.last = array("i", [-1]) * (items + 1)
        self.previous = array("i")
        self.order = array("I")
        self.quantity = array("I")
        self.left = bytearray()

    def add(self, i_id: int, order: int, quantity: int, left: int) -> None:
        self.previous.append(self.last[i_id])
        self.last[i_id] = len(self.order)
        self.order.append(order)
        self.quantity.append(quantity)
        self.left.append(left)

    def of_item(self, i_id: int) -> list[int]:
        """As they were added."""
        found, line = [], self.last[i_id]
        while line >= 0:
            found.append(line)
            line = self.previous[line]
        return found[::-1]


class Remainders:
    """The remainders of all warehouses."""

    def __init__(self, settings: Settings) -> None:
        self._items = settings.items
        self._places: list[Place] = []
        self._lines: defaultdict[int, _Lines] = defaultdict(lambda: _Lines(settings.items))

    def add(self, told: Ordered) -> None:
        """An order that a client was told of."""
        self._places.append(told.place)
        for line, left in zip(told.lines, told.left, strict=False):
            if 1 <= line.i_id <= self._items:
                self._lines[line.supply_w_id].add(line.i_id, len(self._places) - 1, line.quantity, left)

    def violations(self, w_id: int, i_id: int, quantity: int, taken: int) -> Iterator[str]:
        """The violations of a row that began with `quantity`, and from which all orders together took `taken`."""
        left = self.left(w_id, i_id, quantity, taken)
        for line, (_, quantity_left) in zip(self._in_order(w_id, i_id) if left else (), left or (), strict=True):
            lines = self._lines[w_id]
            if lines.left[line] != quantity_left:
                yield (
                    f"serial order: an order that took {lines.quantity[line]} of stock {(w_id, i_id)} was told that "
                    f"{lines.left[line]} are left rather than {quantity_left}"
                )
                return

    def left(self, w_id: int, i_id: int, quantity: int, taken: int) -> list[tuple[Place, int]] | None:
        """The stock that each order left of such a row, in the serial order; None if not all orders are known."""
        left = []
        for line in self._in_order(w_id, i_id):
            lines = self._lines[w_id]
            taken -= lines.quantity[line]
            quantity = left_of(quantity, lines.quantity[line])
            left.append((self._places[lines.order[line]], quantity))
        return None if taken else left

    def _in_order(self, w_id: int, i_id: int) -> list[int]:
        if w_id not in self._lines:
            return []
        lines = self._lines[w_id]
        # Lines of one order stay as they are.
        return sorted(lines.of_item(i_id), key=lambda line: self._places[lines.order[line]])
