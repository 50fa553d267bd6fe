"""Indexes over the rows of all entities of an operator, as a table declares them: `scope="app"`.

Its entries are no rows of the table's slot: `styx.model.app_index` keeps them, where the value says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from styx.errors import BadQuery
from styx.relational.columns import Column
from styx.relational.index_range import RowKey
from styx.values.codec import shown


class AppWideIndex:
    """The declaration of an index by `columns`, all of which a look-up names. `unique`: no two rows of the app's have
    the same values. Rows with None in a column are not in it.
    """

    __slots__ = ("columns", "name", "table", "unique")

    def __init__(self, table: str, name: str, columns: tuple[Column, ...], unique: bool) -> None:
        self.table = table
        self.name = name
        self.columns = columns
        self.unique = unique

    def __str__(self) -> str:
        """As the table's description has it."""
        columns = ", ".join(column.name for column in self.columns)
        return f"{self.name}: equal={columns}; {'unique ' if self.unique else ''}over the app"

    def __repr__(self) -> str:
        return f"<app-wide index {self.name!r} of {self.table}>"

    def value_of(self, row: Any) -> RowKey | None:
        """The comparables of a row's columns, None if the row is not in the index; raises `UnsupportedValue`."""
        parts = []
        for column in self.columns:
            value = getattr(row, column.name)
            if value is None:
                return None
            kind = column.kind
            assert kind is not None, "the declaration checks it"
            parts.append(kind.of(value))
        return tuple(parts)

    def asked(self, values: Mapping[str, Any]) -> RowKey:
        """As `value_of`, of the values that a look-up names by column; raises `BadQuery`."""
        names = [column.name for column in self.columns]
        if sorted(values) != sorted(names):
            given = ", ".join(values) or "none"
            raise BadQuery(
                f"table {self.table}: a look-up by index {self.name!r} names a value for each of its columns, "
                f"{', '.join(names)}: got {given}"
            )
        for name in names:
            if values[name] is None:
                raise BadQuery(f"table {self.table}: rows with {name}=None are not in the app-wide index {self.name!r}")
        return tuple([column.bare(values[column.name]) for column in self.columns])

    def text_of(self, value: RowKey) -> str:
        """As messages name a value."""
        pairs = zip(self.columns, value, strict=True)
        return ", ".join(f"{column.name}={shown(column.from_part(part))}" for column, part in pairs)
