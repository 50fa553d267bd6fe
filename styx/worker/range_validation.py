"""Validation of ranges: which transactions have read a range whose rows a lower transaction changed.

A transaction is in conflict if a lower one, unless that logically aborted or left the epoch, wrote a row one of whose
images lies in one of its ranges. A range that was read for its membership alone minds only rows whose images are not
all the same entry. Only slots on which queries ran pay for this. Paper section 6.1, for ranges.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable
from typing import Any, Final

from styx.model.access import Access
from styx.relational.index_range import Group, IndexRange, Position, TableIndex
from styx.worker.footprint import RowCell
from styx.worker.incremented_row import AnyRow, IncrementedRow
from styx.worker.slot import Slot
from styx.worker.transaction_rows import Images, images, images_of

SHORT: Final = 16
"""Images that are looked at one by one."""
Queries = list[tuple[int, list[tuple[bytes, IndexRange]]]]
"""By TID, the ranges that each transaction has read, with their chains."""


def conflicts_of_ranges(slot: Slot, accesses: Iterable[tuple[int, Access]], gone: Container[int]) -> set[int]:
    """TIDs in conflict. `accesses` are those of all transactions but `gone`."""
    queries = [
        (footprint.tid, footprint.rows.ranges)
        for footprint in slot.querying
        if footprint.rows is not None and footprint.tid not in gone
    ]
    written = _written(slot, queries, accesses, gone)
    found: set[int] = set()
    for tid, ranges in queries:
        for _, wanted in ranges:
            if written.lowest(wanted) < tid:
                found.add(tid)
                slot.range_counts.conflict(wanted.index.table)
                break
    return found


def _written(
    slot: Slot, queries: Queries, accesses: Iterable[tuple[int, Access]], gone: Container[int]
) -> _WrittenEntries:
    """What transactions wrote to the tables of the queries."""
    written = _WrittenEntries(slot.querying[0].n_slots)
    for _, ranges in queries:
        for _, wanted in ranges:
            written.look_at(wanted)
    for table, cells in slot.cells_by_operator():
        if table in written.indexes:
            for cell in cells:
                if cell.written and cell.footprint.tid not in gone:
                    assert isinstance(cell, RowCell | IncrementedRow)
                    written.take(cell)
    for row in slot.incremented:
        if not row.written and row.footprint.tid not in gone:
            written.take(row)
    for tid, access in accesses:
        for index in written.indexes.get(access.operator, ()):
            read = slot.found.get(access.operator) or slot.find(access.operator)
            key: Any
            for key, value in access.writes.items():
                written.add(index, tid, images_of(key, [read(key), value], index, written.n_slots))
    return written


class _WrittenEntries:
    """The images of rows that an epoch's transactions wrote on a slot, so far as they are in a group of an index that a
    query has looked at; `indexes` are those, by table.
    """

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.indexes: defaultdict[str, list[TableIndex]] = defaultdict(list)
        self._groups: dict[tuple[TableIndex, bool, Group], _Group] = {}

    def look_at(self, wanted: IndexRange) -> None:
        """Takes the range of a query, before any row that was written."""
        index = wanted.index
        indexes = self.indexes[index.table]
        if index not in indexes:
            indexes.append(index)
        place = (index, wanted.membership, wanted.group)
        if place not in self._groups:
            self._groups[place] = _Group()

    def take(self, cell: AnyRow) -> None:
        """Takes a row that a transaction wrote."""
        for index in self.indexes.get(cell.table, ()):
            self.add(index, cell.footprint.tid, images(cell, index, self.n_slots))

    def add(self, index: TableIndex, tid: int, written: Images) -> None:
        groups = self._groups
        for group, position in written.entries:
            looked_at = groups.get((index, False, group))
            if looked_at is not None:
                looked_at.add(position, tid)
            if written.moved:
                looked_at = groups.get((index, True, group))
                if looked_at is not None:
                    looked_at.add(position, tid)

    def lowest(self, wanted: IndexRange) -> int | float:
        """The lowest TID with an image that matters to a query of the range."""
        return self._groups[wanted.index, wanted.membership, wanted.group].lowest(wanted.low, wanted.high)


NOBODY: Final = float("inf")


class _Group:
    """(position, TID) of the images in one group."""

    def __init__(self) -> None:
        self._images: list[tuple[Position, int]] = []
        self._lowest: list[list[int]] = []

    def add(self, position: Position, tid: int) -> None:
        self._images.append((position, tid))

    def lowest(self, low: Position, high: Position) -> int | float:
        """The lowest TID with an image in `low <= position < high`."""
        if len(self._images) <= SHORT:
            lowest: int | float = NOBODY
            for position, tid in self._images:
                if low <= position < high and tid < lowest:
                    lowest = tid
            return lowest
        if not self._lowest:
            self._images.sort()
            self._lowest.append([tid for _, tid in self._images])
        begin, end = bisect_left(self._images, (low,)), bisect_left(self._images, (high,))
        if end - begin <= SHORT:
            return min(self._lowest[0][begin:end], default=NOBODY)
        # The lowest of each stretch of 1, 2, 4 … images: two stretches that overlap cover any range.
        step = (end - begin).bit_length() - 1
        while len(self._lowest) <= step:
            half, before = 1 << (len(self._lowest) - 1), self._lowest[-1]
            self._lowest.append(list(map(min, before, before[half:])))
        return min(self._lowest[step][begin], self._lowest[step][end - (1 << step)])
