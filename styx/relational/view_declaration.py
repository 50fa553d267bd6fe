"""Checks the declaration of a view, and says all that is wrong with it at once."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from styx.errors import ConfigurationError
from styx.model.limits import VIEWS_PER_TABLE_MAX
from styx.relational.columns import Column
from styx.relational.declarations import columns_of, not_of_a_row
from styx.relational.view import COUNT
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table

_ADDED: Final = ("int", "Decimal")
_NO_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9_]")
VIEW_SCOPES: Final = ("entity", "app")


class ViewDeclaration:
    """The parts of a view of `source`, from what `Table.view` was given. Raises `ConfigurationError`."""

    def __init__(self, source: Table, name: Any, group_by: Any, where: Any, count: Any, sum: Any, scope: Any) -> None:
        self._source = source
        self._problems: list[str] = []
        self._check(name, where, count, scope)
        self.groups = self._columns("group_by=", columns_of(group_by))
        self.sums = self._columns("sum=", columns_of(sum))
        self._check_groups()
        self._check_sums()
        if self._problems:
            raise ConfigurationError(f"view {shown(name)} of table {source.full_name}: {'; '.join(self._problems)}")
        fields: list[Any] = [(column.name, _type_of(column)) for column in self.groups]
        fields += [(COUNT, int), *((column.name, _type_of(column)) for column in self.sums)]
        # A type of its own for each view, also where types are told apart by their names.
        self.row_type = msgspec.defstruct(_NO_IDENTIFIER.sub("_", f"{source.operator}_{source.name}_{name}"), fields)

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

    def _columns(self, what: str, names: tuple[Any, ...]) -> tuple[Column, ...]:
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
        if any(column.name == COUNT for column in (*self.groups, *self.sums)):
            self._problems.append(f"a view has a column {COUNT!r} of its own: rename the column {COUNT!r} of the table")


def _type_of(column: Column) -> Any:
    kind = column.kind
    assert kind is not None, "checked above"
    if kind.name == "naive datetime":
        return Annotated[datetime, msgspec.Meta(tz=False)]
    return kind.classes[0]
