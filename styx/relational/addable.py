"""Which columns `rows.add` may add to, and what may be added: decided before anything is written.

An increment is added to a value that the statement does not know, by code that has nobody to raise an error to. So a
column is refused whose new value something would have to look at: a key, an index, a reference, a check, a bound.
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from msgspec import inspect

from styx.errors import BadQuery
from styx.relational.increment import INT_MAX, INT_MIN, Increment
from styx.relational.stored_columns import runs_code
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table

_KINDS: Final[dict[type[inspect.Type], type]] = {
    inspect.IntType: int,
    inspect.DecimalType: Decimal,
    inspect.FloatType: float,
}
_TAKEN: Final[dict[type, tuple[type, ...]]] = {int: (int,), Decimal: (Decimal, int), float: (float, int)}
_BOUNDS: Final = ("gt", "ge", "lt", "le", "multiple_of")
Kinds = dict[str, type]
"""int, Decimal or float, by column."""


def addable_kind(table: Table, name: Any) -> type:
    """What a column holds: int, Decimal or float; raises `BadQuery` if nothing can be added to it."""
    if name not in table.columns:
        raise BadQuery(table.row_type.no_column(name))
    reason = _refusal(table, name)
    if reason is not None:
        raise BadQuery(
            f"rows(…).add cannot add to column {name!r} of table {table.full_name}: {reason}; use get and update(…)"
        )
    return _KINDS[type(_declared(table, name))]


def increment(table: Table, kinds: Kinds, deltas: dict[str, Any]) -> Increment:
    """The increment of these deltas, by column, whose `kinds` are known; raises `BadQuery`."""
    if not deltas:
        raise BadQuery(f"rows(…).add of table {table.full_name} takes deltas by column: add(pk, column=1)")
    return Increment(table.row_type, {name: _delta(table, name, kinds[name], deltas[name]) for name in deltas})


def _delta(table: Table, name: str, kind: type, given: Any) -> Any:
    """A delta as a number of the column's type."""
    if type(given) not in _TAKEN[kind]:
        allowed = " or ".join(each.__name__ for each in _TAKEN[kind])
        raise BadQuery(f"{_of(table, name)} takes {allowed}, got {shown(given)} of type {type(given).__name__}")
    if kind is int:
        if not INT_MIN <= given <= INT_MAX:
            raise BadQuery(f"{_of(table, name)} takes numbers of 64 bits, got {shown(given)}")
        return given
    delta: Any = None
    try:
        delta = kind(given)
        finite = delta.is_finite() if kind is Decimal else isfinite(delta)
    except OverflowError:
        finite = False
    if not finite:
        raise BadQuery(f"{_of(table, name)} takes finite numbers, got {shown(given)}")
    return delta


def _of(table: Table, name: str) -> str:
    return f"rows(…).add to column {name!r} of table {table.full_name}"


def _declared(table: Table, name: str) -> inspect.Type:
    info: Any = inspect.type_info(table.row_type.declared)
    (declared,) = [field.type for field in info.fields if field.name == name]
    return declared.type if isinstance(declared, inspect.Metadata) else declared


def _refusal(table: Table, name: str) -> str | None:
    """Why nothing can be added to a column; None if something can."""
    if table.fades:
        return "rows of the table have a ttl=, so each write notes when it was, and additions would conflict in that"
    if table.checks:
        return f"the check {table.checks[0].name!r} would have to look at the sum"
    for reference in table.references:
        if any(column.name == name for column in reference.columns):
            return f"it refers to a row of {reference.parent.full_name}"
    for index in table.indexes:
        if any(column.name == name for column in index.columns):
            named = f"of index {index.name!r}" if index is not table.indexes[0] else "of the primary key"
            return f"it is {named}, in which the row would move"
    if any(consequence.minds(name) for consequence in table.consequences):
        return "other entities have to know its value"
    view = next((view for view in table.views if view.minds(name)), None)
    if view is not None:
        return f"view {view.name!r} has to know its value"
    return _refusal_of_type(table, name, _declared(table, name))


def _refusal_of_type(table: Table, name: str, declared: inspect.Type) -> str | None:
    """As `_refusal`, because of the column's type or the row's."""
    if table.columns[name].may_be_unset:
        return "its type allows UNSET, to which nothing can be added: give it the default 0"
    if type(declared) not in _KINDS:
        if isinstance(declared, inspect.UnionType):
            return "it is of more than one type, and None has no sum: give it the default 0"
        return "it is no int, Decimal or float"
    bound = next((bound for bound in _BOUNDS if getattr(declared, bound, None) is not None), None)
    if bound is not None:
        return f"its type has the bound {bound}={getattr(declared, bound)}, which would have to look at the sum"
    if runs_code(inspect.type_info(table.row_type.declared)):
        return f"a look at a row runs code of {table.row_type.name}, which cannot run when a transaction commits"
    return None
