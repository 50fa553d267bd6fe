"""The rows that one transaction wrote on one slot, and the ranges that its queries read there.

A query sees the committed rows of its range. Of each row that the transaction wrote on the slot, it sees the value that
is visible to its chain instead. The *images* of a row in a transaction are its committed value and every value that a
branch wrote. A range and a concurrent branch's write collide if an image of the row lies in the range, whichever came
first: a branch may overwrite what a chain above both had put into the range. Paper section 5.2, for ranges.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from styx.model.context import PATH_STEP_BYTES
from styx.native.interpreted import native
from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex
from styx.worker.written_rows import WrittenIndex, WrittenRows

if TYPE_CHECKING:
    from styx.worker.incremented_row import AnyRow

PAIRS_MAX: Final = 100_000
"""Pairs of a range and a row, of several branches in one group, above which they count as collided without a look: the
transaction runs again in serial order, and is right.
"""
_NO_CELLS: Final[dict[RowKey, AnyRow]] = {}


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

    `scanned` are the ranges that the last re-run has read, and `again` the rows that it has written so far.
    """

    __slots__ = ("_asked", "_beside", "_chain", "_own", "_unseen", "again", "n_slots", "ranges", "scanned", "written")

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.ranges: list[tuple[bytes, IndexRange]] = []
        self.written: dict[str, dict[RowKey, AnyRow]] = {}
        self.scanned: list[IndexRange] = []
        self.again = WrittenRows()
        # What the only chain has written, once it has made a query; from the second chain on, `_beside` instead.
        self._own: WrittenRows | None = None
        # What it has written since its last query of a table. To look at a row that was only added to adds it up.
        self._unseen: dict[str, dict[RowKey, AnyRow]] = {}
        self._asked: set[tuple[bytes, str, RowKey]] = set()
        self._chain: bytes | None = None
        self._beside: _Branches | None = None

    def run_again(self) -> None:
        """Drops what is left of the re-run before."""
        self.scanned.clear()
        self.again = WrittenRows()

    def seen(self, wanted: IndexRange, chain: bytes) -> WrittenIndex:
        """The rows of the range's group that the transaction wrote, as `chain` sees them, without those that it does
        not see; it may have rows of other groups.
        """
        index, beside = wanted.index, self._branches(chain)
        if beside is None:
            own = self._own
            if own is None:
                own = self._own = WrittenRows()
                self._unseen = {table: dict(cells) for table, cells in self.written.items()}
            unseen = self._unseen.pop(index.table, None)
            if unseen is not None:
                for cell in unseen.values():
                    own.write(index.table, cell.key, cell.visible(chain))
            return own.of(index, self.n_slots)
        seen = WrittenRows()
        for cell in beside.seen(wanted, chain, self.written):
            seen.write(index.table, cell.key, cell.visible(chain))
        return seen.of(index, self.n_slots)

    def read(self, chain: bytes, wanted: IndexRange) -> bool:
        """Notes a range that was read. Returns whether it collides with a write."""
        beside = self._branches(chain)
        self.ranges.append((chain, wanted))
        return beside is not None and beside.read(chain, wanted, self.written)

    def asks_first(self, chain: bytes, table: str, key: RowKey) -> bool:
        """Whether the chain has not yet asked if this row is there: what it asked is a range that it has read."""
        asked, number = self._asked, len(self._asked)
        asked.add((chain, table, key))
        return len(asked) > number

    def wrote(self, chain: bytes, cell: AnyRow) -> bool:
        """Notes a row that has been written. Returns whether a range collides with it."""
        cells = self.written.get(cell.table)
        if cells is None:
            cells = self.written[cell.table] = {}
        cells[cell.key] = cell
        beside = self._branches(chain)
        if beside is not None:
            return beside.wrote(chain, cell)
        if self._own is not None:
            unseen = self._unseen.get(cell.table)
            if unseen is None:
                unseen = self._unseen[cell.table] = {}
            unseen[cell.key] = cell
        return False

    def _branches(self, chain: bytes) -> _Branches | None:
        """None while all rows and ranges are of one chain."""
        beside = self._beside
        if beside is None:
            if self._chain is None:
                self._chain = chain
            elif self._chain != chain:
                beside = self._beside = _Branches(self.n_slots)
                for reader, wanted in self.ranges:
                    beside.read(reader, wanted, self.written)
        return beside


