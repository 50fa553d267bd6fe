"""The two kinds of index of a declared table: its primary key, which needs only a row's key, and those over columns."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from styx.relational.columns import Column
from styx.relational.index_range import Group, Position, RowKey, TableIndex


class RowIndex(TableIndex):
    """An index over the rows of each entity: `equal` columns give the group, `order` columns the position.

    `entity_parts`: how many parts of a row's key are the entity's.
    """

    __slots__ = ("entity_parts", "equal", "order", "unique")

    def __init__(
        self,
        table: str,
        number: int,
        name: str,
        entity_parts: int,
        equal: tuple[Column, ...],
        order: tuple[Column, ...],
        unique: bool,
    ) -> None:
        super().__init__(table, number, name, entity_parts)
        self.entity_parts = entity_parts
        self.equal = equal
        self.order = order
        self.unique = unique

    def __repr__(self) -> str:
        return f"<index {self.name!r} of {self.table}>"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The `equal` columns, then the `order` columns."""
        return self.equal + self.order

    def position(self, key: RowKey, row: Any) -> Position:
        """The row's position in its group."""
        raise NotImplementedError


class PrimaryKey(RowIndex):
    """Index 0 of a table: the group is the entity, the position the primary key."""

    __slots__ = ()

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        """As `TableIndex.entry`."""
        parts = self.entity_parts
        return key[:parts], key[parts:]

    def position(self, key: RowKey, row: Any) -> Position:
        """As `RowIndex.position`."""
        return key[self.entity_parts :]


class ColumnIndex(RowIndex):
    """A declared index. `decode` gives a row of its bytes."""

    __slots__ = ("_decode", "_group", "_position")

    def __init__(
        self,
        table: str,
        number: int,
        name: str,
        entity_parts: int,
        equal: tuple[Column, ...],
        order: tuple[Column, ...],
        unique: bool,
        decode: Callable[[bytes], Any],
    ) -> None:
        super().__init__(table, number, name, entity_parts, equal, order, unique)
        self._decode = decode
        self._group = comparables(equal)
        self._position = comparables(order)

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        """As `TableIndex.entry`; raises what decoding raises."""
        decode, group, position = self._decode, self._group, self._position
        row = decode(data)
        parts = self.entity_parts
        return key[:parts] + group(row), position(row) + key[parts:]

    def position(self, key: RowKey, row: Any) -> Position:
        """As `RowIndex.position`."""
        position = self._position
        return position(row) + key[self.entity_parts :]

    def values(self, row: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The comparables of a row's `equal` and `order` columns. Equal ones have the same place in the index."""
        group, position = self._group, self._position
        return group(row), position(row)


def comparables(columns: tuple[Column, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A function from a row to the comparables of these columns."""
    if not columns:
        return _none
    if all(column.plain for column in columns):
        get: Any = attrgetter(*(column.name for column in columns))
        return get if len(columns) > 1 else lambda row: (get(row),)
    pairs = [(column.name, column.stored) for column in columns]
    return lambda row: tuple([stored(getattr(row, name)) for name, stored in pairs])


def _none(row: Any) -> tuple[Any, ...]:
    return ()
