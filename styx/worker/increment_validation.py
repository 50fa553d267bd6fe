"""Validation and commit of increments: of rows that transactions of an epoch have added to without looking.

Nobody who only adds minds what others add. Whoever reads or writes the row's values is in conflict with a lower
transaction that adds to it. Whoever adds to a row that must be there is in conflict with a lower transaction that has
deleted it. So of the transactions without conflict at most one writes the row, and it is the lowest: the increments go
on top of what it wrote, in TID order. Only slots with increments pay for this. Paper section 6.1.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from operator import attrgetter
from typing import Any

from styx.relational.increment import Increment, incremented
from styx.worker.footprint import EntityCell
from styx.worker.incremented_row import IncrementedRow
from styx.worker.slot import Slot

_tid = attrgetter("footprint.tid")


def conflicts_of_increments(slot: Slot, gone: Container[int]) -> set[int]:
    """TIDs in conflict because of increments."""
    found: set[int] = set()
    for table, key in {(row.table, row.key) for row in slot.incremented}:
        first = slot.cells[table][key]
        cells = [first, *slot.shared.get((table, key), {}).values()]
        added = deleted = False
        for cell in sorted(cells, key=_tid):
            tid = cell.footprint.tid
            if tid in gone:
                continue
            if added and cell.chain is not None:
                found.add(tid)
            if isinstance(cell, IncrementedRow) and cell.increments:
                added = True
                if deleted and not cell.comes_and_goes:
                    found.add(tid)
            deleted = deleted or deletes(cell)
    return found


def deletes(cell: EntityCell) -> bool:
    """Whether a branch has left the row deleted."""
    if not cell.written:
        return False
    return cell.value is None if cell.values is None else None in cell.values.values()


def commit_increments(slot: Slot, left: Collection[int]) -> None:
    """Adds up on `slot` what all but the transactions `left` have added, behind the writes of those who wrote."""
    by_row: dict[tuple[str, Any], list[Increment]] = {}
    for row in sorted(slot.incremented, key=_tid):
        if not row.written and row.footprint.tid not in left:
            by_row.setdefault((row.table, row.key), []).extend(row.pending())
    epoch = slot.epoch
    for (name, key), increments in by_row.items():
        if increments:
            table = slot.table(name)
            table.write(epoch, key, incremented(table.read(epoch, key), increments))
