"""A declared view: what the engine keeps of a table's rows, for each group the number of its rows and sums of columns.

The rows of a view are made by the engine alone, in the same transaction as the rows that they count. Declarations and
arithmetic only: `styx.model.row_statements` writes them, and `styx.schema.view_rebuilding` makes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from styx.errors import BadQuery, UnsupportedValue, describe
from styx.relational.columns import Column
from styx.relational.increment import DECIMAL_DIGITS_MAX, Increment
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table

COUNT: Final = "count"
"""The column of a view that has the number of a group's rows."""
SUM_DIGITS_MAX: Final = 40
"""Digits that a Decimal may have before the point, and behind it, to be added to a view's sum: then all sums are exact
(`styx.relational.increment.DECIMAL_DIGITS_MAX`).
"""
ADDEND_MAX: Final = 2**43
"""Whole numbers that are added up are at most so large, so that a sum of a million rows fits 64 bits."""
_EXACT: Final = Context(prec=DECIMAL_DIGITS_MAX)


class Share(NamedTuple):
    """What one row gives to a view. `group`: parts of the group's key. `values`: 1, and one for each sum."""

    group: tuple[str | int, ...]
    values: tuple[Any, ...]


class View:
    """The view `name` of the rows of `source`, which the table `table` holds as rows of `row_type`.

    `groups`: columns of `source` whose values are a group. `sums`: those of which sums are kept. `where`: which rows
    count. `scope`: "entity", groups are those of one entity, or "app". `given`: the arguments of `Table.view` by name.
    """

    __slots__ = ("_names", "_zeros", "given", "groups", "name", "row_type", "scope", "source", "sums", "table", "where")

    def __init__(
        self,
        source: Table,
        table: Table,
        row_type: type,
        groups: tuple[Column, ...],
        sums: tuple[Column, ...],
        given: dict[str, Any],
    ) -> None:
        self.source = source
        self.table = table
        self.row_type = row_type
        self.name: str = given["name"]
        self.groups = groups
        self.sums = sums
        self.where: Callable[[Any], Any] | None = given["where"]
        self.scope: str = given["scope"]
        self.given = given
        self._names = (COUNT, *[column.name for column in sums])
        self._zeros: tuple[Any, ...] = (0, *map(_zero, sums))

    @property
    def named(self) -> str:
        """As messages name it."""
        return f"view {self.name!r} of table {self.source.full_name}"

    def share(self, row: Any) -> Share | None:
        """What a row, as stored, gives to the view; None if it does not count: `where` says so, or a column of the
        group is None. Raises `UnsupportedValue` for a value that cannot be added up, and whatever `where` raises.
        """
        where = self.where
        # A copy: what `where` does to it changes neither the group nor what other consequences of the change see.
        if where is not None and not where(copy(row)):
            return None
        group: list[str | int] = []
        for column in self.groups:
            value = getattr(row, column.name)
            if value is None:
                return None
            try:
                group.append(column.key_part(value))
            except BadQuery as error:
                raise UnsupportedValue(f"{self.named}: {error}") from None
        return Share(tuple(group), (1, *[self._addend(column, getattr(row, column.name)) for column in self.sums]))

    def shares(self, old: Any, new: Any) -> list[Share]:
        """What is to be added to which groups when `old` becomes `new`; None: there is no row. Nothing that is zero."""
        before = None if old is None else self.share(old)
        after = None if new is None else self.share(new)
        if before is None:
            return [] if after is None else [after]
        less = Share(before.group, tuple(map(_negated, before.values)))
        if after is None:
            return [less]
        if after.group != before.group:
            return [less, after]
        change = Share(after.group, tuple(map(added, less.values, after.values)))
        return [change] if any(change.values) else []

    def _addend(self, column: Column, value: Any) -> Any:
        if value is None:
            return _zero(column)
        if type(value) is int and not -ADDEND_MAX <= value <= ADDEND_MAX:
            raise UnsupportedValue(
                f"{self.named}: column {column.name!r} is added up, and {value} is too large: a number is at most "
                f"{ADDEND_MAX}; declare the column as Decimal"
            )
        if type(value) is Decimal and not (
            value.is_finite() and value.adjusted() < SUM_DIGITS_MAX and value.as_tuple().exponent >= -SUM_DIGITS_MAX  # type: ignore[operator]  # of a finite one it is a number
        ):
            raise UnsupportedValue(
                f"{self.named}: column {column.name!r} is added up, and {shown(value)} cannot be: a number has at most "
                f"{SUM_DIGITS_MAX} digits before the point and {SUM_DIGITS_MAX} behind it"
            )
        return value

    # Rows of the view ------------------------------------------------------------------------------------------

    def values_of(self, group_row: Any) -> tuple[Any, ...]:
        """The values of a row of the view, as those of a share."""
        return (getattr(group_row, COUNT), *[getattr(group_row, column.name) for column in self.sums])

    def values_from(self, sent: Sequence[Any]) -> tuple[Any, ...]:
        """Values of a share that came as arguments or results, which have a Decimal as text."""
        return tuple([Decimal(value) if type(value) is str else value for value in sent])

    def asked(self, values: Sequence[Any]) -> tuple[str | int, ...]:
        """The group that has these values in its columns; raises `BadQuery`."""
        if len(values) != len(self.groups):
            names = ", ".join(column.name for column in self.groups) or "no values"
            raise BadQuery(f"a group of {self.named} is ({names}), got {len(values)} values")
        return tuple([column.key_part(value) for column, value in zip(self.groups, values, strict=True)])

    def increment(self, share: Share) -> Increment:
        """What adds a share to the row of its group."""
        row_type = self.table.row_type
        pack = row_type.typed.pack
        return Increment(
            row_type, dict(zip(self._names, share.values, strict=True)), pack(self.nothing(share.group)), COUNT
        )

    def group_row(self, share: Share) -> Any:
        """The row of a group of which the share is all."""
        keys = [column.from_part(part) for column, part in zip(self.groups, share.group, strict=True)]
        declared: Any = self.row_type
        return declared(*keys, *share.values)

    def nothing(self, group: tuple[str | int, ...]) -> Any:
        """The row that a group without rows is read as."""
        return self.group_row(Share(group, self._zeros))

    def minds(self, name: str) -> bool:
        """Whether the view may have to change when the column does; `where` may look at any."""
        return self.where is not None or any(column.name == name for column in (*self.groups, *self.sums))

    def try_row(self, row: Any) -> None:
        """Raises `UnsupportedValue` for a stored row that cannot be counted."""
        try:
            self.share(row)
        except UnsupportedValue:
            raise
        except Exception as error:  # noqa: BLE001 - the app's own code can raise anything
            raise UnsupportedValue(f"{self.named}: where= raised " + ": ".join(describe(error))) from None


def added(one: Any, other: Any) -> Any:
    """The sum of two values of shares, exactly."""
    if type(one) is Decimal or type(other) is Decimal:
        return _EXACT.add(one, other)
    return one + other


def _negated(value: Any) -> Any:
    """Exactly: `-value` would round a Decimal by the app's own context."""
    return value.copy_negate() if type(value) is Decimal else -value


def _zero(column: Column) -> Any:
    assert column.kind is not None, "a declaration of a view checks it"
    return column.kind.classes[0](0)
