"""Checks the StockLevels in the serial order that all answers claim: the items of the district's last orders, and how
many of them were short.

Where an order without an answer may have played a part, nothing is said: it has no place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.tpcc.ledger.orders import LAST_ORDERS, Made
from benchmarks.tpcc.records import Levelled, Place
from benchmarks.tpcc.settings import Settings


class LevelsLedger:
    """The ledger of one warehouse. Its districts come first, then its stock."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked: list[Levelled] = []
        self._of_item: defaultdict[int, list[int]] = defaultdict(list)
        self._short: list[int | None] = []

    def district(self, asked: Iterator[Levelled], made: Mapping[int, Made], items: Mapping[int, Sequence[int]]) -> None:
        """Takes the StockLevels of a district; `made` are its orders by number."""
        places = [order.place for _, order in sorted(made.items()) if order.place is not None]
        if len(places) < len(made):
            return
        for level in asked:
            last = self._settings.orders + bisect_left(places, level.place)
            looked_at = {i_id for o_id in range(last - LAST_ORDERS + 1, last + 1) for i_id in items.get(o_id, ())}
            for i_id in looked_at:
                self._of_item[i_id].append(len(self._asked))
            self._asked.append(level)
            self._short.append(0)

    def stock(self, i_id: int, began: int, left: Sequence[tuple[Place, int]] | None) -> None:
        """An item's stock, with what each order has left of it; None if not all of them are known."""
        for number in self._of_item.get(i_id, ()):
            level, short = self._asked[number], self._short[number]
            if left is None or short is None:
                self._short[number] = None
                continue
            before = bisect_left(left, (level.place, 0))
            quantity = left[before - 1][1] if before else began
            self._short[number] = short + (quantity < level.threshold)

    def violations(self) -> Iterator[str]:
        """The violations found after the last stock."""
        for level, short in zip(self._asked, self._short, strict=True):
            if short is not None and short != level.short:
                yield (
                    f"serial order: a StockLevel of district {(level.w_id, level.d_id)} found {level.short} items "
                    f"below {level.threshold} rather than {short}"
                )
