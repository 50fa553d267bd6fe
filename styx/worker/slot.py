"""A slot: one partition index with the state of every operator's partition there, and its delta map since the last
snapshot.

State is bytes. `tables` is what the next epoch starts from; `delta` holds the same values for the keys changed
since the last snapshot (None: deleted) and is swapped out, never copied, when a snapshot is taken. Functions
never touch a slot directly: their writes arrive here at commit. Paper sections 4 (partitions) and 7.1
(incremental snapshots).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from styx.worker.footprint import EntityCell, Footprint

IDEMPOTENCY_TABLE = "\0idempotency"
"""Pseudo-operator whose entries are remembered replies; a real operator's name cannot start with NUL."""

Table = dict[Any, bytes]
Delta = dict[str, dict[Any, bytes | None]]


class Slot:
    """State of one slot.

    Of this epoch: `footprints` are the transactions here by TID, `loads` those that load in bulk. `cells` are the
    entities, by operator and key, as the first transaction that names them sees them, `shared` as the others do, by
    TID; so validation has to look at the latter only.

    `converted`: what it was loaded with is not what the snapshot has, so the next one must have all of it.
    """

    __slots__ = ("cells", "converted", "delta", "footprints", "index", "loads", "shared", "tables", "uploading")

    def __init__(self, index: int) -> None:
        self.index = index
        self.tables: dict[str, Table] = {}
        self.delta: Delta = {}
        self.uploading: Delta | None = None
        self.converted = False
        self.forget_epoch()

    def forget_epoch(self) -> None:
        """The epoch is over."""
        self.footprints: dict[int, Footprint] = {}
        self.loads: list[Footprint] = []
        self.cells: defaultdict[str, dict[Any, EntityCell]] = defaultdict(dict)
        self.shared: dict[tuple[str, Any], dict[int, EntityCell]] = {}

    def shared_cell(self, first: EntityCell, footprint: Footprint, operator: str) -> EntityCell:
        """An entity as a transaction sees it that is not the first one, whose cell `first` is."""
        entity = (operator, first.key)
        others = self.shared.get(entity)
        if others is None:
            others = self.shared[entity] = {}
        cell = others.get(footprint.tid)
        if cell is None:
            cell = others[footprint.tid] = EntityCell(footprint, first.key, first.table)
        return cell

    def cells_by_operator(self) -> Iterator[tuple[str, Iterable[EntityCell]]]:
        """The entities that this epoch's transactions name, as each of them sees them; an operator may come often."""
        for operator, cells in self.cells.items():
            yield operator, cells.values()
        for (operator, _), others in self.shared.items():
            yield operator, others.values()

    def table(self, operator: str) -> Table:
        """The operator's entities here; created empty at first use."""
        table = self.tables.get(operator)
        if table is None:
            table = self.tables[operator] = {}
        return table

    def apply(self, operator: str, key: Any, value: bytes | None) -> None:
        """Commits one write; None deletes."""
        table = self.tables.get(operator)
        if table is None:
            table = self.table(operator)
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
        changed = self.delta.get(operator)
        if changed is None:
            changed = self.delta[operator] = {}
        changed[key] = value

    def apply_all(self, operator: str, values: dict[Any, bytes]) -> None:
        """Commits many writes of one operator, none of which deletes."""
        self.table(operator).update(values)
        self.delta.setdefault(operator, {}).update(values)

    def take_delta(self) -> Delta:
        """Starts an upload: the changes since the last one; later writes go to a fresh delta."""
        assert self.uploading is None, "a slot's delta is taken while its last one is still being stored"
        self.uploading, self.delta = self.delta, {}
        return self.uploading

    def copied(self) -> Delta:
        """Everything, as a delta on nothing: a copy of the tables, which share their keys and values."""
        return {operator: cast(dict[Any, bytes | None], table.copy()) for operator, table in self.tables.items()}

    def delta_stored(self) -> None:
        """The upload is part of a complete snapshot: forget it."""
        self.uploading = None
        self.converted = False

    def delta_failed(self) -> None:
        """The upload is not part of any snapshot: its changes belong to the next one, under the newer ones."""
        if self.uploading is not None:
            self.delta = merge([self.uploading, self.delta])
            self.uploading = None

    def load(self, tables: dict[str, Table], converted: bool = False) -> None:
        """Replaces the state, for good: the tables are the slot's from here on."""
        self.tables = tables
        self.converted = converted
        self.delta = {}
        self.uploading = None
        self.forget_epoch()

    def user_state(self) -> Mapping[tuple[str, Any], bytes]:
        """A copy of all entities' encoded state by (operator, key)."""
        return {
            (operator, key): value
            for operator, table in self.tables.items()
            if operator != IDEMPOTENCY_TABLE
            for key, value in table.items()
        }


def tables_of(changes: Delta) -> dict[str, Table]:
    """The tables that all changes since the beginning, merged, describe; they are the same dictionaries."""
    for entries in changes.values():
        deleted = [key for key, value in entries.items() if value is None]
        for key in deleted:
            del entries[key]
    return cast(dict[str, Table], changes)


def merge(deltas: Iterable[Delta]) -> Delta:
    """One delta with the effect of `deltas` applied oldest first; deletions are kept."""
    merged: Delta = {}
    for delta in deltas:
        merge_into(merged, delta)
    return merged


def merge_into(older: Delta, newer: Delta) -> None:
    """Applies a delta to the one before it."""
    for operator, entries in newer.items():
        older.setdefault(operator, {}).update(entries)


def holdings(slots: Iterable[Slot]) -> tuple[int, list[str]]:
    """(entities that have state in these slots, names of their operators)."""
    counts: dict[str, int] = {}
    for slot in slots:
        for operator, table in slot.tables.items():
            if table and operator != IDEMPOTENCY_TABLE:
                counts[operator] = counts.get(operator, 0) + len(table)
    return sum(counts.values()), sorted(counts)
