"""Validation: which of an epoch's transactions read or wrote an entity that a lower transaction wrote.

Each slot validates for itself, deterministically: a transaction is in conflict if it touched an entity that a
transaction with a lower TID wrote, unless that transaction logically aborted or left the epoch. Exactly the
transactions without conflict have read the right values. Paper section 6.1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container
from operator import itemgetter

from styx.state.table import Changes
from styx.worker.footprint import BulkWrites, Footprint
from styx.worker.slot import Slot


def conflicts(slot: Slot, gone: Container[int]) -> list[int]:
    """TIDs in conflict on `slot`, ascending; `gone` are those that logically aborted or left the epoch."""
    found: set[int] = set()
    for (operator, key), others in slot.shared.items():
        first = slot.cells[operator][key]
        written = False
        for tid, cell in sorted([(first.footprint.tid, first), *others.items()], key=_tid):
            if tid in gone:
                continue
            if written and cell.chain is not None:
                found.add(tid)
            if cell.written:
                written = True
    for load in slot.loads:
        if load.bulk is not None and load.tid not in gone:
            _conflicts_of_load(slot, load, load.bulk, gone, found)
    return sorted(found)


_tid = itemgetter(0)


def _conflicts_of_load(slot: Slot, load: Footprint, bulk: BulkWrites, gone: Container[int], found: set[int]) -> None:
    """A bulk load touches and writes all its entities, without a cell for any of them."""
    loaded = set(bulk.entities())
    for operator, cells in slot.cells_by_operator():
        for cell in cells:
            tid = cell.footprint.tid
            if tid in gone or (operator, cell.key) not in loaded:
                continue
            # Whoever comes later is in conflict with what the earlier one wrote.
            if tid > load.tid and cell.chain is not None:
                found.add(tid)
            elif tid < load.tid and cell.written:
                found.add(load.tid)
    for other in slot.loads:
        if (
            other.tid > load.tid
            and other.bulk is not None
            and other.tid not in gone
            and not loaded.isdisjoint(other.bulk.entities())
        ):
            found.add(other.tid)


def commit(slot: Slot, left: Collection[int]) -> None:
    """Applies the writes on `slot` of all but the transactions `left`: they are alive and in no conflict.

    No two of them write one entity, so that their order does not matter.
    """
    writes: defaultdict[str, Changes] = defaultdict(dict)
    for load in slot.loads:
        if load.bulk is not None and load.tid not in left:
            writes[load.bulk.operator].update(load.bulk.values)
    for operator, cells in slot.cells_by_operator():
        written = writes[operator]
        for cell in cells:
            if cell.written and not (left and cell.footprint.tid in left):
                written[cell.key] = cell.value if cell.values is None else cell.final_value()
    slot.commit(writes)