class _Group:
    """The ranges and rows of one group of an index. `by_writer` are the rows by the chains that wrote them."""

    __slots__ = ("by_writer", "ranges", "rows")

    def __init__(self) -> None:
        self.ranges: list[tuple[bytes, IndexRange]] = []
        self.rows: dict[RowKey, AnyRow] = {}
        self.by_writer: dict[bytes, dict[RowKey, AnyRow]] = {}

    @property
    def crowded(self) -> bool:
        """Whether looking at all pairs would take too long. More branches only make it so, in whatever order."""
        return len(self.ranges) * len(self.rows) > PAIRS_MAX


class _Branches:
    """Ranges and rows of several chains, by the groups of the indexes that were queried: with as many branches as there
    are entities, each range meets the rows of its own entity only.
    """

    __slots__ = ("_groups", "_indexes", "_n_slots")

    def __init__(self, n_slots: int) -> None:
        self._n_slots = n_slots
        self._indexes: dict[str, list[TableIndex]] = {}
        self._groups: dict[tuple[TableIndex, Group], _Group] = {}

    def read(self, chain: bytes, wanted: IndexRange, written: dict[str, dict[RowKey, AnyRow]]) -> bool:
        """Takes a range. Returns whether it collides with a write."""
        index, group = wanted.index, self._group(wanted, written)
        group.ranges.append((chain, wanted))
        if group.crowded:
            return True
        for cell in group.rows.values():
            if cell.written_beside(chain) and images(cell, index, self._n_slots).matter_to(wanted):
                return True
        return False

    def wrote(self, chain: bytes, cell: AnyRow) -> bool:
        """Takes a write of `chain`. Returns whether a range collides with it."""
        collides = False
        for index in self._indexes.get(cell.table, ()):
            found = self._add(cell, index, chain)
            for place, _ in found.entries:
                group = self._groups[index, place]
                collides = (
                    collides
                    or group.crowded
                    or any(cell.written_beside(reader) and found.matter_to(wanted) for reader, wanted in group.ranges)
                )
        return collides

    def seen(self, wanted: IndexRange, chain: bytes, written: dict[str, dict[RowKey, AnyRow]]) -> Iterable[AnyRow]:
        """The rows of the range's group that `chain`, or a chain above it, wrote."""
        by_writer = self._group(wanted, written).by_writer
        found: dict[RowKey, AnyRow] = {}
        for end in range(len(chain), -1, -PATH_STEP_BYTES):
            found.update(by_writer.get(chain[:end], _NO_CELLS))
        return found.values()

    def _group(self, wanted: IndexRange, written: dict[str, dict[RowKey, AnyRow]]) -> _Group:
        """The group of a range. All rows with an image in it are in it."""
        index = wanted.index
        indexes = self._indexes.setdefault(index.table, [])
        if index not in indexes:
            indexes.append(index)
            for cell in written.get(index.table, _NO_CELLS).values():
                self._add(cell, index, None)
        return self._group_at(index, wanted.group)

    def _group_at(self, index: TableIndex, place: Group) -> _Group:
        group = self._groups.get((index, place))
        if group is None:
            group = self._groups[index, place] = _Group()
        return group

    def _add(self, cell: AnyRow, index: TableIndex, chain: bytes | None) -> Images:
        """Takes the row, of which `chain` is the only writer that its groups may not know; None: all writers."""
        found = images(cell, index, self._n_slots)
        for place, _ in found.entries:
            group = self._group_at(index, place)
            known = chain is not None and group.rows.get(cell.key) is cell
            group.rows[cell.key] = cell
            for writer in [chain] if known and chain is not None else cell.writers():
                group.by_writer.setdefault(writer, {})[cell.key] = cell
        return found


def images(cell: AnyRow, index: TableIndex, n_slots: int) -> Images:
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
