"""Tables of plain rows over a dictionary, for tests of statements and constraints."""

from __future__ import annotations

from typing import Any

import msgspec

from styx import Operator, Ref
from tests.relational.memory import Memory


class Row(msgspec.Struct, frozen=True):
    id: int
    a: int = 0
    b: str | None = None
    parent: int | None = None


class Person(msgspec.Struct):
    id: int
    boss: int | None = None


def one_table(**declared: Any) -> Any:
    """The rows of an entity in a table with these constraints."""
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id", **declared)
    return Memory(operator).context(operator).rows(table)


def family(on_delete: str, **children: Any) -> tuple[Any, Any]:
    """Rows of a parent's table, and of a child's that refers to it."""
    operator = Operator("shop")
    parents = operator.table("parents", Row, key="id")
    table = operator.table("rows", Row, key="id", references=Ref("parent", parents, on_delete), **children)
    ctx = Memory(operator).context(operator)
    return ctx.rows(parents), ctx.rows(table)


def each_of(*statements: Any) -> tuple[Any, ...]:
    return statements
