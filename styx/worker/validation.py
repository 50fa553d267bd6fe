"""Validation: which of an epoch's transactions read or wrote an entity that a lower transaction wrote.

Each slot validates for itself, deterministically: a transaction is in conflict if it touched an entity that a
transaction with a lower TID wrote, unless that transaction logically aborted or left the epoch. Exactly the
transactions without conflict have read the right values. Paper section 6.1.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from operator import itemgetter

from styx.model.access import Access
from styx.worker.increment_validation import commit_increments, conflicts_of_increments
from styx.worker.range_validation import conflicts_of_ranges
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
    accesses: list[tuple[int, Access]] = []
    slot.accessing = []
    for footprint in slot.footprints.values():
        if footprint.accesses is not None:
            slot.accessing.append(footprint)
            tid = footprint.tid
            if tid not in gone:
                accesses.extend([(tid, access) for access in footprint.accesses])
    if accesses:
        _conflicts_of_accesses(slot, sorted(accesses, key=_tid), gone, found)
    if slot.incremented:
        found.update(conflicts_of_increments(slot, gone))
    if slot.querying:
        found.update(conflicts_of_ranges(slot, accesses, gone))
    return sorted(found)


_tid = itemgetter(0)


def _conflicts_of_accesses(
    slot: Slot, accesses: list[tuple[int, Access]], gone: Container[int], found: set[int]
) -> None:
    """The same rule for pairs of which at least one transaction touched many entities at once. Adds TIDs to `found`."""
    for operator, cells in slot.cells_by_operator():
        for tid, access in accesses:
            if access.operator != operator:
                continue
            for cell in cells:
                other = cell.footprint.tid
                if other in gone:
                    continue
                if other > tid and cell.chain is not None and cell.key in access.writes:
                    found.add(other)
                elif other < tid and cell.written and access.overlaps(cell.key):
                    found.add(tid)
    for index, (tid, access) in enumerate(accesses):
        for other, later in accesses[index + 1 :]:
            if other != tid and later.operator == access.operator and any(map(later.overlaps, access.writes)):
                found.add(other)


def commit(slot: Slot, left: Collection[int]) -> None:
    """Applies the writes on `slot` of all but the transactions `left`, after `conflicts`.

    Transactions that are committed have no conflict. No two of them write one entity, so their order does not matter;
    what they add to rows comes behind.
    """
    epoch = slot.epoch
    for footprint in slot.accessing:
        if footprint.tid not in left:
            for access in footprint.accesses or ():
                slot.table(access.operator).commit(epoch, access.writes)
    for operator, cells in slot.cells_by_operator():
        table = slot.table(operator)
        for cell in cells:
            if cell.written and not (left and cell.footprint.tid in left):
                table.write(epoch, cell.key, cell.value if cell.values is None else cell.final_value())
    if slot.incremented:
        commit_increments(slot, left)
