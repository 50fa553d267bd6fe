"""Checks the declaration of a view, and says all that is wrong with it at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from styx.errors import ConfigurationError
from styx.model.limits import RANKINGS_PER_VIEW_MAX, VIEWS_PER_TABLE_MAX
from styx.relational.columns import Column
from styx.relational.declarations import columns_of, not_of_a_row
from styx.relational.ordered_part import ORDERED_TYPES, has_parts
from styx.relational.ranking import Ranking
from styx.relational.tumbling import Tumbling, Windows
from styx.relational.view import COUNT
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table

_ADDED: Final = ("int", "Decimal")
_NO_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9_]")
VIEW_SCOPES: Final = ("entity", "partition", "app")


class ViewDeclaration:
    """The parts of a view of `source`, from what `Table.view` was given. Raises `ConfigurationError`."""

    def __init__(
        self,
        source: Table,
        name: Any,
        group_by: Any,
        where: Any,
        count: Any,
        sum: Any,
        min: Any,
        max: Any,
        scope: Any,
    ) -> None:
        self._source = source
        self._problems: list[str] = []
        self._check(name, where, count, scope)
        given = columns_of(group_by)
        self.groups = self._columns("group_by=", [_column_of(each) for each in given])
        self.sums = self._columns("sum=", columns_of(sum))
        self.least = self._columns("min=", columns_of(min))
        self.greatest = self._columns("max=", columns_of(max))
        self._check_groups()
        self.windows = {} if self._problems else self._windows(given)
        self._check_sums()
        self._check_ends()
        self._check_names()
        if self._problems:
            raise ConfigurationError(f"view {shown(name)} of table {source.full_name}: {'; '.join(self._problems)}")
        # A type of its own for each view, also where types are told apart by their names.
        self.type_name = _NO_IDENTIFIER.sub("_", f"{source.operator}_{source.name}_{name}")
        fields: list[Any] = [(column.name, _type_of(column)) for column in self.groups]
        fields += [(COUNT, int), *((column.name, _type_of(column)) for column in self.sums)]
        fields += [(name, _type_of(column) | None, None) for name, column in self._ends()]
        self.row_type = msgspec.defstruct(self.type_name, fields)

    def rankings(self) -> tuple[Ranking, ...]:
        """Those of the columns whose ends are asked for, without entries."""
        columns = dict.fromkeys((*self.least, *self.greatest))
        return tuple([Ranking(each, each in self.least, each in self.greatest) for each in columns])

    def _ends(self) -> list[tuple[str, Column]]:
        return [(name, ranking.column) for ranking in self.rankings() for name, _ in ranking.ends]

    def _check(self, name: Any, where: Any, count: Any, scope: Any) -> None:
        source = self._source
        if source.view_rule is not None:
            self._problems.append("a view is of a table, not of another view")
        if any(view.name == name for view in source.views):
            self._problems.append("the table has a view of this name already; rename one of them")
        if len(source.views) >= VIEWS_PER_TABLE_MAX:
            self._problems.append(f"the table has {len(source.views)} views already, which is the limit")
        if where is not None and not_of_a_row(where):
            self._problems.append(f"where= is a plain function of a row, got {shown(where)}")
        if count is not True:
            self._problems.append(
                f"count= is True: a view always counts, so that it knows when a group is empty; got {shown(count)}"
            )
        if scope not in VIEW_SCOPES:
            self._problems.append(f"scope= is one of {', '.join(VIEW_SCOPES)}, got {shown(scope)}")

    def _columns(self, what: str, names: Sequence[Any]) -> tuple[Column, ...]:
        columns = self._source.columns
        twice = [name for name, times in Counter(map(str, names)).items() if times > 1]
        self._problems += [f"{what} has the column {name!r} twice" for name in twice]
        for name in names:
            if not isinstance(name, str) or name not in columns:
                self._problems.append(f"{what}: the row type has no column {shown(name)}; it has: {', '.join(columns)}")
        return tuple(columns[name] for name in names if isinstance(name, str) and name in columns)

    def _check_groups(self) -> None:
        for column in self.groups:
            if column.kind is None or not column.kind.in_keys:
                self._problems.append(
                    f"group_by=: column {column.name!r} is of {column.type_name}; groups are made of str, int, bool, "
                    "date, datetime, UUID and enums of them"
                )

    def _check_sums(self) -> None:
        for column in self.sums:
            if column.type_name == "float":
                self._problems.append(
                    f"sum=: column {column.name!r} is a float, and what was added cannot be taken away exactly: use "
                    "Decimal, or whole numbers such as cents"
                )
            elif column.type_name not in _ADDED:
                self._problems.append(
                    f"sum=: column {column.name!r} is of {column.type_name}; int and Decimal can be added up"
                )
            elif column in self.groups:
                self._problems.append(f"column {column.name!r} is in group_by= and in sum=: take it out of one")

    def _check_ends(self) -> None:
        for what, columns in (("min=", self.least), ("max=", self.greatest)):
            for column in columns:
                if not has_parts(column):
                    self._problems.append(
                        f"{what}: column {column.name!r} is of {column.type_name}; values of {ORDERED_TYPES} are ranked"
                    )
        ranked = len({*self.least, *self.greatest})
        if ranked > RANKINGS_PER_VIEW_MAX:
            self._problems.append(f"{ranked} columns are in min= and max=; the limit is {RANKINGS_PER_VIEW_MAX}")

    def _check_names(self) -> None:
        own = [column.name for column in (*self.groups, *self.sums)]
        if COUNT in own:
            self._problems.append(f"a view has a column {COUNT!r} of its own: rename the column {COUNT!r} of the table")
        for name, column in self._ends():
            if name in own:
                self._problems.append(
                    f"the view has a column {name!r} for an end of {column.name!r}: rename the column {name!r} of the "
                    "table"
                )

    def _windows(self, given: Sequence[Any]) -> dict[int, Windows]:
        windows = {}
        for at, each in enumerate(given):
            if isinstance(each, Tumbling):
                try:
                    windows[at] = Windows(self.groups[at], each)
                except ConfigurationError as error:
                    self._problems.append(f"group_by=: {error}")
        return windows


def _column_of(given: Any) -> Any:
    """The name of the column by which rows are grouped."""
    return given.column if isinstance(given, Tumbling) else given


def _type_of(column: Column) -> Any:
    kind = column.kind
    assert kind is not None, "checked above"
    if kind.name == "naive datetime":
        return Annotated[datetime, msgspec.Meta(tz=False)]
    return kind.classes[0]
