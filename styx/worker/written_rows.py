"""Rows that were written and not committed yet, by index, as queries see them.

A query sees the committed rows of its range under one or more layers of these: in the lock phase its transaction's own
rows over those of lower transactions, in phase 3 all that has been written so far. A layer is brought up to date when a
query asks, so transactions without queries pay nothing but a note of each write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex

Written = dict[tuple[str, Any], bytes | None]
Entry = tuple[Group, Position]


class WrittenRows:
    """One layer, of any number of tables. Of a row that is written twice, the later write counts."""

    __slots__ = ("_indexes", "_writes")

    def __init__(self) -> None:
        self._writes: list[Written] = []
        self._indexes: dict[TableIndex, WrittenIndex] = {}

    def add(self, writes: Written) -> None:
        """Takes writes, which must not be changed any more."""
        if writes:
            self._writes.append(writes)

    def write(self, table: str, key: RowKey, value: bytes | None) -> None:
        """Takes one write; None: the row is deleted."""
        self._writes.append({(table, key): value})

    def of(self, index: TableIndex, n_slots: int) -> WrittenIndex:
        """The rows in one index, with all writes so far."""
        known = self._indexes.get(index)
        if known is None:
            known = self._indexes[index] = WrittenIndex(index, n_slots)
        known.catch_up(self._writes)
        return known


class WrittenIndex:
    """`rows` are the keys of all rows that were written: what lower layers, and the committed index, have of them does
    not count.
    """

    __slots__ = ("_groups", "_index", "_n_slots", "_taken", "rows")

    def __init__(self, index: TableIndex, n_slots: int) -> None:
        self._index = index
        self._n_slots = n_slots
        self._taken = 0
        self._groups: dict[Group, dict[RowKey, tuple[Position, bytes]]] = {}
        self.rows: dict[RowKey, Entry | None] = {}

    def catch_up(self, writes: list[Written]) -> None:
        """Takes the writes that came since the last time."""
        name = self._index.table
        for at in range(self._taken, len(writes)):
            for (table, key), value in writes[at].items():
                if table == name:
                    self._take(key, value)
        self._taken = len(writes)

    def _take(self, key: RowKey, value: bytes | None) -> None:
        groups = self._groups
        before = self.rows.get(key)
        if before is not None:
            del groups[before[0]][key]
        entry = None if value is None else self._index.entry(key, value, self._n_slots)
        self.rows[key] = entry
        if entry is not None and value is not None:
            group, position = entry
            if group not in groups:
                groups[group] = {}
            groups[group][key] = position, value

    def between(self, wanted: IndexRange) -> Iterable[tuple[Position, RowKey, bytes]]:
        """The rows of the range, in no order."""
        low, high = wanted.low, wanted.high
        group = self._groups.get(wanted.group)
        if group is None:
            return ()
        return [(position, key, data) for key, (position, data) in group.items() if low <= position < high]
