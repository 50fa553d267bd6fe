"""What a table's declaration is made of: `Index`, `Check` and `Ref`, as the app gives them.

They are checked by `styx.relational.table`, all at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

from styx.values.codec import shown

ON_DELETE: Final = ("restrict", "cascade", "set_null", "set_default")
SCOPES: Final = ("entity", "partition", "app")


def columns_of(given: Any) -> tuple[Any, ...]:
    """One column's name, or several, as a tuple. A set has no order that is the same in every process, so it is taken
    for a name, and is none.
    """
    if isinstance(given, str | set | frozenset):
        return (given,)
    return tuple(given) if isinstance(given, Iterable) else (given,)


def not_of_a_row(function: Any) -> str:
    """Why this is no function that can be asked about a row, in words behind its name; "" if it is one.

    What an `async def` returns counts as true, whatever would come of it.
    """
    if not callable(function):
        return f"takes a function of a row, got {shown(function)}"
    asked = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.iscoroutinefunction(asked) or inspect.isgeneratorfunction(asked) or inspect.isasyncgenfunction(asked):
        return "takes a plain function, `def` or lambda, which calls nobody, waits for nothing and has no `yield`"
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return "takes a function of one argument, the row"
    except ValueError:
        pass  # a function of C that does not say
    return ""


class Index:
    """An index: rows are found by the `equal` columns, and stand in the order of the `order` columns, then of their
    primary keys.

    `unique`: no two rows of an entity have the same values in all its columns. Rows with None in one of them are not
    compared, as in SQL. `scope`: "entity", the rows of one entity; "partition", those of all entities of a partition,
    for partition functions; or "app", those of all entities, for `ctx.find`.
    """

    __slots__ = ("equal", "name", "order", "scope", "unique")

    def __init__(
        self, name: str, *, equal: Any = (), order: Any = (), unique: bool = False, scope: str = "entity"
    ) -> None:
        self.name = name
        self.equal = columns_of(equal)
        self.order = columns_of(order)
        self.unique = unique
        self.scope = scope

    def __repr__(self) -> str:
        return f"Index({self.name!r}, equal={self.equal}, order={self.order}, unique={self.unique})"


class Check:
    """A condition that every row must meet: `Check("voucher_fits", lambda row: row.voucher <= row.price)`.

    `function` gets the row and gives True or False. It must be pure, and must not change the row.
    """

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self.name = name
        self.function = function


class Ref:
    """A reference: the `columns` of a row say which *parent* it refers to; with None in one of them, to nothing.

    `table` is an operator, a table that was declared before, or the name of the table itself. The columns are the key
    of the operator's entity, which must have a value; or the primary key of a row of the same entity; or the key of an
    entity and the primary key of its row. `on_delete`: what becomes of the rows that refer to one that is deleted.
    "restrict" refuses the deletion, "cascade" deletes them, "set_null" and "set_default" set the columns to None or to
    the row type's default.
    """

    __slots__ = ("columns", "on_delete", "table")

    def __init__(self, columns: Any, table: Any, on_delete: str = "restrict") -> None:
        self.columns = columns_of(columns)
        self.table = table
        self.on_delete = on_delete
