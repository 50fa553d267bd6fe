"""A slot: one partition index with the committed state of every operator's partition there, what the open epoch's
transactions do on it, and its content for a snapshot.

Functions never touch the state: their writes stay in cells until commit. Paper sections 4 (partitions) and 5.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from styx.model.table_names import has_ranges
from styx.protocol.manifest import PassedOver, PendingTransaction
from styx.relational.index_range import Group, TableIndex
from styx.state.entity_keys import EntityKeys
from styx.state.slot_state import SlotState
from styx.state.sorted_index import SortedIndex
from styx.state.table import Reader, Table
from styx.worker.events import SlotContent
from styx.worker.footprint import EntityCell, Footprint, RowCell
from styx.worker.incremented_row import IncrementedRow
from styx.worker.range_counts import RangeCounts
from styx.worker.written_rows import WrittenRows

if TYPE_CHECKING:
    from styx.worker.invocation import Running


class Slot:
    """One slot. All fields but the state belong to the open `epoch`.

    `footprints` are the transactions on this slot by TID. `accessing` are those that touched many entities at once, and
    `querying` those that read ranges of rows; validation needs them. `cells` are the entities, by operator and key, as
    the first transaction that names them sees them. `shared` are the same entities as further transactions see them, by
    TID; validation looks only at these. `found` reads the state by operator. The execution step reads the state at the
    end of the epoch before, the lock phase the state after the lock-free commit. `incremented` are the rows that
    transactions have added to without looking, a cell for each transaction. `current_rows` are the rows
    that the lock phase has written. `running`, if there is one, tells the watchdog whose code runs. `range_counts`,
    which a worker's slots share, counts for metrics.
    """

    __slots__ = (
        "_reads",
        "accessing",
        "cells",
        "current_rows",
        "epoch",
        "footprints",
        "found",
        "incremented",
        "index",
        "querying",
        "range_counts",
        "running",
        "shared",
        "state",
    )

    def __init__(self, index: int, state: SlotState | None = None, epoch: int = -1) -> None:
        """`state` is the state at the end of `epoch`."""
        self.index = index
        self.state = SlotState() if state is None else state
        self.epoch = epoch
        self.running: Running | None = None
        self.range_counts = RangeCounts()
        self.forget_epoch()

    def forget_epoch(self) -> None:
        """Drops all data of the epoch, which has closed."""
        self._reads = self.epoch
        self.found: dict[str, Reader] = {}
        self.footprints: dict[int, Footprint] = {}
        self.accessing: list[Footprint] = []
        self.querying: list[Footprint] = []
        self.incremented: list[IncrementedRow] = []
        self.current_rows: WrittenRows | None = None
        self.cells: defaultdict[str, dict[Any, EntityCell]] = defaultdict(dict)
        self.shared: dict[tuple[str, Any], dict[int, EntityCell]] = {}

    def find(self, operator: str) -> Reader:
        """Makes the reader of an operator's state in this step, and adds it to `found`."""
        read = self.found[operator] = self.state.table(operator).reader(self._reads)
        return read

    def table(self, operator: str) -> Table:
        """The operator's table, for a commit of the epoch's writes. Later reads find them."""
        if self._reads != self.epoch:
            self._reads = self.epoch
            self.found = {}
        return self.state.table(operator)

    def index_of(self, index: TableIndex, group: Group, n_slots: int) -> SortedIndex | EntityKeys:
        """An index with the rows of a group in this step. The time to make it is not that of the function that asks
        first.
        """
        table = self.state.table(index.table)
        made = table.index(self._reads, index, group)
        if made is None:
            running = self.running
            if running is None:
                made = table.make_index(index, group, n_slots)
            else:
                invocation, running.invocation = running.invocation, None
                try:
                    made = table.make_index(index, group, n_slots)
                finally:
                    running.resumed += 1
                    running.invocation = invocation
        return made

    def cell(self, footprint: Footprint, operator: str, key: Any) -> EntityCell:
        """An entry's cell for a transaction, made if this is the first time that the transaction names the entry."""
        cells = self.cells[operator]
        cell = cells.get(key)
        if cell is None:
            found = self.found.get(operator) or self.find(operator)
            if has_ranges(operator):
                cell = cells[key] = RowCell(footprint, key, found, table=operator)
            else:
                cell = cells[key] = EntityCell(footprint, key, found)
        elif cell.footprint is not footprint:
            cell = self.shared_cell(cell, footprint, operator)
        return cell

    def shared_cell(self, first: EntityCell, footprint: Footprint, operator: str) -> EntityCell:
        """An entity's cell for a further transaction; `first` is the cell of the first transaction that named the
        entity.
        """
        entity = (operator, first.key)
        others = self.shared.get(entity)
        if others is None:
            others = self.shared[entity] = {}
        cell = others.get(footprint.tid)
        if cell is None:
            if type(first) is EntityCell:
                cell = EntityCell(footprint, first.key, first.found)
            else:
                cell = RowCell(footprint, first.key, first.found, table=operator)
            others[footprint.tid] = cell
        return cell

    def incremented_row(self, cell: RowCell) -> IncrementedRow:
        """The cell of a row that a transaction adds to, in the place of the cell that it had."""
        row = IncrementedRow(
            cell.footprint,
            cell.key,
            cell.found,
            cell.chain,
            cell.written,
            cell.value,
            cell.touched,
            cell.values,
            table=cell.table,
            overwritten=cell.overwritten,
        )
        cells = self.cells[cell.table]
        if cells[cell.key] is cell:
            cells[cell.key] = row
        else:
            self.shared[cell.table, cell.key][cell.footprint.tid] = row
        self.incremented.append(row)
        return row

    def cells_by_operator(self) -> Iterator[tuple[str, Iterable[EntityCell]]]:
        """The cells of all transactions of this epoch, by operator. An operator may come several times."""
        for operator, cells in self.cells.items():
            yield operator, cells.values()
        for (operator, _), others in self.shared.items():
            yield operator, others.values()


def content_of(
    slot: Slot, whole: bool, next_offset: int, pending: list[PendingTransaction], passed_over: PassedOver | None
) -> SlotContent:
    """The content of a slot for a snapshot: all state (`whole`), or only the changes. Converted state is in no snapshot
    yet, so it is stored whole.
    """
    state = slot.state
    delta, whole = state.take_delta(), whole or state.converted
    return SlotContent(slot.index, state.copied() if whole else delta, whole, next_offset, pending, passed_over)
