"""Indexes over the rows of all entities of an operator, as a table declares them: `scope="app"`.

Its entries are no rows of the table's slot: `styx.model.app_index` keeps them, where the value says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from styx.errors import BadQuery, UnsupportedValue
from styx.relational.columns import Column
from styx.relational.conditions import Comparison
from styx.relational.index_range import RowKey
from styx.relational.ordered_part import part_of
from styx.values.codec import shown


class Look(NamedTuple):
    """What a look-up asks for: the parts of `value`, one for each column of the index, those of its first `order`
    columns, and a comparison with the next one, of parts as well; None: there is none.
    """

    value: RowKey
    order: RowKey
    compared: Comparison | None


class AppWideIndex:
    """The declaration of an index by `columns`, all of which a look-up names. The rows of a value are in the order of
    the `order` columns, then of their keys. `unique`: no two rows of the app's have the same values. Rows with None in
    a column are not in it.
    """

    __slots__ = ("columns", "name", "order", "table", "unique")

    def __init__(
        self, table: str, name: str, columns: tuple[Column, ...], order: tuple[Column, ...], unique: bool
    ) -> None:
        self.table = table
        self.name = name
        self.columns = columns
        self.order = order
        self.unique = unique

    def __str__(self) -> str:
        """As the table's description has it."""
        columns, order = (", ".join([column.name for column in each]) for each in (self.columns, self.order))
        ordered = f"order={order}; " if order else ""
        return f"{self.name}: equal={columns}; {ordered}{'unique ' if self.unique else ''}over the app"

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

    def order_of(self, row: Any) -> RowKey:
        """The parts of a row's `order` columns; raises `UnsupportedValue`."""
        try:
            return tuple([part_of(column, getattr(row, column.name)) for column in self.order])
        except BadQuery as error:
            raise UnsupportedValue(f"table {self.table}, app-wide index {self.name!r}: {error}") from None

    def asked(self, conditions: Mapping[str, Any]) -> Look:
        """What a look-up with these conditions by column asks for; raises `BadQuery`."""
        names, order = [column.name for column in self.columns], [column.name for column in self.order]
        if not {*names} <= {*conditions} <= {*names, *order}:
            given = ", ".join(conditions) or "none"
            further = f", and may have conditions on {', '.join(order)}" if order else ""
            raise BadQuery(
                f"table {self.table}: a look-up by index {self.name!r} names a value for each of its columns, "
                f"{', '.join(names)}{further}: got {given}"
            )
        for name in [*names, *order]:
            if name in conditions and conditions[name] is None:
                raise BadQuery(f"table {self.table}: rows with {name}=None are not in the app-wide index {self.name!r}")
        value = tuple([column.bare(conditions[column.name]) for column in self.columns])
        return Look(value, *self._ordered([conditions.get(name) for name in order]))

    def _ordered(self, conditions: list[Any]) -> tuple[RowKey, Comparison | None]:
        """The parts that the first columns have, and the comparison with the next one."""
        fixed: list[Any] = []
        compared: Comparison | None = None
        for column, condition in zip(self.order, conditions, strict=True):
            if condition is None:
                continue
            if compared is not None or len(fixed) < self.order.index(column):
                raise BadQuery(
                    f"table {self.table}: index {self.name!r} is in the order of "
                    f"{', '.join([each.name for each in self.order])}: a look-up says {self.order[0].name}=value for "
                    "the first of these columns, and one comparison for the next; it does not filter. Declare another "
                    "index, or look at the rows in the caller"
                )
            if type(condition) is Comparison:
                compared = _of_parts(column, condition)
            else:
                fixed.append(part_of(column, condition))
        return tuple(fixed), compared

    def text_of(self, value: RowKey) -> str:
        """As messages name a value."""
        pairs = zip(self.columns, value, strict=True)
        return ", ".join(f"{column.name}={shown(column.from_part(part))}" for column, part in pairs)


def _of_parts(column: Column, comparison: Comparison) -> Comparison:
    """The same comparison, of the parts of values."""
    if comparison.operation == "prefix" and (column.kind is None or not column.kind.prefixes):
        raise BadQuery(f"column {column.name!r} is of type {column.type_name}: only texts have a prefix")
    low, high = (None if each is None else part_of(column, each) for each in (comparison.low, comparison.high))
    return Comparison(comparison.operation, low, high)
