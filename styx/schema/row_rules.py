"""What a table's declarations demand of its stored rows: type, key, checks, unique indexes and references.

For a change of the declarations under rows that are there already. Rows may change while they are looked at; each must
be looked at again after its last change. Pure, but for the app's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from styx.errors import CheckViolation, UnsupportedValue, describe
from styx.model.table_names import entry_name
from styx.relational.row_indexes import ColumnIndex
from styx.relational.table import Table
from styx.schema.state_reading import Misfit, Reading, StateReader

Rows = Mapping[Any, bytes]
RowsOf = Callable[[str], Rows]
"""Gives the stored rows of a table of the same slot by its full name."""


class RowRules:
    """The rules of one table. `parents` are the full names of the tables that its rows refer to.

    Of each place in a unique index the row is kept that was last seen there, so the memory grows with the rows.
    """

    def __init__(self, table: Table, bytes_max: int) -> None:
        self._table = table
        self._reader = StateReader(table, bytes_max, "row type")
        self._seen: dict[tuple[int, Any, Any], Any] = {}
        self.parents = sorted({reference.parent.full_name for reference in table.references})

    def read(self, rows_of: RowsOf, key: Any, data: bytes) -> Reading:
        """Reads a stored row; raises `Misfit` if it breaks a rule."""
        reading = self._reader.read(data)
        stored = data if reading.data is None else reading.data
        row = self._row(stored)
        try:
            self._check_key(key, row)
            self._check_row(row, stored)
            self._check_unique(rows_of(self._table.full_name), key, row)
            self._check_references(rows_of, key, row)
        except Misfit:
            raise
        except BaseException as error:  # noqa: BLE001 - the app's own code can raise anything
            raise Misfit(f": {describe(error)[1]}") from None
        return reading

    def _row(self, data: bytes) -> Any:
        decode = self._table.row_type.decode
        return decode(data)

    def _check_key(self, key: Any, row: Any) -> None:
        table = self._table
        parts = table.parts_of(row)
        if key[table.entity_parts :] != parts:
            raise Misfit(
                f": its columns say the primary key {', '.join(map(repr, parts))}; a row's primary key never changes"
            )

    def _check_row(self, row: Any, data: bytes) -> None:
        try:
            self._table.check(row, data)
        except (CheckViolation, UnsupportedValue):
            raise
        except Exception as error:  # noqa: BLE001 - a check of the app can raise anything
            raise Misfit(": a check raised " + ": ".join(describe(error))) from None

    def _check_unique(self, rows: Rows, key: Any, row: Any) -> None:
        """The row that was seen in a place counts if it is still there: it may have been changed or deleted since."""
        parts = self._table.entity_parts
        for index in self._table.unique:
            values = _values(index, row)
            if values is None:
                continue
            place = (index.number, key[:parts], values)
            seen = self._seen.setdefault(place, key)
            if seen != key:
                if self._stands_there(rows, seen, index, values):
                    raise Misfit(
                        f": {entry_name(self._table.full_name, seen)} has the same values in the unique index "
                        f"{index.name!r}"
                    )
                self._seen[place] = key

    def _stands_there(self, rows: Rows, key: Any, index: ColumnIndex, values: Any) -> bool:
        data = rows.get(key)
        if data is None:
            return False
        try:
            reading = self._reader.read(data)
            return bool(_values(index, self._row(data if reading.data is None else reading.data)) == values)
        except Misfit:
            return False  # it offends by itself

    def _check_references(self, rows_of: RowsOf, key: Any, row: Any) -> None:
        parts = self._table.entity_parts
        for reference in self._table.references:
            parent = reference.parent_key(row)
            if parent is not None and key[:parts] + parent not in rows_of(reference.parent.full_name):
                raise Misfit(
                    f": it refers to {entry_name(reference.parent.full_name, key[:parts] + parent)}, which does not "
                    "exist"
                )


def _values(index: ColumnIndex, row: Any) -> Any:
    """What no other row of the entity may have in the index; None if a column is None, which is like nothing else."""
    if any(getattr(row, column.name) is None for column in index.columns):
        return None
    return index.values(row)
