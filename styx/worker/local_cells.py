"""The entities of one slot in phase 3: current state, with the writes of the local transactions that have run so far.

A local transaction writes in place. Until it has ended, each entity that it wrote keeps the value from before, so that
a transaction that raises, or leaves the slot, leaves nothing. The committed state is written once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from styx.model.access import Access
from styx.model.cell import Cell, Environment
from styx.model.table_names import has_ranges
from styx.native.interpreted import native, plain_stores
from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex
from styx.state.table import Table
from styx.worker.footprint import Footprint
from styx.worker.range_read import Found, read_range, rows_of
from styx.worker.slot import Slot
from styx.worker.written_rows import WrittenRows


@native
@plain_stores
class LocalCell(msgspec.Struct, Cell, eq=False, gc=False):
    """One entity. `value` is its state as the running transaction sees it.

    `own`: the running transaction has written it, is in its list `wrote`, and found `before`. `changed`: a transaction
    that has ended wrote it.
    """

    key: Any
    wrote: list[LocalCell]
    value: bytes | None
    before: bytes | None = None
    own: bool = False
    changed: bool = False

    def read(self, chain: bytes) -> bytes | None:
        return self.value

    def write(self, chain: bytes, value: bytes | None) -> None:
        if not self.own:
            self.own = True
            self.before = self.value
            self.wrote.append(self)
        self.value = value

    def undo(self) -> None:
        """The running transaction leaves nothing here."""
        self.own = False
        self.value = self.before
        self.before = None

    def access(self, access: Access) -> Any:
        raise AssertionError("what touches many entities at once is no local function")

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        """As `Cell.sibling`."""
        assert isinstance(environment, Footprint), "a local function runs in a transaction"
        cells = environment.local
        assert cells is not None, "a local function runs in phase 3"
        return cells.cell(table, key)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        """As `Cell.scan`."""
        return rows_of(_read(environment, wanted))

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        """As `Cell.count`."""
        return len(_read(environment, wanted))

    def has(
        self, environment: Environment, primary: TableIndex, entity: Group, position: Position, chain: bytes
    ) -> bool:
        """As `Cell.has`. Nobody runs beside a local transaction, so a look is not noted."""
        assert isinstance(environment, Footprint), "a local function runs in a transaction"
        cells = environment.local
        assert cells is not None, "a local function runs in phase 3"
        return cells.cell(primary.table, entity + position).value is not None


@native
@plain_stores
class LocalRow(LocalCell, eq=False, gc=False):
    """One row of a table: queries see what is written to it, as `rows`, until it is undone."""

    table: str = ""
    rows: WrittenRows | None = None

    def write(self, chain: bytes, value: bytes | None) -> None:
        """As `Cell.write`."""
        LocalCell.write(self, chain, value)
        assert self.rows is not None
        self.rows.write(self.table, self.key, value)

    def undo(self) -> None:
        """As `LocalCell.undo`."""
        LocalCell.undo(self)
        assert self.rows is not None
        self.rows.write(self.table, self.key, self.value)


def _read(environment: Environment, wanted: IndexRange) -> Found:
    assert isinstance(environment, Footprint), "a local function runs in a transaction"
    cells = environment.local
    assert cells is not None, "a local function runs in phase 3"
    return cells.read(wanted, environment.n_slots)


class LocalCells:
    """The entities that the epoch's local transactions have named on one slot, by operator and key."""

    __slots__ = ("_cells", "_named", "_of_rows", "_operator", "_rows", "_slot", "_table", "_wrote")

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._cells: dict[str, dict[Any, LocalCell]] = {}
        self._wrote: list[LocalCell] = []
        self._rows = WrittenRows()
        # Of the operator that was asked for last: most functions call those of their own operator.
        self._operator: str | None = None
        self._named: dict[Any, LocalCell] = {}
        self._of_rows = False
        self._table: Table | None = None

    @property
    def epoch(self) -> int:
        """The open epoch."""
        return self._slot.epoch

    def cell(self, operator: str, key: Any) -> LocalCell:
        """An entity, as the running transaction sees it."""
        if operator is not self._operator:
            self._turn_to(operator)
        cells = self._named
        cell = cells.get(key)
        if cell is None:
            table = self._table
            assert table is not None
            value = table.read(self._slot.epoch, key)
            if self._of_rows:
                cell = LocalRow(key, self._wrote, value, table=operator, rows=self._rows)
            else:
                cell = LocalCell(key, self._wrote, value)
            cells[key] = cell
        return cell

    def read(self, wanted: IndexRange, n_slots: int) -> Found:
        """The rows of a range, as the running transaction sees them."""
        return read_range(self._slot, wanted, n_slots, (self._rows.of(wanted.index, n_slots),))

    def _turn_to(self, operator: str) -> None:
        cells = self._cells.get(operator)
        if cells is None:
            cells = self._cells[operator] = {}
        self._operator, self._named, self._table = operator, cells, self._slot.table(operator)
        self._of_rows = has_ranges(operator)

    def keep(self) -> None:
        """The running transaction has ended well: the following ones see its writes."""
        for cell in self._wrote:
            cell.own = False
            cell.changed = True
            cell.before = None
        self._wrote.clear()

    def undo(self) -> None:
        """The running transaction leaves nothing."""
        for cell in self._wrote:
            cell.undo()
        self._wrote.clear()

    def written(self) -> Iterator[tuple[str, Any]]:
        """(operator, key) of each entity that a transaction wrote."""
        for operator, cells in self._cells.items():
            for key, cell in cells.items():
                if cell.changed:
                    yield operator, key

    def commit(self) -> None:
        """Commits all writes."""
        assert not self._wrote, "a local transaction has not ended"
        slot = self._slot
        epoch: int = slot.epoch
        for operator, cells in self._cells.items():
            table = slot.table(operator)
            for cell in cells.values():
                if cell.changed:
                    table.write(epoch, cell.key, cell.value)
