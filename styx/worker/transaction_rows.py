"""The rows that one transaction wrote on one slot, and the ranges that its queries read there.

A query sees the committed rows of its range. Of each row that the transaction wrote on the slot, it sees the value that
is visible to its chain instead. The *images* of a row in a transaction are its committed value and every value that a
branch wrote. A range and a concurrent branch's write collide if an image of the row lies in the range, whichever came
first: a branch may overwrite what a chain above both had put into the range. Paper section 5.2, for ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from styx.native.interpreted import native
from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex
from styx.worker.written_rows import WrittenIndex, WrittenRows

if TYPE_CHECKING:
    from styx.worker.footprint import RowCell


_NO_CELLS: Final[dict[RowKey, RowCell]] = {}


@native
class Images(msgspec.Struct, eq=False):
    """The entries in one index that a transaction's writes give one row, and take from it. `moved`: they are not all
    the same one.
    """

    entries: list[tuple[Group, Position]]
    moved: bool

    def matter_to(self, wanted: IndexRange) -> bool:
        """Whether the row's writes can change what a query of the range finds."""
        if wanted.membership and not self.moved:
            return False
        low, high, wanted_group = wanted.low, wanted.high, wanted.group
        return any(group == wanted_group and low <= position < high for group, position in self.entries)


class TransactionRows:
    """`ranges` are the (chain, range) of the queries, and `written` the rows, by table and key.

    `scanned` are the tables that the last re-run has queried, and `again` the rows that it has written so far.
    """

    __slots__ = ("_chain", "_own", "_several", "again", "n_slots", "ranges", "scanned", "written")

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.ranges: list[tuple[bytes, IndexRange]] = []
        self.written: dict[str, dict[RowKey, RowCell]] = {}
        self.scanned: set[str] = set()
        self.again = WrittenRows()
        # What the only chain has written, once it has made a query.
        self._own: WrittenRows | None = None
        self._chain: bytes | None = None
        self._several = False

    def run_again(self) -> None:
        """Drops what is left of the re-run before."""
        self.scanned.clear()
        self.again = WrittenRows()

    def seen(self, index: TableIndex, chain: bytes) -> WrittenIndex:
        """The rows that the transaction wrote, as `chain` sees them, without those that it does not see."""
        if self._only(chain):
            if self._own is None:
                self._own = WrittenRows()
                for table, cells in self.written.items():
                    for cell in cells.values():
                        self._own.write(table, cell.key, cell.visible(chain))
            return self._own.of(index, self.n_slots)
        seen = WrittenRows()
        for cell in self.written.get(index.table, _NO_CELLS).values():
            if cell.sees_write(chain):
                seen.write(index.table, cell.key, cell.visible(chain))
        return seen.of(index, self.n_slots)

    def read(self, chain: bytes, wanted: IndexRange) -> bool:
        """Notes a range that was read. Returns whether it collides with a write."""
        self.ranges.append((chain, wanted))
        if self._only(chain):
            return False
        index = wanted.index
        cells = self.written.get(index.table)
        if cells is None:
            return False
        for cell in cells.values():
            if cell.written_beside(chain) and images(cell, index, self.n_slots).matter_to(wanted):
                return True
        return False

    def wrote(self, chain: bytes, cell: RowCell) -> bool:
        """Notes a row that has been written. Returns whether a range collides with it."""
        cells = self.written.get(cell.table)
        if cells is None:
            cells = self.written[cell.table] = {}
        cells[cell.key] = cell
        if self._only(chain):
            if self._own is not None:
                self._own.write(cell.table, cell.key, cell.visible(chain))
            return False
        for reader, wanted in self.ranges:
            index = wanted.index
            if (
                index.table == cell.table
                and cell.written_beside(reader)
                and images(cell, index, self.n_slots).matter_to(wanted)
            ):
                return True
        return False

    def _only(self, chain: bytes) -> bool:
        """Whether all rows and ranges are of one chain."""
        if self._chain is None:
            self._chain = chain
        elif self._chain != chain:
            self._several = True
        return not self._several


def images(cell: RowCell, index: TableIndex, n_slots: int) -> Images:
    """A written row's entries in an index of its table."""
    return images_of(cell.key, cell.images(), index, n_slots)


def images_of(key: RowKey, values: list[bytes | None], index: TableIndex, n_slots: int) -> Images:
    """The entries of a row that has these values in a transaction, the committed one included."""
    entries: list[tuple[Group, Position]] = []
    missing = moved = False
    for data in values:
        entry = None if data is None else index.entry(key, data, n_slots)
        if entry is None:
            missing = True
        elif entry not in entries:
            entries.append(entry)
    if entries:
        moved = missing or len(entries) > 1
    return Images(entries, moved)
