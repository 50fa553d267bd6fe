"""One index of a table on one slot: by group, a sorted list of its entries.

It is derived from the table, when a query first asks for it, and is never stored. Which order the rows came in makes no
difference to what it gives.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Final

from styx.relational.index_range import Group, Position, RowKey, TableIndex

Entry = tuple[Position, RowKey]
"""Where a row stands in its group, and the row's key. No two rows of a group have one position."""
_NONE: Final[list[Entry]] = []


class SortedIndex:
    """The index of the given rows, kept up with `move`."""

    __slots__ = ("_groups", "_index", "_n_slots")

    def __init__(self, index: TableIndex, n_slots: int, rows: Iterable[tuple[RowKey, bytes]] = ()) -> None:
        self._index = index
        self._n_slots = n_slots
        groups: dict[Group, list[Entry]] = {}
        for key, data in rows:
            entry = index.entry(key, data, n_slots)
            if entry is not None:
                group, position = entry
                if group not in groups:
                    groups[group] = []
                groups[group].append((position, key))
        for entries in groups.values():
            entries.sort()
        self._groups = groups

    def move(self, key: RowKey, before: bytes | None, after: bytes | None) -> None:
        """A row's value changes; None: there is no such row."""
        if self._index.number == 0 and before is not None and after is not None:
            return  # its key alone says where it stands
        old = None if before is None else self._index.entry(key, before, self._n_slots)
        new = None if after is None else self._index.entry(key, after, self._n_slots)
        if old == new:
            return
        groups = self._groups
        if old is not None:
            group, position = old
            entries = groups[group]
            place = bisect_left(entries, (position,))
            assert entries[place][1] == key, "an index holds another row at a row's position"
            del entries[place]
            if not entries:
                del groups[group]
        if new is not None:
            group, position = new
            if group not in groups:
                groups[group] = []
            insort(groups[group], (position, key))

    def walk(self, group: Group, low: Position, high: Position, backwards: bool = False) -> Iterator[Entry]:
        """The group's entries with `low <= position < high`, in order, or in the reverse order."""
        entries = self._groups.get(group, _NONE)
        begin, end = bisect_left(entries, (low,)), bisect_left(entries, (high,))
        return map(entries.__getitem__, range(end - 1, begin - 1, -1) if backwards else range(begin, end))

    def count(self, group: Group, low: Position, high: Position) -> int:
        """How many entries `walk` gives."""
        entries = self._groups.get(group)
        return 0 if entries is None else max(0, bisect_left(entries, (high,)) - bisect_left(entries, (low,)))

    def same_as(self, other: SortedIndex) -> bool:
        """Whether both have the same entries."""
        return self._groups == other._groups
