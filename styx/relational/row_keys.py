"""The keys of a table's rows: the parts behind their entity's key, from a primary key or from a row, and back."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from styx.errors import BadQuery
from styx.relational.columns import Column
from styx.values.codec import shown

Parts = tuple[Any, ...]
"""Texts and whole numbers of 64 bits, one for each column of the primary key."""
_SMALL: Final = 2**61
"""Whole numbers below this magnitude fit 64 bits."""
_SHORT_TEXT_CHARS: Final = 500
"""A text of so few characters, if it is ASCII, is within every limit of a key."""


def _nothing(row: Any) -> Parts:
    return ()


class RowKeys:
    """The primary key `columns` of the table `table`, of rows whose keys begin with `entity_parts` parts."""

    __slots__ = ("_columns", "_entity_parts", "_get", "_quick", "_table")

    def __init__(self, table: str, columns: tuple[Column, ...], entity_parts: int) -> None:
        self._table = table
        self._columns = columns
        self._entity_parts = entity_parts
        # A view without groups has one row for each entity, and no columns in its key.
        self._get: Any = attrgetter(*[column.name for column in columns]) if columns else _nothing
        # By column: the class whose values are their own parts.
        self._quick: list[Any] = [
            column.kind.classes[0] if column.kind is not None and column.plain else None for column in columns
        ]

    def of(self, pk: Any) -> Parts:
        """The parts of a primary key: a value, or a tuple for several columns. Raises `BadQuery`."""
        if len(self._columns) == 1:
            return self._checked((pk,))
        if type(pk) is tuple and len(pk) == len(self._columns):
            return self._checked(pk)
        if type(pk) is list and len(pk) == len(self._columns):
            return self._checked(tuple(pk))
        names = ", ".join([column.name for column in self._columns])
        raise BadQuery(f"the primary key of table {self._table} is ({names}), got {shown(pk)}")

    def of_row(self, row: Any) -> Parts:
        """As `of`, of a row that was encoded."""
        get = self._get
        return self._checked((get(row),) if len(self._columns) == 1 else get(row))

    def _checked(self, values: Parts) -> Parts:
        quick = self._quick
        at = 0
        for value in values:
            kind = type(value)
            if kind is not quick[at]:
                return self._converted(values)
            if kind is int:
                number: int = value  # unboxed, compiled: quick to compare
                if not -_SMALL < number < _SMALL:
                    return self._converted(values)
            elif len(value) > _SHORT_TEXT_CHARS or not value.isascii():
                return self._converted(values)
            at += 1  # noqa: SIM113 - compiled, a number costs less than a pair
        return values

    def _converted(self, values: Parts) -> Parts:
        try:
            return tuple([column.key_part(value) for column, value in zip(self._columns, values, strict=True)])
        except BadQuery as error:
            raise BadQuery(f"table {self._table}: {error}") from None

    def primary_key(self, key: Parts) -> Any:
        """The primary key, as `of` takes it, of the whole key of a row."""
        begin = self._entity_parts
        values = [column.from_part(key[begin + at]) for at, column in enumerate(self._columns)]
        return values[0] if len(values) == 1 else tuple(values)
