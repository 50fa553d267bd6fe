"""What a table's declarations demand of its stored rows: type, key, checks, unique indexes and references.

For a change of the declarations under rows that are there already. Rows may change while they are looked at; each must
be looked at again after its last change. References to other entities are not looked at: their rows may be elsewhere.
Pure, but for the app's checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from styx.errors import describe
from styx.relational.table import Table
from styx.schema.state_reading import Misfit, Reading, StateReader

Rows = Mapping[Any, bytes]
RowsOf = Callable[[str], Rows]
"""Gives the stored rows of a table of the same slot by its full name."""


class RowRules:
    """The rules of one table. `parents` are the full names of the tables that its rows refer to, within an entity."""

    def __init__(self, table: Table[Any], bytes_max: int, n_slots: int) -> None:
        self._table = table
        self._reader = StateReader(table, bytes_max, "row type")
        self._n_slots = n_slots
        self._uniques = [index for index in table.indexes[1:] if index.unique]
        self._holders: dict[Any, Any] = {}
        self._references = [each for each in table.references if each.inside]
        self.parents = [each.parent for each in self._references]

    def read(self, rows_of: RowsOf, key: Any, data: bytes) -> Reading:
        """Reads a stored row; raises `Misfit` if it breaks a rule."""
        reading = self._reader.read(data)
        new = data if reading.data is None else reading.data
        row = self._table.typed_state.decode(new)
        self._check_key(key, row)
        self._check_checks(row)
        self._check_uniques(rows_of(self._table.full_name), key, new)
        self._check_references(rows_of, key, row)
        return reading

    def _check_key(self, key: Any, row: Any) -> None:
        primary = self._table.primary_key(row)
        if key[len(key) - len(primary) :] != primary:
            raise Misfit(f": its primary key would be {primary!r}, and a row's key never changes")

    def _check_checks(self, row: Any) -> None:
        for check in self._table.checks:
            try:
                holds = check.holds(row)
            except BaseException as error:  # noqa: BLE001 - the app's own function can raise anything
                kind, message = describe(error)
                raise Misfit(f": check {check.name!r} raised {kind}: {message}") from None
            if not holds:
                raise Misfit(f": it breaks check {check.name!r}")

    def _check_uniques(self, rows: Rows, key: Any, data: bytes) -> None:
        """A row that has held an entry before counts if it still does: it may have been changed or deleted since."""
        for number, index in enumerate(self._uniques):
            entry = index.entry(key, data, self._n_slots)
            if entry is None:
                continue
            place = (number, *entry)
            holder = self._holders.setdefault(place, key)
            if holder != key:
                there = rows.get(holder)
                if there is not None and index.entry(holder, self._form(there), self._n_slots) == entry:
                    raise Misfit(f": unique index {index.name!r} has the same entry for {self._table.full_name}[{holder!r}]")
                self._holders[place] = key

    def _form(self, data: bytes) -> bytes:
        """A row as the new version stores it."""
        try:
            new = self._reader.read(data).data
        except Misfit:
            return data
        return data if new is None else new
