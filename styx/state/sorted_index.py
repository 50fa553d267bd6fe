"""One index over columns, of a table on one slot: by group, its entries in order.

It is derived from the table, and is never stored. An index over the rows of each entity takes in an entity when a query
first asks for it: starting costs nothing then, and an entity that no query asks for takes no memory. Which order the
rows came in, and when they were taken in, makes no difference to what it gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from styx.relational.index_range import Group, Position, RowKey, TableIndex
from styx.state.sorted_groups import SortedGroups

Entry = tuple[Position, RowKey]
"""Where a row stands in its group, and the row's key. No two rows of a group have one position."""
Row = tuple[RowKey, bytes]


class SortedIndex:
    """`entities`: those whose rows are in it, None if all rows are. Kept up with `move`."""

    __slots__ = ("_groups", "_index", "_n_slots", "entities")

    def __init__(self, index: TableIndex, n_slots: int) -> None:
        self._index = index
        self._n_slots = n_slots
        self._groups = SortedGroups()
        self.entities: set[Group] | None = set() if index.of_entities else None

    def has(self, group: Group) -> bool:
        """Whether all rows of the group are in it."""
        entities = self.entities
        return entities is None or group[: self._index.of_entities] in entities

    def take(self, rows: Iterable[Row], entity: Group | None = None) -> None:
        """Takes in the rows of an entity, or all rows; none of their groups has been there. Raises what decoding a row
        raises; then it is as before.
        """
        groups: dict[Group, list[Entry]] = {}
        self.gather(rows, groups)
        self.put(groups)
        entities = self.entities
        if entities is not None and entity is not None:
            entities.add(entity)

    def gather(self, rows: Iterable[Row], groups: dict[Group, list[Entry]]) -> None:
        """Adds the entries of rows, in any order, to those by group that `put` will take."""
        index, n_slots = self._index, self._n_slots
        for key, data in rows:
            entry = index.entry(key, data, n_slots)
            if entry is not None:
                group, position = entry
                entries = groups.get(group)
                if entries is None:
                    entries = groups[group] = []
                entries.append((position, key))

    def put(self, groups: dict[Group, list[Entry]]) -> None:
        """Takes whole groups, none of which has been there; the lists are the index's from here on."""
        for group, entries in groups.items():
            entries.sort()
            self._groups.put(group, entries)

    def forget(self, entity: Group) -> None:
        """The entity has no rows any more."""
        entities = self.entities
        if entities is not None:
            entities.discard(entity)

    def move(self, key: RowKey, before: bytes | None, after: bytes | None) -> None:
        """A row's value changes; None: there is no such row."""
        index, entities = self._index, self.entities
        if entities is not None and key[: index.of_entities] not in entities:
            return
        old = None if before is None else index.entry(key, before, self._n_slots)
        new = None if after is None else index.entry(key, after, self._n_slots)
        if old == new:
            return
        if old is not None:
            taken = self._groups.take(old[0], (old[1],))
            assert taken[1] == key, "an index holds another row at a row's position"
        if new is not None:
            self._groups.add(new[0], (new[1], key))

    def walk(self, group: Group, low: Position, high: Position, backwards: bool = False) -> Iterator[Entry]:
        """The group's entries with `low <= position < high`, in order, or in the reverse order."""
        return self._groups.walk(group, (low,), (high,), backwards)

    def count(self, group: Group, low: Position, high: Position) -> int:
        """How many entries `walk` gives."""
        return self._groups.count(group, (low,), (high,))

    def same_as(self, other: SortedIndex) -> bool:
        """Whether both have the same entries; for tests."""
        return self.entities == other.entities and self._groups.everything() == other._groups.everything()
