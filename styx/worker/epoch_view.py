"""What a read outside the log sees: the state of one slot at the end of an epoch, however far the slot has gone on.

Between two epochs, and until an epoch commits, the tables are that state. From the commit on, what the tables have lost
is found in the versions. Ranges are read from the newest indexes, with what was overwritten laid over them, as a
transaction's own writes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import merge
from typing import Any, Final

import msgspec

from styx.model.access import Access
from styx.model.cell import Cell, Environment
from styx.model.key_range import KeyRange
from styx.native.interpreted import native, plain_stores
from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex
from styx.state.table import NEWEST, Table
from styx.state.versions import Images
from styx.worker.range_read import Layers, count_range, read_range, rows_of
from styx.worker.slot import Slot
from styx.worker.written_rows import WrittenRows

ORDERED_AT_ONCE: Final = 8_192
"""Keys of a table that one question puts in order, if it is listed for the first time."""


class SlotView:
    """One slot at the end of `epoch`, which its versions must reach."""

    __slots__ = ("_epoch", "_n_slots", "_newest", "_overwritten_by_table", "_slot")

    def __init__(self, slot: Slot, epoch: int, n_slots: int) -> None:
        self._slot = slot
        self._epoch = epoch
        self._n_slots = n_slots
        self._newest: Slot | None = None
        self._overwritten_by_table: dict[tuple[str, int], Overwritten] = {}

    def cell(self, table: str, key: Any) -> ViewCell:
        """An entry of the slot."""
        return ViewCell(key, self, self._slot.state.table(table), self._epoch)

    def rows(self, wanted: IndexRange) -> list[tuple[RowKey, bytes]]:
        """The rows of a range, in order of their positions."""
        return rows_of(read_range(self._now(), wanted, self._n_slots, self._overwritten(wanted)))

    def count(self, wanted: IndexRange) -> int:
        """How many rows the range has."""
        return count_range(self._now(), wanted, self._n_slots, self._overwritten(wanted))

    def value(self, table: str, key: Any) -> bytes | None:
        """One entry's state."""
        return self._slot.state.table(table).value_at(self._epoch, key)

    def listed(self, table: str, wanted: KeyRange, first: int) -> tuple[list[tuple[Any, bytes]], bool] | None:
        """As `Cell.listed`. What is there now is in the table's order, what has gone since in the versions."""
        entries = self._slot.state.table(table)
        order = entries.order(ORDERED_AT_ONCE)
        if order is None:
            return None
        gone = {
            key
            for epoch in entries.images_behind(self._epoch)
            for key, before in epoch.items()
            if before is not None and wanted.has(key) and entries.read(NEWEST, key) is None
        }
        found: list[tuple[Any, bytes]] = []
        for key in merge(order.walk(wanted.first), sorted(gone)):
            if key == wanted.behind:
                continue
            if not wanted.begins(key):
                break
            data = entries.value_at(self._epoch, key)
            if data is None:
                continue  # it has come since
            if len(found) == first:
                return found, True
            found.append((key, data))
        return found, False

    def _now(self) -> Slot:
        """The slot as it is now, whatever the open epoch reads."""
        newest = self._newest
        if newest is None:
            slot = self._slot
            newest = self._newest = Slot(slot.index, slot.state, NEWEST)
            newest.running = slot.running
            newest.range_counts = slot.range_counts
        return newest

    def _overwritten(self, wanted: IndexRange) -> Layers:
        """The rows that may be in the range and were written after the epoch, as they were at its end."""
        index = wanted.index
        images = self._slot.state.table(index.table).images_behind(self._epoch)
        if not images:
            return ()
        parts = index.of_entities
        known = self._overwritten_by_table.get((index.table, parts))
        if known is None:
            known = self._overwritten_by_table[index.table, parts] = Overwritten(parts)
        known.take(images)
        rows = known.by_entity.get(wanted.group[:parts])
        if rows is None:
            return ()
        written = WrittenRows()
        for key, before in rows.items():
            written.write(index.table, key, before)
        return (written.of(index, self._n_slots),)


class Overwritten:
    """What the rows of one table were at the end of a view's epoch that have been written since, by the first `parts`
    of their keys: a range of one entity does not look at all others' rows.
    """

    __slots__ = ("_parts", "_taken", "by_entity")

    def __init__(self, parts: int) -> None:
        self.by_entity: dict[Any, Images] = {}
        self._parts = parts
        self._taken: list[int] = []

    def take(self, images: list[Images]) -> None:
        """Takes what has come: `images` are those of all epochs after the view's, the newest first, which only grow. Of
        a row that several have, the oldest one's counts.
        """
        taken, parts, by_entity = self._taken, self._parts, self.by_entity
        for number, epoch in enumerate(reversed(images)):
            if number == len(taken):
                taken.append(0)
            begin, end = taken[number], len(epoch)
            if begin == end:
                continue
            for key in list(epoch)[begin:]:
                rows = by_entity.get(key[:parts])
                if rows is None:
                    rows = by_entity[key[:parts]] = {}
                if key not in rows:
                    rows[key] = epoch[key]
            taken[number] = end


Views = Mapping[int, SlotView]
"""Those of one worker's slots at the end of one epoch, by slot."""


@native
@plain_stores
class ViewCell(msgspec.Struct, Cell, eq=False, gc=False):
    """One entry of a slot at the end of an epoch. It cannot be written."""

    key: Any
    view: SlotView
    table: Table
    epoch: int

    def read(self, chain: bytes) -> bytes | None:
        """The state at the end of the epoch."""
        return self.table.value_at(self.epoch, self.key)

    def write(self, chain: bytes, value: bytes | None) -> None:
        raise AssertionError("a read writes")

    def access(self, access: Access) -> Any:
        raise AssertionError("a read writes")

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        """As `Cell.sibling`."""
        return self.view.cell(table, key)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        """As `Cell.scan`."""
        return self.view.rows(wanted)

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        """As `Cell.count`."""
        return self.view.count(wanted)

    def listed(self, table: str, wanted: Any, first: int) -> Any:
        """As `Cell.listed`."""
        return self.view.listed(table, wanted, first)

    def has(
        self, environment: Environment, primary: TableIndex, entity: Group, position: Position, chain: bytes
    ) -> bool:
        """As `Cell.has`."""
        return self.view.value(primary.table, entity + position) is not None
