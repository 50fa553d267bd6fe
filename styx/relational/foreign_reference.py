"""A declared reference to another entity, or to a row of another entity: what a row refers to, as the parent's key.

The parent's key is flat: the key of its entity, then, if the parent is a row, its primary key. Each row that refers to
a parent has an *entry* there (`styx.model.reference_entries`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.relational.columns import Column
from styx.relational.index_range import RowKey
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table


class ForeignReference:
    """Rows of `child` refer by `columns` to entities of the operator `parent`, or to rows of its table `parent_table`.

    `entity_parts`: how many parts of a parent's key are its entity's. `defaults`: what set_null and set_default put.
    """

    __slots__ = ("child", "columns", "defaults", "entity_parts", "on_delete", "parent", "parent_table")

    def __init__(
        self,
        child: Table,
        columns: tuple[Column, ...],
        parent: Any,
        parent_table: Table | None,
        on_delete: str,
        defaults: dict[str, Any],
    ) -> None:
        self.child = child
        self.columns = columns
        self.parent = parent
        self.parent_table = parent_table
        self.entity_parts = len(parent.key_type.parts) or 1
        self.on_delete = on_delete
        self.defaults = defaults

    @property
    def name(self) -> str:
        """As messages name it."""
        columns = ", ".join(column.name for column in self.columns)
        parent = self.parent.name if self.parent_table is None else self.parent_table.full_name
        return f"{self.child.full_name}({columns}) → {parent}"

    def parent_key(self, row: Any) -> RowKey | None:
        """The key of what a row refers to; None if it refers to nothing."""
        parts = []
        for column in self.columns:
            value = getattr(row, column.name)
            if value is None:
                return None
            parts.append(column.key_part(value))
        return tuple(parts)

    def entity(self, parent: RowKey) -> Any:
        """The key of a parent's entity, as its operator has it."""
        return entity_key(self.parent, parent[: self.entity_parts])

    def parent_text(self, parent: RowKey) -> str:
        """A parent, as messages name it."""
        entity = f"{self.parent.name}[{shown(self.entity(parent))}]"
        table = self.parent_table
        if table is None:
            return entity
        return f"row {shown(table.primary_key(parent))} of table {table.full_name} of {entity}"

    def child_text(self, child: RowKey) -> str:
        """A row that refers to a parent, by its whole key, as messages name it."""
        table = self.child
        entity = entity_key(table.owner, child[: table.entity_parts])
        return f"row {shown(table.primary_key(child))} of table {table.full_name} of {table.operator}[{shown(entity)}]"


def entity_key(operator: Any, parts: RowKey) -> Any:
    """The key of an entity of the operator, of its parts."""
    return parts[0] if operator.key_type.scalar is not None else parts
