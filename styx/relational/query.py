"""How a query is answered: the index that serves its conditions, the range of it that is read, and what filters.

An index serves if all its `equal` columns are given by equality, and something of it is given at all: these, or its
first `order` columns, the last one of them also by a comparison. The one that takes most conditions is used, of several
the one declared first. Conditions that it does not take filter what the range holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from styx.errors import BadQuery
from styx.relational.columns import Column
from styx.relational.conditions import Comparison
from styx.relational.index_range import HIGHEST, LOWEST, TOP, Group, IndexRange, Position
from styx.relational.row_indexes import RowIndex
from styx.values.codec import shown

EQUAL: Final = "="
"""The operation of a condition that is no comparison."""
Conditions = Mapping[str, Any]
"""By column: a value, or a `Comparison`."""
_CODE_POINT_MAX: Final = 0x10FFFF


def operations_of(conditions: Conditions) -> tuple[tuple[str, str], ...]:
    """The names and operations of a query's conditions: what decides which index serves."""
    return tuple(
        [(name, value.operation if type(value) is Comparison else EQUAL) for name, value in conditions.items()]
    )


def all_conditions(where: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """A query's conditions from both ways to give them: one mapping in `where`, and keywords; raises `BadQuery`.

    Queries take `*where`, because a column may have the name of any other parameter.
    """
    mapping = where[0]
    if len(where) > 1 or not isinstance(mapping, Mapping):
        got = ", ".join(map(shown, where))
        raise BadQuery(f"conditions are column=value, or one mapping such as {{'column': value}}: got {got}")
    for name in given:
        if name in mapping:
            raise BadQuery(f"column {name!r} has a condition in the mapping and one as a keyword: a query has one each")
    return {**mapping, **given}


def changes_of(given: tuple[Any, ...]) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The changes that `update_where` makes, and the rest of what was given to it; raises `BadQuery`."""
    changes = given[0] if given else None
    if not isinstance(changes, Mapping) or not changes:
        raise BadQuery(f"update_where begins with the changes, such as {{'column': value}}: got {shown(changes)}")
    return dict(changes), given[1:]


class Plan:
    """How queries with the same names and operations of conditions are answered.

    `fixed`: columns of the order that equalities give, `compared`: the one behind them that a comparison gives.
    """

    __slots__ = ("compared", "filters", "fixed", "index", "whole")

    def __init__(
        self, index: RowIndex, fixed: tuple[Column, ...], compared: Column | None, filters: tuple[Column, ...]
    ) -> None:
        self.index = index
        self.fixed = fixed
        self.compared = compared
        self.filters = filters
        self.whole = not (index.equal or fixed or compared)

    def group(self, entity: Group, conditions: Conditions) -> Group:
        """The group that is read; raises `BadQuery` for a value of another type."""
        equal = self.index.equal
        if not equal:
            return entity
        return entity + tuple([column.asked(conditions[column.name]) for column in equal])

    def bounds(self, conditions: Conditions) -> tuple[Position, Position]:
        """`low` and `high` of the range; raises `BadQuery` for a value of another type."""
        low: Position = tuple([column.asked(conditions[column.name]) for column in self.fixed])
        column = self.compared
        if column is not None:
            return comparison_bounds(column, conditions[column.name], low)
        return (low, (*low, TOP)) if low else (LOWEST, HIGHEST)

    def range_of(
        self,
        entity: Group,
        conditions: Conditions,
        membership: bool = False,
        first: int = 0,
        last: int = 0,
        after: Position = LOWEST,
    ) -> IndexRange:
        """The range that is read, behind the position `after`; raises `BadQuery` for a value of another type."""
        try:
            low, high = self.bounds(conditions)
            group = self.group(entity, conditions)
            for column in self.filters:  # now, for the range may have no rows
                _check_asked(column, conditions[column.name])
        except BadQuery as error:
            raise BadQuery(f"table {self.index.table}: {error}") from None
        if after:
            low = max(low, (*after, TOP))
        return IndexRange(self.index, group, low, high, membership, first, last)

    def filtered(
        self, rows: list[tuple[Any, Any]], conditions: Conditions, first: int, last: int
    ) -> list[tuple[Any, Any]]:
        """The (key, row) that meet the conditions which filter: at most the `first` or `last` of them, 0 means all."""
        rows = [pair for pair in rows if self.matches(pair[1], conditions)]
        rows = rows[:first] if first else rows
        return rows[-last:] if last else rows

    def matches(self, row: Any, conditions: Conditions) -> bool:
        """Whether the row meets the conditions that the index does not take."""
        return all(_meets(column, getattr(row, column.name), conditions[column.name]) for column in self.filters)


def plan_of(
    indexes: Iterable[RowIndex], columns: Mapping[str, Column], asked: tuple[tuple[str, str], ...]
) -> Plan | None:
    """The plan for conditions of these names and operations, None if no index serves them."""
    equal = {name for name, operation in asked if operation == EQUAL}
    compared = {name for name, operation in asked if operation != EQUAL}
    best, taken_most = None, -1 if not asked else 0
    for index in indexes:
        if not all(column.name in equal for column in index.equal):
            continue
        plan = _plan_by(index, equal, compared)
        taken = len(index.equal) + len(plan.fixed) + (plan.compared is not None)
        if taken > taken_most:
            best, taken_most = plan, taken
    if best is None:
        return None
    return _filtered(best, columns, asked)


def plan_by(
    index: RowIndex, columns: Mapping[str, Column], asked: tuple[tuple[str, str], ...], whole: bool
) -> Plan | None:
    """As `plan_of`, by one index, which may be read `whole`."""
    equal = {name for name, operation in asked if operation == EQUAL}
    if not all(column.name in equal for column in index.equal):
        return None
    plan = _plan_by(index, equal, {name for name, operation in asked if operation != EQUAL})
    if plan.whole and asked and not whole:
        return None
    return _filtered(plan, columns, asked)


def _plan_by(index: RowIndex, equal: set[str], compared: set[str]) -> Plan:
    fixed: list[Column] = []
    for column in index.order:
        if column.name not in equal:
            return Plan(index, tuple(fixed), column if column.name in compared else None, ())
        fixed.append(column)
    return Plan(index, tuple(fixed), None, ())


def _filtered(plan: Plan, columns: Mapping[str, Column], asked: tuple[tuple[str, str], ...]) -> Plan:
    taken = {column.name for column in (*plan.index.equal, *plan.fixed)}
    if plan.compared is not None:
        taken.add(plan.compared.name)
    return Plan(plan.index, plan.fixed, plan.compared, tuple(columns[name] for name, _ in asked if name not in taken))


def comparison_bounds(column: Column, comparison: Comparison, fixed: Position) -> tuple[Position, Position]:
    """`low` and `high` of the positions that begin with `fixed` and meet the comparison; None meets none."""
    low: Position = (*fixed, (), TOP) if column.optional else fixed  # behind None
    high: Position = (*fixed, TOP)
    operation = comparison.operation
    if operation == "prefix":
        return _prefix_bounds(column, comparison.low, fixed)
    if comparison.low is not None:
        value = column.asked(comparison.low)
        low = (*fixed, value, TOP) if operation == "above" else (*fixed, value)
    if comparison.high is not None:
        value = column.asked(comparison.high)
        high = (*fixed, value) if operation == "below" else (*fixed, value, TOP)
    return low, high


def _prefix_bounds(column: Column, beginning: Any, fixed: Position) -> tuple[Position, Position]:
    _check_prefixes(column)
    following = _after_all_with(column.bare(beginning))
    if column.optional:
        return (*fixed, (beginning,)), (*fixed, (TOP if following is None else (following,)))
    return (*fixed, beginning), (*fixed, TOP if following is None else following)


def _check_prefixes(column: Column) -> None:
    if column.kind is None or not column.kind.prefixes:
        raise BadQuery(f"column {column.name!r} is of type {column.type_name}: only texts and bytes have a prefix")


def _after_all_with(beginning: Any) -> Any:
    """The least value greater than all that begin so, None if there is none."""
    if type(beginning) is bytes:
        stripped = beginning.rstrip(b"\xff")
        return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
    text = beginning.rstrip(chr(_CODE_POINT_MAX))
    return text[:-1] + chr(ord(text[-1]) + 1) if text else None


def _check_asked(column: Column, condition: Any) -> None:
    """Raises `BadQuery` for a condition with which no value of the column can be compared."""
    if type(condition) is not Comparison:
        if column.kind is not None:
            column.asked(condition)
        return
    if condition.operation == "prefix":
        _check_prefixes(column)
    for bound in (condition.low, condition.high):
        if bound is not None:
            column.bare(bound)


def _meets(column: Column, value: Any, condition: Any) -> bool:
    if type(condition) is not Comparison:
        if column.kind is None:
            return bool(value == condition)
        return bool(column.stored(value) == column.asked(condition))
    if value is None:
        return False
    own = column.bare(value)
    low = None if condition.low is None else column.bare(condition.low)
    high = None if condition.high is None else column.bare(condition.high)
    if condition.operation == "prefix":
        return bool(own.startswith(low))
    if condition.operation == "above":
        return bool(own > low)
    if condition.operation == "below":
        return bool(own < high)
    return (low is None or own >= low) and (high is None or own <= high)


def conditions_text(conditions: Conditions) -> str:
    """As messages show a query's conditions."""
    return ", ".join(
        f"{name}={value!r}" if type(value) is Comparison else f"{name}={shown(value)}"
        for name, value in conditions.items()
    )
