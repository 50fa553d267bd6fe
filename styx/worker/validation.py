"""Validation: which of an epoch's transactions read or wrote what a lower one wrote.

Per slot and deterministic: a transaction is in conflict if it touched an entity that a lower TID wrote, unless that one
logically aborted or left the epoch. Reads of the epoch's starting state are right exactly for the others.
Paper section 6.1.
"""

from __future__ import annotations

from collections.abc import Container

from styx.worker.footprint import EntityCell, Footprint
from styx.worker.slot import Slot


def conflicts(slot: Slot, gone: Container[int]) -> list[int]:
    """TIDs in conflict on `slot`, ascending; `gone` are those that logically aborted or left the epoch."""
    found: set[int] = set()
    for cells in slot.shared.values():
        written = False
        for cell in sorted(cells, key=_tid):
            tid = cell.footprint.tid
            if tid in gone:
                continue
            if written and cell.touched:
                found.add(tid)
            if cell.values is not None:
                written = True
    loads = [footprint for footprint in slot.footprints.values() if footprint.bulk is not None]
    if loads:
        _conflicts_of_loads(slot, [load for load in loads if load.tid not in gone], gone, found)
    return sorted(found)


def _tid(cell: EntityCell) -> int:
    return cell.footprint.tid


def _conflicts_of_loads(slot: Slot, loads: list[Footprint], gone: Container[int], found: set[int]) -> None:
    """A bulk load touches and writes all its entities, without a cell for any of them."""
    for load in loads:
        assert load.bulk is not None
        loaded = set(load.bulk.entities())
        for other in slot.footprints.values():
            if other.tid in gone or other is load:
                continue
            later = max(load.tid, other.tid)
            for entity, cell in other.cells.items():
                # Whoever comes later is in conflict with what the earlier one wrote.
                if entity in loaded and cell.touched and (later == other.tid or cell.values is not None):
                    found.add(later)
            if other.bulk is not None and not loaded.isdisjoint(other.bulk.entities()):
                found.add(later)


def commit(slot: Slot, left: Container[int]) -> None:
    """Applies the writes on `slot` of all but the transactions `left`: they are alive and in no conflict.

    No two of them write one entity, so that their order does not matter.
    """
    tables, delta = slot.tables, slot.delta
    for tid, footprint in slot.footprints.items():
        if tid in left:
            continue
        if footprint.bulk is not None:
            slot.apply_all(*footprint.bulk)
        for (operator, key), cell in footprint.cells.items():
            values = cell.values
            if values is None:
                continue
            value = next(iter(values.values())) if len(values) == 1 else cell.final_value()
            if value is None or operator not in delta:
                slot.apply(operator, key, value)
            else:  # what `apply` would do, without the call
                tables[operator][key] = delta[operator][key] = value
