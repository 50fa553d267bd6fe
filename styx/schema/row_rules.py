"""What a table's declarations demand of its stored rows: type, key, checks, unique indexes and references.

For a change of the declarations under rows that are there already. Rows may change while they are looked at; each must
be looked at again after its last change. Pure, but for the app's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from styx.errors import CheckViolation, UnsupportedValue, describe
from styx.model.app_index import AppIndex
from styx.model.app_view import AppView
from styx.model.table_names import entry_name
from styx.relational.foreign_reference import ForeignReference
from styx.relational.index_range import RowKey
from styx.relational.row_indexes import ColumnIndex
from styx.relational.table import Table
from styx.schema.state_reading import Misfit, Reading, StateReader
from styx.values.codec import shown

Rows = Mapping[Any, bytes]
RowsOf = Callable[[str], Rows]
"""Gives the stored rows of a table of the same slot by its full name."""


class RowRules:
    """The rules of one table. `parents` are the full names of the tables that its rows refer to. `notes_parents`: it
    keeps what rows refer to in other entities, which only all slots together can hold against what is there.

    Of each place in a unique index the row is kept that was last seen there, so the memory grows with the rows.
    """

    def __init__(self, table: Table, bytes_max: int, notes_parents: bool = False) -> None:
        self._table = table
        self._foreign = table.foreign if notes_parents else ()
        self._refers: dict[str, dict[RowKey, tuple[Rows, RowKey]]] = {each.name: {} for each in self._foreign}
        self._reader = StateReader(table, bytes_max, "row type")
        self._seen: dict[tuple[int, Any, Any], Any] = {}
        self._app_wide = [each for each in table.consequences if isinstance(each, AppIndex)]
        self._app_views = [each for each in table.consequences if isinstance(each, AppView)]
        self._in_app: dict[tuple[str, RowKey], tuple[Rows, Any]] = {}
        self.parents = sorted({reference.parent.full_name for reference in table.references})

    def read(self, rows_of: RowsOf, key: Any, data: bytes) -> Reading:
        """Reads a stored row; raises `Misfit` if it breaks a rule."""
        reading = self._reader.read(data)
        stored = data if reading.data is None else reading.data
        row = self._row(stored)
        try:
            self._check_key(key, row)
            self._check_columns(row, stored)
            self._check_row(row, stored)
            self._check_unique(rows_of(self._table.full_name), key, row)
            if self._app_wide:
                self._check_app_wide(rows_of(self._table.full_name), key, row)
            self._check_references(rows_of, key, row)
            if self._foreign:
                self._note_parents(rows_of(self._table.full_name), key, row)
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

    def _check_columns(self, row: Any, data: bytes) -> None:
        """Indexes do not run code of the row type, so its code may not give a row other columns than are stored."""
        table = self._table
        if not table.row_type.runs_code:
            return
        decode = table.row_type.decode_columns
        stored = decode(data)
        for column in dict.fromkeys(column for index in table.indexes[1:] for column in index.columns):
            given, kept = column.stored(getattr(row, column.name)), column.stored(getattr(stored, column.name))
            if given != kept:
                raise Misfit(
                    f".{column.name}: code of the row type, such as __post_init__, makes {shown(given)} of the stored "
                    f"{shown(kept)}, and an index has the column: store the value with migrate="
                )

    def _check_row(self, row: Any, data: bytes) -> None:
        try:
            self._table.check(row, data)
            for view in self._table.views:
                view.try_row(row)
            for keeper in self._app_views:
                keeper.calls((), None, row)  # the group has a place
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

    def _check_app_wide(self, rows: Rows, key: Any, row: Any) -> None:
        """As `_check_unique`, among the rows of all slots that are looked at."""
        for index in self._app_wide:
            value = index.declared.value_of(row)
            if value is None:
                continue
            index.check_place(row)
            if not index.declared.unique:
                continue
            place = (index.declared.name, value)
            where, seen = self._in_app.setdefault(place, (rows, key))
            if seen != key:
                if self._has_value(where, seen, index, value):
                    raise Misfit(
                        f": {entry_name(self._table.full_name, seen)} has the same values in the unique index "
                        f"{index.declared.name!r}"
                    )
                self._in_app[place] = (rows, key)

    def _has_value(self, rows: Rows, key: Any, index: AppIndex, value: RowKey) -> bool:
        data = rows.get(key)
        if data is None:
            return False
        try:
            reading = self._reader.read(data)
            row = self._row(data if reading.data is None else reading.data)
            return index.declared.value_of(row) == value
        except (Misfit, UnsupportedValue):
            return False  # it offends by itself

    def unique_values(self) -> Iterator[tuple[AppIndex, RowKey, Any]]:
        """(the index, the value, the row's key) of what stands in unique app-wide indexes now, in the slots that were
        looked at.
        """
        indexes = {index.declared.name: index for index in self._app_wide}
        for (name, value), (rows, key) in self._in_app.items():
            if self._has_value(rows, key, indexes[name], value):
                yield indexes[name], value, key

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

    def _note_parents(self, rows: Rows, key: RowKey, row: Any) -> None:
        for reference in self._foreign:
            noted, parent = self._refers[reference.name], reference.parent_key(row)
            if parent is None:
                noted.pop(key, None)
            else:
                noted[key] = (rows, parent)

    def parents_of(self, reference: ForeignReference) -> Iterator[tuple[RowKey, RowKey]]:
        """(a row's key, its parent's key) by a reference to other entities, of the rows that are there now."""
        for key, (rows, parent) in self._refers.get(reference.name, {}).items():
            if key in rows:
                yield key, parent


def _values(index: ColumnIndex, row: Any) -> Any:
    """What no other row of the entity may have in the index; None if a column is None, which is like nothing else."""
    if any(getattr(row, column.name) is None for column in index.columns):
        return None
    return index.values(row)
