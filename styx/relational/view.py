"""A declared view: what the engine keeps of a table's rows, for each group the number of its rows, sums of columns, and
their least and greatest values.

The rows of a view are made by the engine alone, in the same transaction as the rows that they count. Declarations and
arithmetic only: `styx.model.group_rows` writes them, and `styx.schema.view_rebuilding` makes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from decimal import Context, Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from styx.errors import BadQuery, UnsupportedValue, describe
from styx.relational.columns import Column
from styx.relational.increment import DECIMAL_DIGITS_MAX, Increment
from styx.relational.ordered_part import DIGITS_MAX
from styx.relational.ranking import Ranking
from styx.relational.tumbling import Windows
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table

COUNT: Final = "count"
"""The column of a view that has the number of a group's rows."""
ADDEND_MAX: Final = 2**43
"""Whole numbers that are added up are at most so large, so that a sum of a million rows fits 64 bits. A Decimal has at
most `DIGITS_MAX` digits before its point and behind it: then all sums are exact
(`styx.relational.increment.DECIMAL_DIGITS_MAX`).
"""
GROUPS_KEPT_MAX: Final = 1_000
"""Groups whose key and encoded empty row are kept: most changes are of groups that others have changed before."""
_EXACT: Final = Context(prec=DECIMAL_DIGITS_MAX)

Ranked = tuple[int, Any, int]
"""The number of a ranking, the part of an entry's key, and how many rows the entry gets."""


class Share(NamedTuple):
    """What one row gives to a view. `group`: parts of the group's key. `values`: 1, and one for each sum. `ranked`:
    what the entries of rankings get.
    """

    group: tuple[str | int, ...]
    values: tuple[Any, ...]
    ranked: tuple[Ranked, ...] = ()


