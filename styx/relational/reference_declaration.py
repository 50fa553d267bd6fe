"""Checks the references of a table's declaration: which columns refer to what, and what becomes of them.

A `Ref` names a table of the same operator by its primary key alone: then the parent is a row of the same entity. With
the key of the parent's entity before it, the parent is a row of whatever entity these columns say. A `Ref` to an
operator has the key of an entity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from styx.relational.columns import Column
from styx.relational.declarations import ON_DELETE, Ref
from styx.relational.foreign_reference import ForeignReference
from styx.relational.query import plan_of
from styx.relational.reference import Reference, equalities
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table


class ReferenceDeclaration:
    """Makes the references of `table`, and adds what is wrong to `problems`; so does `columns`, which finds columns by
    their names.
    """

    def __init__(
        self, table: Table, problems: list[str], columns: Callable[[str, tuple[Any, ...]], tuple[Column, ...]]
    ) -> None:
        self._table = table
        self._problems = problems
        self._columns = columns

    def made(self, given: tuple[Any, ...]) -> tuple[tuple[Reference, ...], tuple[ForeignReference, ...]]:
        """The references to rows of the same entity, and those to others."""
        found = [self._made(each) for each in given]
        inside = tuple(each for each in found if isinstance(each, Reference))
        return inside, tuple(each for each in found if isinstance(each, ForeignReference))

    def _made(self, ref: Any) -> Reference | ForeignReference | None:
        table = self._table
        if not isinstance(ref, Ref):
            self._problems.append(f"references= takes Ref objects, got {shown(ref)}")
            return None
        what = f"the reference by {', '.join(map(str, ref.columns))}"
        parent = parent_of(table, ref)
        if parent is None:
            self._problems.append(
                f"{what} takes an operator, a table that operator.table(…) gave before, or {table.name!r}, this one: "
                f"got {shown(ref.table)}"
            )
            return None
        if _is_table(parent) and parent.view_rule is not None:
            self._problems.append(f"{what}: rows cannot refer to groups of {parent.view_rule.named}, which come and go")
            return None
        columns = self._columns(what, ref.columns)
        if len(columns) != len(ref.columns) or not self._fits(what, columns, parent):
            return None
        defaults = self._defaults(what, ref, columns)
        if defaults is None:
            return None
        if not inside_entity(table, ref):
            owner, of_table = (parent.owner, parent) if _is_table(parent) else (parent, None)
            return ForeignReference(table, columns, owner, of_table, ref.on_delete, defaults)
        plan = plan_of(table.entity_indexes, table.columns, equalities(columns))
        return None if plan is None else Reference(table, columns, parent, ref.on_delete, defaults, plan)

    def _fits(self, what: str, columns: tuple[Column, ...], parent: Any) -> bool:
        own = [column.type_name for column in columns]
        if not _is_table(parent):
            wanted = entity_types(parent)
            told = f"the key of operator {parent.name!r} is of type ({', '.join(wanted)})"
        else:
            key = [column.type_name for column in parent.key]
            whole = entity_types(parent.owner) + key
            if parent.operator == self._table.operator and len(own) != len(whole):
                wanted, told = key, f"the primary key of {parent.full_name} is of type ({', '.join(key)})"
            else:
                wanted = whole
                told = (
                    f"a row of {parent.full_name} is found by the key of its entity and its primary key, of type "
                    f"({', '.join(whole)})"
                )
        if own != wanted:
            self._problems.append(f"{what} is of type ({', '.join(own)}); {told}")
        return own == wanted

    def _defaults(self, what: str, ref: Ref, columns: tuple[Column, ...]) -> dict[str, Any] | None:
        """What deletion of a parent puts into the columns, None if that is not possible."""
        table, problems = self._table, self._problems
        if ref.on_delete not in ON_DELETE:
            problems.append(f"{what}: on_delete= is one of {', '.join(ON_DELETE)}, got {shown(ref.on_delete)}")
            return None
        if not ref.on_delete.startswith("set"):
            return {}
        told = len(problems)
        defaults: dict[str, Any] = {}
        for column in columns:
            if column in table.key:
                problems.append(f"{what}: {column.name!r} is part of the primary key, which cannot be set")
            elif ref.on_delete == "set_null":
                if not column.optional:
                    problems.append(f"{what}: set_null needs a column {column.name!r} that may be None")
                defaults[column.name] = None
            else:
                try:
                    defaults[column.name] = table.row_type.default_of(column.name)
                except LookupError:
                    problems.append(f"{what}: set_default needs a default of column {column.name!r}")
        return defaults if len(problems) == told else None


def parent_of(table: Table, ref: Ref) -> Any:
    """What a reference of `table` names: a table, or an operator; None if it names neither."""
    parent: Any = table if ref.table == table.name else ref.table
    return parent if _is_table(parent) or hasattr(parent, "key_space") else None


def inside_entity(table: Table, ref: Ref) -> bool:
    """Whether the parents are rows of the child's own entity."""
    parent = parent_of(table, ref)
    return (
        _is_table(parent)
        and parent.operator == table.operator
        and len(ref.columns) != table.entity_parts + len(parent.key)
    )


def entity_types(operator: Any) -> list[str]:
    """The types of the parts of an operator's keys, as those of columns are named."""
    key_type = operator.key_type
    return [part.__name__ for part in key_type.parts or (key_type.scalar,)]


def _is_table(given: Any) -> bool:
    """Whether it is a table, be it only this one, which is half made."""
    return hasattr(given, "row_type")
