"""Rows that were written and not committed yet, by index, as queries see them.

A query sees the committed rows of its range under one or more layers of these: in the lock phase its transaction's own
rows over those of lower transactions, in phase 3 all that has been written so far. A layer is brought up to date when a
query asks, so transactions without queries pay nothing but a note of each write.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex

Written = dict[tuple[str, Any], bytes | None]
Entry = tuple[Group, Position]
Write = tuple[RowKey, bytes | None]
One = tuple[str, RowKey, bytes | None]
"""A write with its table's name."""


class WrittenRows:
    """One layer, of any number of tables. Of a row that is written twice, the later write counts."""

    __slots__ = ("_by_table", "_indexes", "_sorted", "_writes")

    def __init__(self) -> None:
        self._writes: list[Written | One] = []
        # The first `_sorted` of these, by table.
        self._by_table: dict[str, list[Write]] = {}
        self._sorted = 0
        self._indexes: dict[TableIndex, WrittenIndex] = {}

    @property
    def queried(self) -> bool:
        """Whether a query has asked for rows."""
        return bool(self._indexes)

    def add(self, writes: Written) -> None:
        """Takes writes, which must not be changed any more."""
        if writes:
            self._writes.append(writes)

    def write(self, table: str, key: RowKey, value: bytes | None) -> None:
        """Takes one write; None: the row is deleted."""
        self._writes.append((table, key, value))

    def of(self, index: TableIndex, n_slots: int) -> WrittenIndex:
        """The rows in one index, with all writes so far."""
        if self._sorted < len(self._writes):
            self._sort()
        known = self._indexes.get(index)
        if known is None:
            known = self._indexes[index] = WrittenIndex(index, n_slots)
        writes = self._by_table.get(index.table)
        if writes is not None:
            known.catch_up(writes)
        return known

    def _sort(self) -> None:
        for at in range(self._sorted, len(self._writes)):
            writes = self._writes[at]
            if isinstance(writes, tuple):
                table, key, value = writes
                self._of_table(table).append((key, value))
            else:
                for (name, any_key), after in writes.items():  # of entities, too, whose keys are no tuples
                    self._of_table(name).append((any_key, after))
        self._sorted = len(self._writes)

    def _of_table(self, table: str) -> list[Write]:
        writes = self._by_table.get(table)
        if writes is None:
            writes = self._by_table[table] = []
        return writes


class WrittenIndex:
    """`rows` are the keys of all rows that were written: what lower layers, and the committed index, have of them does
    not count.
    """

    __slots__ = ("_groups", "_index", "_n_slots", "_taken", "rows")

    def __init__(self, index: TableIndex, n_slots: int) -> None:
        self._index = index
        self._n_slots = n_slots
        self._taken = 0
        self._groups: dict[Group, list[tuple[Position, RowKey, bytes]]] = {}
        self.rows: dict[RowKey, Entry | None] = {}

    def catch_up(self, writes: list[Write]) -> None:
        """Takes the writes of the table that came since the last time."""
        for at in range(self._taken, len(writes)):
            key, value = writes[at]
            self._take(key, value)
        self._taken = len(writes)

    def _take(self, key: RowKey, value: bytes | None) -> None:
        before = self.rows.get(key)
        entry = None if value is None else self._index.entry(key, value, self._n_slots)
        self.rows[key] = entry
        if before is not None:
            rows = self._groups[before[0]]
            place = bisect_left(rows, (before[1],))
            if entry == before and value is not None:
                rows[place] = (before[1], key, value)
                return
            del rows[place]
        if entry is not None and value is not None:
            group, position = entry
            if group not in self._groups:
                self._groups[group] = []
            insort(self._groups[group], (position, key, value))

    def between(self, wanted: IndexRange) -> list[tuple[Position, RowKey, bytes]]:
        """The rows of the range, in order."""
        rows = self._groups.get(wanted.group)
        if rows is None:
            return []
        return rows[bisect_left(rows, (wanted.low,)) : bisect_left(rows, (wanted.high,))]
