"""How a function reads and writes rows of its entity: one row by its key, and the rows of a range.

It counts what is read and written as operations of the function, and knows no constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.errors import RowLimitExceeded, UnsupportedValue
from styx.model.sequence import NUMBER_MAX, decode_number, encode_number, entry_of, table_of
from styx.relational.increment import Increment
from styx.relational.index_range import Group, IndexRange, RowKey
from styx.relational.row_keys import Parts
from styx.relational.table import Table
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.cell import Cell
    from styx.model.context import Context

SERIAL_PREFIX = "table\t"
"""Begins the name of the sequence that numbers a table's rows; no sequence of an app has one that is not printable."""


class RowStore:
    """The rows of one entity, or of one partition, that a function call may use.

    `entity`: the entity's key, flat, with which keys of rows begin; or the partition's number, with which groups do.
    """

    __slots__ = ("context", "entity", "key", "operator")

    def __init__(self, context: Context, operator: str, key: Any) -> None:
        self.context: Context = context
        self.operator: str = operator
        self.key: Any = key
        self.entity: Group = key if type(key) is tuple else (key,)

    def named(self) -> str:
        """As messages name the entity or partition."""
        return f"{self.operator}[{shown(self.key)}]"

    def spend(self, operations: int) -> None:
        """Counts operations; raises as every use of a context's methods does."""
        context = self.context
        left = context._left
        if left < operations or left < 0:
            context._refuse()
        context._left = left - operations

    def read(self, table: Table, key: RowKey) -> bytes | None:
        """A row's bytes, None if it is not there. One operation."""
        context = self.context
        left = context._left
        if left <= 0:
            context._refuse()
        context._left = left - 1
        return context._cell.sibling(context._env, table.full_name, key).read(context._chain)

    def read_value(self) -> bytes | None:
        """The entity's value, encoded, None if it has none. One operation."""
        self.spend(1)
        context = self.context
        return context._cell.sibling(context._env, self.operator, self.key).read(context._chain)

    def write(self, table: Table, key: RowKey, data: bytes | None) -> None:
        """Puts or, with None, deletes a row. One operation."""
        context = self.context
        left = context._left
        if left <= 0:
            context._refuse()
        context._left = left - 1
        if data is not None and len(data) > context._env.limits.value_bytes_max:
            named = f"row {shown(table.primary_key(key))} of table {table.full_name} of {self.named()}"
            raise context._too_large(named, data)
        context._cell.sibling(context._env, table.full_name, key).write(context._chain, data)

    def add(self, table: Table, key: RowKey, increment: Increment) -> bool:
        """Adds to columns of a row without reading it. One operation. Returns False if the row is missing and the
        increment has no row to begin with (`Increment.zero`).

        Rows of a view are kept with `Increment(view.row_type, {"count": -1, "amount": -row.amount}, zero, "count")`:
        the row appears when it is missing, and is removed when its count is 0. Increments never conflict or collide
        among themselves, also those that make a row appear or vanish. They do with everyone who reads the row's values
        or whether it is there, and with who puts or deletes it.
        """
        context = self.context
        left = context._left
        if left <= 0:
            context._refuse()
        context._left = left - 1
        return context._cell.sibling(context._env, table.full_name, key).add(context._chain, increment)

    def scan(self, wanted: IndexRange) -> list[tuple[RowKey, bytes]]:
        """The rows of a range, in order. One operation, and one for each row; raises `RowLimitExceeded`."""
        self.spend(1)
        if not wanted.low < wanted.high:
            return []
        context = self.context
        limit = context._env.limits.rows_per_query_max
        if not wanted.last and not 0 < wanted.first <= limit:
            wanted.first = limit + 1
        elif wanted.last > limit:
            wanted.last = limit + 1
        found = context._cell.scan(context._env, wanted, context._chain)
        if len(found) > limit:
            raise RowLimitExceeded(
                f"a query of table {wanted.index.table} read more than {limit} rows of {self.named()}, which is "
                "Limits.rows_per_query_max: narrow its conditions, or read page by page with first= or pages(…)"
            )
        self.spend(len(found))
        return found

    def count(self, wanted: IndexRange) -> int:
        """How many rows a range has. One operation."""
        self.spend(1)
        context = self.context
        return context._cell.count(context._env, wanted, context._chain) if wanted.low < wanted.high else 0

    def has(self, table: Table, parts: Parts) -> bool:
        """Whether the row is there whose key has these parts behind the entity's, whatever it holds. One operation."""
        self.spend(1)
        context = self.context
        return context._cell.has(context._env, table.indexes[0], self.entity, parts, context._chain)

    def next_serial(self, table: Table) -> int:
        """The next number of the entity's rows in the table, 1 at first. One operation."""
        cell = self._serial_cell(table)
        chain = self.context._chain
        number = decode_number(cell.read(chain)) + 1
        if number > NUMBER_MAX:
            raise UnsupportedValue(f"table {table.full_name} of {self.named()} has given its last number")
        cell.write(chain, encode_number(number))
        return number

    def pass_serial(self, table: Table, number: int) -> None:
        """Numbers of rows go on behind `number`, which a row brings, so that none meets that row. One operation."""
        cell = self._serial_cell(table)
        chain = self.context._chain
        if decode_number(cell.read(chain)) < number:
            cell.write(chain, encode_number(number))

    def _serial_cell(self, table: Table) -> Cell:
        self.spend(1)
        context = self.context
        return context._cell.sibling(
            context._env, table_of(table.operator), entry_of(self.key, SERIAL_PREFIX + table.name)
        )

    def decoded(self, table: Table, key: RowKey, data: bytes) -> Any:
        """The row; raises `UnsupportedValue` if it does not fit the row type."""
        try:
            unpack = table.row_type.unpack
            return unpack(data)
        except Exception:  # noqa: BLE001 - the careful way reads what another version stored, or raises it again
            return self._decoded(table, key, data)

    def _decoded(self, table: Table, key: RowKey, data: bytes) -> Any:
        try:
            decode = table.row_type.decode
            return decode(data)
        except Exception as error:  # noqa: BLE001 - a row type's own code can run here
            raise UnsupportedValue(
                f"the stored row {table.primary_key(key)!r} of table {table.full_name} of {self.named()} "
                f"does not fit its row type {table.row_type.name}: {error}"
            ) from None
