"""A ranking: the values that one column has in each group of a view, in order, each with the number of its rows.

The least and the greatest value of a group are the ends of a range then, also after the row that had one has gone.
As the groups themselves, its entries are made by the engine alone, and are added to without being read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.relational.columns import Column
from styx.relational.increment import Increment
from styx.relational.index_range import TOP, IndexRange, RowKey
from styx.relational.ordered_part import part_class, part_of, value_of

if TYPE_CHECKING:
    from styx.relational.table import Table

_ROWS: Final = "rows"


class Ranking:
    """The ranking of the values of `column`. `low` and `high`: whether the least and the greatest one are asked for.

    `table` has the entries, behind the keys of the groups; it is set once, after `entry_type` has said what they are.
    Rows with None in the column have no entry.
    """

    __slots__ = ("column", "high", "low", "table")
    table: Table

    def __init__(self, column: Column, low: bool, high: bool) -> None:
        self.column = column
        self.low = low
        self.high = high

    def entry_type(self, name: str, groups: Sequence[Column]) -> tuple[type, tuple[str, ...]]:
        """The type of the entries, and the columns of their key: those of a group, and the value, as parts of keys."""
        key = (*(f"group{at}" for at in range(len(groups))), "value")
        fields: list[Any] = [
            (each, part_class(column)) for each, column in zip(key, (*groups, self.column), strict=True)
        ]
        return msgspec.defstruct(name, [*fields, (_ROWS, int)], array_like=True), key

    @property
    def ends(self) -> tuple[tuple[str, bool], ...]:
        """The ends that are asked for: the name of the view's column, and whether it is the greatest value."""
        low = ((f"min_{self.column.name}", False),) if self.low else ()
        high = ((f"max_{self.column.name}", True),) if self.high else ()
        return low + high

    def part(self, value: Any) -> str | int:
        """The part of an entry's key, of a value; raises `BadQuery`."""
        return part_of(self.column, value)

    def value(self, part: Any) -> Any:
        """The value of a part."""
        return value_of(self.column, part)

    def increment(self, parts: RowKey, by: int) -> Increment:
        """What adds so many rows to the entry with these parts of a key."""
        row_type = self.table.row_type
        return Increment(row_type, {_ROWS: by}, self.entry(parts, 0), _ROWS)

    def entry(self, parts: RowKey, rows: int) -> bytes:
        """The entry with these parts of a key, of so many rows, encoded."""
        row_type = self.table.row_type
        pack = row_type.typed.pack
        declared: Any = row_type.declared
        return pack(declared(*parts[-len(self.table.key) :], rows))

    def end(self, place: RowKey, group: RowKey, greatest: bool) -> IndexRange:
        """The one entry at an end of a group's; `place` begins the keys of all groups."""
        first, last = (0, 1) if greatest else (1, 0)
        return IndexRange(self.table.indexes[0], place, group, (*group, TOP), True, first, last)

    def beyond(self, end: IndexRange, part: Any) -> IndexRange:
        """The next entry behind the one that such a range has found, which has this part of a key."""
        group = end.low if end.last else end.high[:-1]
        low, high = (end.low, (*group, part)) if end.last else ((*group, part, TOP), end.high)
        return IndexRange(end.index, end.group, low, high, True, end.first, end.last)

    def rows_of(self, entry: bytes) -> int:
        """How many rows an entry stands for. Those that are committed stand for one at least."""
        unpack = self.table.row_type.unpack
        rows: int = getattr(unpack(entry), _ROWS)
        return rows
