"""One entry of a slot's state as a re-run sees it in the lock phase. Paper section 6.3."""

from __future__ import annotations

from typing import Any, Final

from styx.model.access import Access
from styx.model.cell import Cell, Environment
from styx.model.partitioning import Key
from styx.model.table_names import has_ranges
from styx.relational.index_range import IndexRange, RowKey
from styx.state.table import Reader
from styx.worker.footprint import Footprint, Writes
from styx.worker.range_read import Found, range_that_was_read, read_range, rows_of
from styx.worker.slot import Slot
from styx.worker.written_rows import WrittenRows

_NOT_WRITTEN: Final[bytes] = bytes(bytearray(b"not written"))  # an object of its own: no value is it


class CurrentCell(Cell):
    """An entry with own writes first, then writes of lower transactions, then the state."""

    __slots__ = ("_current", "_entity", "_found", "_slot", "_writes")

    def __init__(self, writes: Writes, current: Writes, slot: Slot, operator: str, key: Any) -> None:
        self._entity = (operator, key)
        self._writes = writes
        self._current = current
        self._slot = slot
        self._found: Reader = slot.found.get(operator) or slot.find(operator)

    def read(self, chain: bytes) -> bytes | None:
        entity, found = self._entity, self._found
        if self._writes:
            value = self._writes.get(entity, _NOT_WRITTEN)
            if value is not _NOT_WRITTEN:
                return value
        if self._current:
            value = self._current.get(entity, _NOT_WRITTEN)
            if value is not _NOT_WRITTEN:
                return value
        return found(entity[1])

    def write(self, chain: bytes, value: bytes | None) -> None:
        self._writes[self._entity] = value

    def access(self, access: Access) -> Any:
        operator, writes, current, found = access.operator, self._writes, self._current, self._found

        def read(key: Key) -> bytes | None:
            entity = (operator, key)
            if entity in writes:
                return writes[entity]
            return current[entity] if entity in current else found(key)

        result = access.result(read)
        for key, value in access.writes.items():
            writes[operator, key] = value
        return result

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        assert isinstance(environment, Footprint), "a function runs in a transaction"
        return current_sibling(environment, self._writes, self._current, self._slot, table, key)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        """As `Cell.scan`."""
        return rows_of(read_current(environment, wanted))

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        """As `Cell.count`."""
        return len(read_current(environment, wanted))


class CurrentRow(CurrentCell):
    """A row of a table: queries of the same transaction see what is written to it."""

    __slots__ = ("_again",)

    def __init__(self, writes: Writes, current: Writes, slot: Slot, table: str, key: Any, again: WrittenRows) -> None:
        super().__init__(writes, current, slot, table, key)
        self._again = again

    def write(self, chain: bytes, value: bytes | None) -> None:
        """As `Cell.write`."""
        table, key = self._entity
        self._writes[self._entity] = value
        self._again.write(table, key, value)


def current_sibling(footprint: Footprint, writes: Writes, current: Writes, slot: Slot, table: str, key: Any) -> Cell:
    """Another entry of the slot as the same re-run sees it."""
    footprint.touches(table, key)
    if has_ranges(table):
        return CurrentRow(writes, current, slot, table, key, footprint.rows_here().again)
    return CurrentCell(writes, current, slot, table, key)


def read_current(environment: Environment, wanted: IndexRange) -> Found:
    """The rows of a range, and a note in the footprint of what the part has read."""
    assert isinstance(environment, Footprint), "a function runs in a transaction"
    slot, index, n_slots = environment.here, wanted.index, environment.n_slots
    assert slot is not None, "a transaction without a slot is not run again"
    lower, rows = slot.current_rows, environment.rows_here()
    assert lower is not None, "a transaction is run again outside of a lock phase"
    found = read_range(slot, wanted, n_slots, (rows.again.of(index, n_slots), lower.of(index, n_slots)))
    rows.scanned.append(range_that_was_read(wanted, found))
    return found
