"""What a round of the lock phase has changed so far: the entries with another value, at the present place in the serial
order, than at the same place of the round before.

A part that has read none of them would run as it did, and is left out. Whether a query would find something else, the
images of the changed rows decide: what they were and what they are. So a query does not mind rows of the same table
that are in none of its ranges. Paper section 6.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from styx.relational.index_range import IndexRange, RowKey
from styx.worker.footprint import Writes
from styx.worker.slot import Slot
from styx.worker.transaction_rows import images_of

LOOKS_MAX: Final = 64
"""Changed rows that are compared with the ranges of one part, at most. With more the part simply runs again."""
Rows = dict[str, dict[Any, set[RowKey]]]
"""Keys of rows, by their table and the first column of the entity's key."""


class ChangedEntries:
    """`entries` are the changed ones, and perhaps some that are as they were.

    `before` are the values that the round before had written up to here, None if no query has run in the lock phase.
    `_rows` are the changed ones that may be rows, if one has.
    """

    __slots__ = ("_rows", "before", "entries")

    def __init__(self, before: Writes | None = None) -> None:
        self.entries: set[tuple[str, Any]] = set()
        self.before = before
        self._rows: Rows = {}

    def gone(self, was: Writes) -> None:
        """Takes a part that has left the lock phase, with what it wrote in the round before."""
        self.entries.update(was)
        if self.before is not None:
            self.before.update(was)
            for entity in was:
                self._add(entity)

    def same(self, writes: Writes) -> None:
        """Takes a part that is left out, because it would write what it wrote in the round before."""
        if self.before is not None:
            self.before.update(writes)
            for entity in writes:
                self._discard(entity)

    def compare(self, was: Writes, now: Writes) -> None:
        """Takes a part that has run again, with what it wrote in the round before, and now."""
        entries = self.entries
        for entity in was:
            if entity not in now:
                entries.add(entity)
        for entity, value in now.items():
            if entity not in was or was[entity] != value:
                entries.add(entity)
            else:
                entries.discard(entity)
        if self.before is not None:
            self.before.update(was)
            for entity in {**was, **now}:
                if entity in entries:
                    self._add(entity)
                else:
                    self._discard(entity)

    def _add(self, entity: tuple[str, Any]) -> None:
        table, key = entity
        if type(key) is tuple:
            self._rows.setdefault(table, {}).setdefault(key[0], set()).add(key)

    def _discard(self, entity: tuple[str, Any]) -> None:
        table, key = entity
        self.entries.discard(entity)
        if type(key) is tuple:
            self._rows.get(table, {}).get(key[0], set()).discard(key)

    def matter_to(self, ranges: list[IndexRange], current: Writes, slot: Slot, n_slots: int) -> bool:
        """Whether a query of one of the ranges would find something else than in the round before. `current` are the
        values that this round has written up to here.
        """
        before, looks = self.before, 0
        assert before is not None, "a query ran, and the round that follows does not know of it"
        for wanted in ranges:
            index = wanted.index
            by_entity = self._rows.get(index.table)
            if not by_entity:
                continue
            found = slot.find(index.table)
            for keys in self._near(wanted, by_entity):
                looks += len(keys)
                if looks > LOOKS_MAX:
                    return True
                for key in keys:
                    entity = (index.table, key)
                    was = before[entity] if entity in before else found(key)
                    now = current[entity] if entity in current else found(key)
                    if was != now and images_of(key, [was, now], index, n_slots).matter_to(wanted):
                        return True
        return False

    def _near(self, wanted: IndexRange, by_entity: dict[Any, set[RowKey]]) -> Iterable[set[RowKey]]:
        """The rows that may lie in the range."""
        if not wanted.index.of_entities:
            return by_entity.values()
        keys = by_entity.get(wanted.group[0])
        return () if keys is None else (keys,)
