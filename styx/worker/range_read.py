"""A query's rows on one slot: the committed entries of a range, under what the reader sees written in the epoch."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Final

from styx.relational.index_range import TOP, IndexRange, Position, RowKey

if TYPE_CHECKING:
    from styx.worker.current_rows import CurrentIndex
    from styx.worker.slot import Slot

Over = Mapping[RowKey, bytes | None]
"""Of one table, the rows that were written, as the reader sees them; None: deleted."""
Found = list[tuple[Position, RowKey, bytes]]
NOTHING_OVER: Final[Over] = {}


def read_range(slot: Slot, wanted: IndexRange, n_slots: int, over: Over, current: CurrentIndex | None = None) -> Found:
    """The rows of a range in order of their positions, at most the `first` or `last` that are wanted.

    `over` counts before `current`, and that before what is committed.
    """
    found = _committed(slot, wanted, n_slots, over, NOTHING_OVER if current is None else current.rows)
    if current is not None:
        found += [entry for entry in current.between(wanted) if entry[1] not in over]
    if over:
        found += _within(wanted, n_slots, over)
    if over or current is not None:
        found.sort()
    if wanted.first:
        return found[: wanted.first]
    return found[-wanted.last :] if wanted.last else found


def _committed(slot: Slot, wanted: IndexRange, n_slots: int, over: Over, written: Container[RowKey]) -> Found:
    """The committed rows that no write hides. If `first` or `last` are wanted, no more than these: writes only add
    others between them.
    """
    index, first, last = wanted.index, wanted.first, wanted.last
    read = slot.found.get(index.table) or slot.find(index.table)
    found: Found = []
    for position, key in slot.sorted_index(index, n_slots).walk(wanted.group, wanted.low, wanted.high, last > 0):
        if key not in over and key not in written:
            data = read(key)
            assert data is not None, "an index holds a row that its table does not"
            found.append((position, key, data))
            if len(found) == first or len(found) == last:
                break
    if last:
        found.reverse()
    return found


def _within(wanted: IndexRange, n_slots: int, over: Over) -> Found:
    """The written rows of the range, in no order."""
    index, group, low, high = wanted.index, wanted.group, wanted.low, wanted.high
    found: Found = []
    for key, value in over.items():
        if value is not None:
            entry = index.entry(key, value, n_slots)
            if entry is not None and entry[0] == group and low <= entry[1] < high:
                found.append((entry[1], key, value))
    return found


def count_range(slot: Slot, wanted: IndexRange, n_slots: int, over: Over) -> int:
    """How many rows `read_range` finds."""
    if over or wanted.first or wanted.last:
        return len(read_range(slot, wanted, n_slots, over))
    return slot.sorted_index(wanted.index, n_slots).count(wanted.group, wanted.low, wanted.high)


def rows_of(found: Found) -> list[tuple[RowKey, bytes]]:
    """What a query gives: (row's key, encoded row)."""
    return [(key, data) for _, key, data in found]


def range_that_was_read(wanted: IndexRange, found: Found) -> IndexRange:
    """The part of a range that decides what `read_range` gave: it ends at the last row given, if enough were there."""
    low, high = wanted.low, wanted.high
    if wanted.first:
        if len(found) == wanted.first:
            high = (*found[-1][0], TOP)
    elif wanted.last and len(found) == wanted.last:
        low = found[0][0]
    return IndexRange(wanted.index, wanted.group, low, high, wanted.membership)
