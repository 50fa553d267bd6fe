"""Validation: which of an epoch's transactions read or wrote what a lower one wrote.

Per slot and deterministic: a transaction is in conflict if it touched an entity that a lower TID wrote, unless that one
logically aborted or left the epoch. Reads of the epoch's starting state are right exactly for the others.
Paper section 6.1.
"""

from __future__ import annotations

from collections.abc import Container

from styx.worker.footprint import Footprint
from styx.worker.slot import Slot


def conflicts(slot: Slot, gone: Container[int]) -> list[int]:
    """TIDs in conflict on `slot`, ascending; `gone` are those that logically aborted or left the epoch."""
    written: set[tuple[str, object]] = set()
    found: list[int] = []
    footprints = slot.footprints
    for tid in sorted(footprints):
        if tid in gone:
            continue
        footprint = footprints[tid]
        cells, bulk = footprint.cells, footprint.bulk
        for entity, cell in cells.items():
            if cell.touched and entity in written:
                found.append(tid)
                break
        if bulk is not None:
            loaded = list(bulk.entities())
            if not written.isdisjoint(loaded):
                found.append(tid)
            written.update(loaded)
        for entity, cell in cells.items():
            if cell.values is not None:
                written.add(entity)
    return found


def commit(slot: Slot, footprint: Footprint) -> None:
    """Applies a transaction's writes on `slot`: it is alive, in no conflict, and its branches did not collide."""
    tables, delta = slot.tables, slot.delta
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
