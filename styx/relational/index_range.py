"""What the engine knows of a table: how its indexes order rows, and the range of an index that a query reads.

A row is an entry of a table of the entity's slot, under the name `cart/items`, which no operator can have, with the
flat key `(entity's key…, primary key…)`. An index maps a row to a *group*, which is looked up, and to a *position* in
it, which is ordered. Index 0 of a table is its primary key: the group is the entity's key, the position the primary
key. Nothing here depends on the order in which rows came.
"""

from __future__ import annotations

from typing import Any, Final

from styx.native.interpreted import native

RowKey = tuple[Any, ...]
"""The entity's key, flat, and the primary key."""
Group = tuple[Any, ...]
"""The entity's key, flat, or the partition's number; then the values of the index's equality columns."""
Position = tuple[Any, ...]
"""The ordered columns' values, made comparable, then the primary key. No two rows of a group have the same one."""


class _Top:
    """Greater than every value: `(a, TOP)` is behind all positions that begin with `a`."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return other is self

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __ge__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "TOP"


TOP: Final = _Top()
LOWEST: Final[Position] = ()
HIGHEST: Final[Position] = (TOP,)


@native(subclassed=True)
class TableIndex:
    """One index of a table. Objects are compared by identity: an app has one object for each index.

    `of_entities`: each group has rows of one entity, whose key is so many parts at the group's beginning, and of a
    row's key. 0: a group may have rows of several entities.
    """

    __slots__ = ("name", "number", "of_entities", "table")

    def __init__(self, table: str, number: int, name: str, of_entities: int = 0) -> None:
        self.table = table
        self.number = number
        self.name = name
        self.of_entities = of_entities

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        """Where a row stands in the index, None if it is not in it. Pure; for index 0 nothing is decoded."""
        raise NotImplementedError


class IndexRange:
    """The entries of one group with `low <= position < high`.

    `membership`: the query asks only which rows are there, not for what they hold. At most `first` of the lowest, or
    `last` of the highest, are wanted; 0 means all. Then the range read ends at the last entry that was given.
    """

    __slots__ = ("first", "group", "high", "index", "last", "low", "membership")

    def __init__(
        self,
        index: TableIndex,
        group: Group,
        low: Position = LOWEST,
        high: Position = HIGHEST,
        membership: bool = False,
        first: int = 0,
        last: int = 0,
    ) -> None:
        self.index = index
        self.group = group
        self.low = low
        self.high = high
        self.membership = membership
        self.first = first
        self.last = last
