"""The primary key's index of a table on one slot: the keys of each entity's rows, in order.

Loading groups the keys, and decodes no row. An entity's keys are put in order when a query or a deletion first asks for
them, which makes no difference to what the index gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from styx.relational.index_range import HIGHEST, LOWEST, Group, Position, RowKey
from styx.state.sorted_groups import SortedGroups


class EntityKeys:
    """`parts`: how many parts of a row's key are the entity's."""

    __slots__ = ("_sorted", "_unsorted", "parts")

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self._sorted = SortedGroups()
        # No entity is in both.
        self._unsorted: dict[Group, list[RowKey]] = {}

    def load(self, keys: Iterable[RowKey]) -> None:
        """Takes keys of rows, in any order; no entity has been asked for yet."""
        parts, unsorted = self.parts, self._unsorted
        for key in keys:
            entity = key[:parts]
            known = unsorted.get(entity)
            if known is None:
                unsorted[entity] = [key]
            else:
                known.append(key)

    def add(self, key: RowKey) -> int:
        """A row comes. Returns how many its entity has then."""
        entity = key[: self.parts]
        if self._unsorted:
            waiting = self._unsorted.get(entity)
            if waiting is not None:
                waiting.append(key)
                return len(waiting)
        return self._sorted.add(entity, key)

    def remove(self, key: RowKey) -> None:
        """A row goes."""
        entity = key[: self.parts]
        taken = self._in_order(entity).take(entity, key)
        assert taken == key, "the primary key's index lacks a row"

    def has(self, group: Group) -> bool:
        """Whether all rows of the group are in it: always, as `SortedIndex.has`."""
        return True

    def length(self, entity: Group) -> int:
        """How many rows the entity has."""
        waiting = self._unsorted.get(entity)
        return self._sorted.length(entity) if waiting is None else len(waiting)

    def large(self, rows: int) -> list[Group]:
        """The entities with at least so many rows, of those that have not been asked for."""
        return [entity for entity, keys in self._unsorted.items() if len(keys) >= rows]

    def of(self, entity: Group) -> Iterator[RowKey]:
        """The keys of the entity's rows, in order."""
        return self.walk(entity)

    def walk(
        self, group: Group, low: Position = LOWEST, high: Position = HIGHEST, backwards: bool = False
    ) -> Iterator[RowKey]:
        """The keys of the entity's rows with `low <= position < high`, in order or in the reverse order. A position is
        what a key has behind the entity.
        """
        return self._in_order(group).walk(group, group + low, group + high, backwards)

    def count(self, group: Group, low: Position, high: Position) -> int:
        """How many rows `walk` gives."""
        return self._in_order(group).count(group, group + low, group + high)

    def same_as(self, other: EntityKeys) -> bool:
        """Whether both have the same keys; for tests."""
        return self._all() == other._all()

    def _all(self) -> dict[Group, list[RowKey]]:
        return self._sorted.everything() | {entity: sorted(keys) for entity, keys in self._unsorted.items()}

    def _in_order(self, entity: Group) -> SortedGroups:
        if self._unsorted:
            waiting = self._unsorted.pop(entity, None)
            if waiting is not None:
                waiting.sort()
                self._sorted.put(entity, waiting)
        return self._sorted
