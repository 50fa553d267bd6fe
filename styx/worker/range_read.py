"""A query's rows on one slot: the committed entries of a range, under what the reader sees written in the epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from styx.relational.index_range import TOP, IndexRange, Position, RowKey
from styx.state.entity_keys import EntityKeys
from styx.worker.written_rows import WrittenIndex

if TYPE_CHECKING:
    from styx.worker.slot import Slot

Found = list[tuple[Position, RowKey, bytes]]
Layers = tuple[WrittenIndex, ...]
"""Rows that are not committed yet: a layer counts before those behind it, and all before what is committed."""


def read_range(slot: Slot, wanted: IndexRange, n_slots: int, layers: Layers) -> Found:
    """The rows of a range in order of their positions, at most the `first` or `last` that are wanted."""
    layers = tuple([layer for layer in layers if layer.rows])
    found = _committed(slot, wanted, n_slots, layers)
    for place, layer in enumerate(layers):
        written = layer.between(wanted)
        found += written if not place else [entry for entry in written if not _hidden(entry[1], layers[:place])]
    if layers:
        found.sort()
    if wanted.first:
        found = found[: wanted.first]
    elif wanted.last:
        found = found[-wanted.last :]
    slot.range_counts.read(wanted.index.table, len(found))
    return found


def _committed(slot: Slot, wanted: IndexRange, n_slots: int, layers: Layers) -> Found:
    """The committed rows that no write hides. If `first` or `last` are wanted, no more than these: writes only add
    others between them.
    """
    index, first, last = wanted.index, wanted.first, wanted.last
    read = slot.found.get(index.table) or slot.find(index.table)
    found: Found = []
    made = slot.index_of(index, wanted.group, n_slots)
    if isinstance(made, EntityKeys):
        parts = made.parts
        for key in made.walk(wanted.group, wanted.low, wanted.high, last > 0):
            if not layers or not _hidden(key, layers):
                found.append((key[parts:], key, _there(read(key))))
                if len(found) == first or len(found) == last:
                    break
    else:
        for position, row in made.walk(wanted.group, wanted.low, wanted.high, last > 0):
            if not layers or not _hidden(row, layers):
                found.append((position, row, _there(read(row))))
                if len(found) == first or len(found) == last:
                    break
    if last:
        found.reverse()
    return found


def _there(data: bytes | None) -> bytes:
    assert data is not None, "an index holds a row that its table does not"
    return data


def _hidden(key: RowKey, layers: Layers) -> bool:
    """Whether one of the layers has written the row."""
    for layer in layers:  # noqa: SIM110 - compiled, a generator costs more than the look
        if key in layer.rows:
            return True
    return False


def count_range(slot: Slot, wanted: IndexRange, n_slots: int, layers: Layers) -> int:
    """How many rows `read_range` finds."""
    if any(layer.rows for layer in layers):
        return len(read_range(slot, wanted, n_slots, layers))
    return slot.index_of(wanted.index, wanted.group, n_slots).count(wanted.group, wanted.low, wanted.high)


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
