"""One entry of a slot's state as a re-run sees it in the lock phase. Paper section 6.3."""

from __future__ import annotations

from typing import Any

from styx.model.access import Access
from styx.model.context import Cell, Environment
from styx.model.partitioning import Key
from styx.relational.index_range import IndexRange, RowKey
from styx.worker.footprint import Footprint, Writes
from styx.worker.range_read import Found, read_range, rows_of
from styx.worker.slot import Slot


class CurrentCell(Cell):
    """An entry with own writes first, then writes of lower transactions, then the state."""

    __slots__ = ("_current", "_entity", "_found", "_slot", "_writes")

    def __init__(self, writes: Writes, current: Writes, slot: Slot, operator: str, key: Any) -> None:
        self._entity = (operator, key)
        self._writes = writes
        self._current = current
        self._slot = slot
        self._found = slot.find(operator)

    def read(self, chain: bytes) -> bytes | None:
        entity = self._entity
        if entity in self._writes:
            return self._writes[entity]
        if entity in self._current:
            return self._current[entity]
        return self._found(entity[1])

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
        environment.touches(table, key)
        return CurrentCell(self._writes, self._current, self._slot, table, key)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        """As `Cell.scan`."""
        return rows_of(read_current(environment, wanted, self._writes))

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        """As `Cell.count`."""
        return len(read_current(environment, wanted, self._writes))


def read_current(environment: Environment, wanted: IndexRange, own: Writes | None) -> Found:
    """The rows of a range, and a note in the footprint that the part has read such a table."""
    assert isinstance(environment, Footprint), "a function runs in a transaction"
    slot, table = environment.here, wanted.index.table
    assert slot is not None, "a transaction without a slot is not run again"
    environment.rows_here().scanned.add(table)
    over: dict[RowKey, bytes | None] = {}
    if own is not None:
        for (written, key), value in own.items():
            if written == table:
                over[key] = value
    current = slot.current_rows
    assert current is not None, "a transaction is run again outside of a lock phase"
    return read_range(slot, wanted, environment.n_slots, over, current.of(wanted.index, environment.n_slots))
