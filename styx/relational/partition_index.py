"""Indexes over the rows of all entities of a partition, and the queries that they serve: `scope="partition"`.

A group has the partition's number in the place of an entity's key, since a slot can hold several partitions. Rows stand
in the order of the `order` columns, then of their entities' keys, then of their primary keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from styx.errors import BadQuery, MissingIndex
from styx.relational.columns import Column
from styx.relational.index_range import Group, Position, RowKey
from styx.relational.query import EQUAL, Conditions, Plan, conditions_text, operations_of, plan_by, plan_of
from styx.relational.row_indexes import ColumnIndex
from styx.values.codec import shown

PARTITION_PLANS_MAX: Final = 1_000
"""Kinds of queries over partitions of a table whose plans are kept."""
PartitionOf = Callable[[Group, int], int]
"""The number of the partition of an entity's flat key, with so many slots."""


class PartitionIndex(ColumnIndex):
    """A declared index over the rows of all entities of a partition. `partition_of` is of the operator's keys."""

    __slots__ = ("_partition_of",)

    def __init__(
        self,
        table: str,
        number: int,
        name: str,
        entity_parts: int,
        equal: tuple[Column, ...],
        order: tuple[Column, ...],
        decode: Callable[[bytes], Any],
        partition_of: PartitionOf,
    ) -> None:
        super().__init__(table, number, name, entity_parts, equal, order, False, decode)
        self._partition_of = partition_of
        self.of_entities = 0

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        """As `TableIndex.entry`; raises what decoding raises."""
        decode, group, position, partition_of = self._decode, self._group, self._position, self._partition_of
        row = decode(data)
        return (partition_of(key[: self.entity_parts], n_slots), *group(row)), position(row) + key

    def position(self, key: RowKey, row: Any) -> Position:
        """As `RowIndex.position`."""
        position = self._position
        return position(row) + key


class PartitionPlans:
    """How queries over a partition are answered, by the partition-wide indexes of one table."""

    __slots__ = ("_columns", "_plans", "_table", "indexes")

    def __init__(self, table: str, indexes: tuple[PartitionIndex, ...], columns: Mapping[str, Column]) -> None:
        self._table = table
        self.indexes = indexes
        self._columns = columns
        self._plans: dict[Any, Plan] = {}

    def plan(self, conditions: Conditions, by: str | None = None) -> Plan:
        """The plan of a query, kept for the next one like it; raises `MissingIndex` or `BadQuery`."""
        asked = (operations_of(conditions), by)
        plan = self._plans.get(asked)
        if plan is None:
            plan = self._planned(conditions, by)
            if len(self._plans) < PARTITION_PLANS_MAX:
                self._plans[asked] = plan
        return plan

    def _planned(self, conditions: Conditions, by: str | None) -> Plan:
        for name in conditions:
            if name == "scan" and name not in self._columns:
                raise BadQuery(
                    f"table {self._table}: a query over a partition has no scan=; declare an index for it, such as "
                    'Index("all", order=…, scope="partition")'
                )
            if name not in self._columns:
                raise BadQuery(f"table {self._table} has no column {shown(name)}; it has: {', '.join(self._columns)}")
        asked = operations_of(conditions)
        if by is None:
            plan = plan_of(self.indexes, self._columns, asked)
        else:
            plan = plan_by(self._index(by), self._columns, asked, False)
        if plan is None:
            equal = [name for name, operation in asked if operation == EQUAL]
            wanted = f"equal={tuple(equal)}" if equal else "order=…"
            raise MissingIndex(
                f"table {self._table}: no partition-wide index serves the query ({conditions_text(conditions)}): "
                f'declare Index("across_{"_".join(equal) or "all"}", {wanted}, scope="partition"). Other indexes hold '
                "the rows of one entity: ctx.rows(…, of=its key)"
            )
        return plan

    def _index(self, name: Any) -> PartitionIndex:
        for index in self.indexes:
            if index.name == name:
                return index
        known = ", ".join(index.name for index in self.indexes) or "none"
        raise BadQuery(f"table {self._table} has no partition-wide index {shown(name)}; it has: {known}")
