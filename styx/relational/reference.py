"""A declared reference between two tables of an operator, ready for use: how parents and children are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.relational.columns import Column
from styx.relational.index_range import Group, IndexRange
from styx.relational.query import EQUAL, Plan

if TYPE_CHECKING:
    from styx.relational.table import Table


class Reference:
    """Rows of `child` refer by `columns` to the primary key of `parent`. `defaults`: what set_null and set_default put.

    `plan` finds the children of one parent, by equality of `columns`.
    """

    __slots__ = ("_quick", "child", "columns", "defaults", "on_delete", "parent", "plan")

    def __init__(
        self,
        child: Table,
        columns: tuple[Column, ...],
        parent: Table,
        on_delete: str,
        defaults: dict[str, Any],
        plan: Plan,
    ) -> None:
        self.child = child
        self.columns = columns
        self.parent = parent
        self.on_delete = on_delete
        self.defaults = defaults
        self.plan = plan
        # By column: the class whose values are their own parts.
        self._quick: list[Any] = [
            column.kind.classes[0] if column.kind is not None and column.kind.plain else None for column in columns
        ]

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"{self.child.full_name}({', '.join(column.name for column in self.columns)}) → {self.parent.full_name}"

    def parent_key(self, row: Any) -> tuple[Any, ...] | None:
        """The parent's primary key, as parts of a row's key; None for a row that refers to nothing."""
        parts = []
        quick, at = self._quick, 0
        for column in self.columns:
            value = getattr(row, column.name)
            if value is None:
                return None
            parts.append(value if type(value) is quick[at] else column.bare(value))
            at += 1  # noqa: SIM113 - compiled, a number costs less than a pair
        return tuple(parts)

    def children_of(self, entity: Group, parts: tuple[Any, ...], membership: bool, first: int = 0) -> IndexRange:
        """The rows that refer to a parent."""
        values = {
            column.name: key.from_part(part)
            for column, key, part in zip(self.columns, self.parent.key, parts, strict=True)
        }
        return self.plan.range_of(entity, values, membership, first)


def equalities(columns: tuple[Column, ...]) -> tuple[tuple[str, str], ...]:
    """The conditions by which children are found, without their values."""
    return tuple((column.name, EQUAL) for column in columns)