class View:
    """The view `name` of the rows of `source`, which the table `table` holds as rows of `row_type`.

    `groups`: columns of `source` whose values are a group; `windows`, by their place there, those of times that are cut
    into windows. `sums`: those of which sums are kept. `rankings`: of those whose ends are. `where`: which rows count.
    `scope`: "entity", groups are those of one entity; "partition", of all entities of a partition; or "app", of all.
    `given`: the arguments of `Table.view` by name.
    """

    __slots__ = (
        "_empty",
        "_group_of",
        "_keys",
        "_names",
        "_summed",
        "_zeros",
        "given",
        "groups",
        "name",
        "rankings",
        "row_type",
        "scope",
        "source",
        "sums",
        "table",
        "where",
        "windows",
    )

    def __init__(
        self,
        source: Table,
        table: Table,
        row_type: type,
        groups: tuple[Column, ...],
        windows: dict[int, Windows],
        sums: tuple[Column, ...],
        rankings: tuple[Ranking, ...],
        given: dict[str, Any],
    ) -> None:
        self.source = source
        self.table = table
        self.row_type = row_type
        self.name: str = given["name"]
        self.groups = groups
        self.windows = windows
        self.sums = sums
        self.rankings = rankings
        self.where: Callable[[Any], Any] | None = given["where"]
        self.scope: str = given["scope"]
        self.given = given
        self._names = (COUNT, *[column.name for column in sums])
        self._zeros: tuple[Any, ...] = (0, *map(_zero, sums))
        self._group_of = _values_of(groups)
        self._summed = _values_of(sums)
        self._empty: dict[tuple[str | int, ...], bytes] = {}
        self._keys: dict[tuple[Any, ...], tuple[str | int, ...]] = {}

    @property
    def named(self) -> str:
        """As messages name it."""
        return f"view {self.name!r} of table {self.source.full_name}"

    @property
    def tables(self) -> tuple[Table, ...]:
        """All that the engine keeps of it: its rows, and the entries of its rankings."""
        return (self.table, *[ranking.table for ranking in self.rankings])

    @property
    def ends(self) -> list[tuple[str, int, bool]]:
        """The least and greatest values: name of the column, number of the ranking, whether it is the greatest."""
        return [(name, at, greatest) for at, each in enumerate(self.rankings) for name, greatest in each.ends]

    # What rows give to it --------------------------------------------------------------------------------------

    def share(self, row: Any) -> Share | None:
        """What a row, as stored, gives to the view; None if it does not count: `where` says so, or a column of the
        group is None. Raises `UnsupportedValue` for a value that cannot be added up, and whatever `where` raises.
        """
        where = self.where
        # A copy: what `where` does to it changes neither the group nor what other consequences of the change see.
        if where is not None and not where(copy(row)):
            return None
        group_of, summed = self._group_of, self._summed
        group = group_of(row)
        if None in group:
            return None
        parts = self._key_of(group)
        ranked = tuple(self._ranked(row)) if self.rankings else ()
        values: list[Any] = [1]
        for value in summed(row):
            usual = type(value) is int and -ADDEND_MAX <= value <= ADDEND_MAX
            values.append(value if usual else self._addend(self.sums[len(values) - 1], value))
        return Share(parts, tuple(values), ranked)

    def shares(self, old: Any, new: Any) -> list[Share]:
        """What is to be added to which groups when `old` becomes `new`; None: there is no row. Nothing that is zero."""
        if old is not None and new is not None and self.where is None and not self.rankings:
            group_of, summed = self._group_of, self._summed
            group, values = group_of(new), summed(new)
            if group == group_of(old):  # the usual change: only sums may become others
                before_values = summed(old)
                if values == before_values or None in group:
                    return []
                sums = self._change(before_values, values)
                return [Share(self._key_of(group), sums)] if any(sums) else []
        before = None if old is None else self.share(old)
        after = None if new is None else self.share(new)
        if before is None:
            return [] if after is None else [after]
        gone = tuple([(at, part, -1) for at, part, _ in before.ranked])
        less = Share(before.group, tuple([_negated(value) for value in before.values]), gone)
        if after is None:
            return [less]
        if after.group != before.group:
            return [less, after]
        ranked: tuple[Ranked, ...] = ()
        if after.ranked != before.ranked:
            kept = {*before.ranked} & {*after.ranked}
            ranked = tuple([(at, part, by) for at, part, by in (*gone, *after.ranked) if (at, part, 1) not in kept])
        sums = tuple([added(one, other) for one, other in zip(less.values, after.values, strict=True)])
        change = Share(after.group, sums, ranked)
        return [change] if ranked or any(change.values) else []

    def _change(self, before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of a share that makes these sums of those."""
        values: list[Any] = [0]
        for column, old, new in zip(self.sums, before, after, strict=True):
            if type(old) is int and type(new) is int and -ADDEND_MAX <= new <= ADDEND_MAX:
                values.append(new - old)
            else:
                values.append(added(self._addend(column, new), _negated(self._addend(column, old))))
        return tuple(values)

    def _key_of(self, group: tuple[Any, ...]) -> tuple[str | int, ...]:
        """The parts of the key of the group with these values in its columns."""
        known = self._keys.get(group)
        if known is not None:
            return known
        try:
            parts = [column.key_part(value) for column, value in zip(self.groups, group, strict=True)]
            for at, windows in self.windows.items():
                parts[at] = windows.start(parts[at])
        except BadQuery as error:
            raise UnsupportedValue(f"{self.named}: {error}") from None
        key = tuple(parts)
        if not self.windows:  # else nearly each row has another time
            _keep(self._keys, group, key)
        return key

    def _ranked(self, row: Any) -> list[Ranked]:
        ranked: list[Ranked] = []
        for at, ranking in enumerate(self.rankings):
            value = getattr(row, ranking.column.name)
            if value is not None:
                try:
                    ranked.append((at, ranking.part(value), 1))
                except BadQuery as error:
                    raise UnsupportedValue(f"{self.named}: {error}") from None
        return ranked

    def _addend(self, column: Column, value: Any) -> Any:
        if value is None:
            return _zero(column)
        if type(value) is int and not -ADDEND_MAX <= value <= ADDEND_MAX:
            raise UnsupportedValue(
                f"{self.named}: column {column.name!r} is added up, and {value} is too large: a number is at most "
                f"{ADDEND_MAX}; declare the column as Decimal"
            )
        if type(value) is Decimal and not (
            value.is_finite() and value.adjusted() < DIGITS_MAX and value.as_tuple().exponent >= -DIGITS_MAX  # type: ignore[operator]  # of a finite one it is a number
        ):
            raise UnsupportedValue(
                f"{self.named}: column {column.name!r} is added up, and {shown(value)} cannot be: a number has at most "
                f"{DIGITS_MAX} digits before the point and {DIGITS_MAX} behind it"
            )
        return value

    def minds(self, name: str) -> bool:
        """Whether the view may have to change when the column does; `where` may look at any."""
        ranked = [ranking.column for ranking in self.rankings]
        return self.where is not None or any(column.name == name for column in (*self.groups, *self.sums, *ranked))

    def try_row(self, row: Any) -> None:
        """Raises `UnsupportedValue` for a stored row that cannot be counted."""
        try:
            self.share(row)
        except UnsupportedValue:
            raise
        except Exception as error:  # noqa: BLE001 - the app's own code can raise anything
            raise UnsupportedValue(f"{self.named}: where= raised " + ": ".join(describe(error))) from None

    # Rows of the view ------------------------------------------------------------------------------------------

    def values_of(self, group_row: Any) -> tuple[Any, ...]:
        """The values of a row of the view, as those of a share."""
        return (getattr(group_row, COUNT), *self._summed(group_row))

    def values_from(self, sent: Sequence[Any]) -> tuple[Any, ...]:
        """Values of a share that came as arguments or results, which have a Decimal as text."""
        return tuple([Decimal(value) if type(value) is str else value for value in sent])

    def asked(self, values: Sequence[Any]) -> tuple[str | int, ...]:
        """The group that has these values in its columns; raises `BadQuery`."""
        if len(values) != len(self.groups):
            names = ", ".join(column.name for column in self.groups) or "no values"
            raise BadQuery(f"a group of {self.named} is ({names}), got {len(values)} values")
        parts = tuple([column.key_part(value) for column, value in zip(self.groups, values, strict=True)])
        self.check_group(parts)
        return parts

    def check_group(self, group: Sequence[str | int]) -> None:
        """Raises `BadQuery` for a group that no row can be in: a time in it is the start of no window."""
        for at, windows in self.windows.items():
            try:
                windows.check(group[at])
            except BadQuery as error:
                raise BadQuery(f"{self.named}: {error}") from None

    def increment(self, share: Share) -> Increment:
        """What adds a share to the row of its group."""
        group = share.group
        empty = self._empty.get(group)
        if empty is None:
            pack = self.table.row_type.typed.pack
            empty = pack(self.nothing(group))
            _keep(self._empty, group, empty)
        return Increment(self.table.row_type, dict(zip(self._names, share.values, strict=True)), empty, COUNT)

    def group_row(self, share: Share) -> Any:
        """The row of a group of which the share is all, without ends."""
        keys = [column.from_part(part) for column, part in zip(self.groups, share.group, strict=True)]
        declared: Any = self.row_type
        return declared(*keys, *share.values)

    def nothing(self, group: tuple[str | int, ...]) -> Any:
        """The row that a group without rows is read as."""
        return self.group_row(Share(group, self._zeros))


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


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    if len(kept) >= GROUPS_KEPT_MAX:
        kept.clear()
    kept[key] = value


def _values_of(columns: Sequence[Column]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of the columns in a row, as a tuple."""
    if not columns:
        return _no_values
    get: Any = attrgetter(*[column.name for column in columns])  # a tuple only of several: compiled code checks
    return get if len(columns) > 1 else lambda row: (get(row),)


def _no_values(row: Any) -> tuple[Any, ...]:
    return ()
