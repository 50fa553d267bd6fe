"""Random SELECTs over tables of plain rows, each with what it gives, which plain Python computes of any rows.

A query joins tables by columns of one kind, keeps rows by a filter, and gives some columns of all rows, groups with
their counts, sums and ends, or rows with a function over a window. NULL is as in SQL: it equals nothing, sums leave it
out, a filter of it keeps nothing, and it is the last in an order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final, NamedTuple

from styx.query.relations import Table, quoted

Row = tuple[Any, ...]
Rows = Mapping[str, Sequence[Row]]
"""By `schema.name`."""
Joined = tuple[Row, ...]
"""A row of each table of a query."""
JOINED_KINDS: Final = ("int", "str")
ORDERED_KINDS: Final = ("int", "str", "Decimal", "date")
ROWS_MAX: Final = 100_000
"""Of what a query joins; one that joins more is not computed."""


class TooManyRows(Exception):
    """The query joins too many rows."""


class Column(NamedTuple):
    """A column of a table of the query: which table, where in its rows, its kind, its own name, and that in SQL."""

    table: int
    at: int
    kind: str
    name: str
    sql: str


class Filter(NamedTuple):
    """A condition of one column."""

    column: Column
    sql: str
    holds: Callable[[Any], bool]


class Select(NamedTuple):
    """A query: its text, the tables as `schema.name`, for each table behind the first what it is joined by (a column
    before it and its own; None for a product), the filters, and what it gives of the joined rows.
    """

    sql: str
    tables: list[str]
    joins: list[tuple[Column, Column] | None]
    filters: list[Filter]
    give: Callable[[list[Joined]], Counter[Row]]

    def of(self, rows: Rows) -> Counter[Row]:
        """Its rows, in any order. Raises `TooManyRows`."""
        found: list[Joined] = [(row,) for row in self._kept(0, rows)]
        for number, join in enumerate(self.joins, 1):
            right = self._kept(number, rows)
            if join is None:
                _check_size(len(found) * len(right))
                found = [(*left, row) for left in found for row in right]
            else:
                found = _equal(found, right, *join)
            _check_size(len(found))
        return self.give(found)

    def _kept(self, number: int, rows: Rows) -> list[Row]:
        filters = [each for each in self.filters if each.column.table == number]
        return [row for row in rows[self.tables[number]] if all(each.holds(row[each.column.at]) for each in filters)]


def _check_size(rows: int) -> None:
    if rows > ROWS_MAX:
        raise TooManyRows(f"{rows} rows are joined, and {ROWS_MAX} are the limit")


def _equal(found: list[Joined], right: list[Row], one: Column, other: Column) -> list[Joined]:
    by_value: dict[Any, list[Row]] = {}
    for row in right:
        if row[other.at] is not None:
            by_value.setdefault(row[other.at], []).append(row)
    return [(*left, row) for left in found for row in by_value.get(value(left, one), ())]


Bound = Callable[[Random, Table, int], Any]
"""A value that a column of a table, by its place, may be compared with; None for no comparison."""
Given = tuple[str, str, Callable[[list[Joined]], Counter[Row]]]
"""What is selected, what stands behind the conditions, and what it makes of the joined rows."""


def random_select(rng: Random, chosen: Sequence[Table], bound: Bound) -> Select:
    """A query that joins these tables, in this order."""
    columns = [
        Column(number, at, kind, name, f"t{number}.{quoted(name)}")
        for number, table in enumerate(chosen)
        for at, (name, kind) in enumerate(table.columns)
    ]
    joins = [_join(rng, columns, number) for number in range(1, len(chosen))]
    drawn = [_comparison(rng, columns, chosen, bound) for _ in range(rng.choice((0, 1, 1, 2)))]
    filters = [each for each in drawn if each is not None]
    conditions = [f"{one.sql} = {other.sql}" for one, other in filter(None, joins)] + [each.sql for each in filters]
    sources = ", ".join(f"{quoted(each.schema)}.{quoted(each.name)} t{at}" for at, each in enumerate(chosen))
    where = " where " + " and ".join(conditions) if conditions else ""
    give = rng.choice((_plain, _groups, _groups, _window))
    selected, behind, given = give(rng, [each for each in columns if each.kind in ORDERED_KINDS])
    tables = [f"{each.schema}.{each.name}" for each in chosen]
    sql = f"select {selected} from {sources}{where}{behind}"  # noqa: S608 - made of declared names
    return Select(sql, tables, joins, filters, given)


def _join(rng: Random, columns: list[Column], number: int) -> tuple[Column, Column] | None:
    """A table equals one before it in a column of the same kind, if there is one."""
    pairs = [
        (left, right)
        for right in columns
        for left in columns
        if right.table == number and left.table < number and left.kind == right.kind and left.kind in JOINED_KINDS
    ]
    # Those of one name meet more often than a key meets a number.
    named = [(left, right) for left, right in pairs if left.name == right.name]
    return rng.choice(named if named and rng.random() < 0.6 else pairs) if pairs else None


def _comparison(rng: Random, columns: list[Column], chosen: Sequence[Table], bound: Bound) -> Filter | None:
    column = rng.choice([each for each in columns if each.kind in ORDERED_KINDS])
    if rng.random() < 0.2:
        wanted = rng.random() < 0.5
        return Filter(
            column, f"{column.sql} is {'' if wanted else 'not '}null", lambda found: (found is None) == wanted
        )
    limit = bound(rng, chosen[column.table], column.at)
    if limit is None:
        return None
    sign = rng.choice(("=", "<>", "<", ">="))
    return Filter(column, f"{column.sql} {sign} {literal(limit)}", lambda found: _compared(sign, found, limit))


def _plain(rng: Random, columns: list[Column]) -> Given:
    chosen = rng.sample(columns, min(len(columns), rng.randrange(1, 4)))
    distinct = rng.random() < 0.3

    def given(found: list[Joined]) -> Counter[Row]:
        rows = [tuple(value(row, each) for each in chosen) for row in found]
        return Counter(set(rows) if distinct else rows)

    return ("distinct " if distinct else "") + _listed(chosen), "", given


# Groups --------------------------------------------------------------------------------------------------------


def _groups(rng: Random, columns: list[Column]) -> Given:
    by = rng.sample(columns, min(len(columns), rng.randrange(0, 3)))
    folded = [_random_fold(rng, columns, ("count", "min", "max", "distinct", "sum")) for _ in range(2)]

    def given(found: list[Joined]) -> Counter[Row]:
        groups: dict[Row, list[Joined]] = {} if by else {(): []}
        for row in found:
            groups.setdefault(tuple(value(row, each) for each in by), []).append(row)
        return Counter(
            (*key, len(group), *(_folded(how, [value(row, each) for row in group]) for each, how in folded))
            for key, group in groups.items()
        )

    selected = [each.sql for each in by] + ["count(*)"] + [_fold_text(each, how) for each, how in folded]
    return ", ".join(selected), " group by " + _listed(by) if by else "", given


def _random_fold(rng: Random, columns: list[Column], hows: Sequence[str]) -> tuple[Column, str]:
    column, how = rng.choice(columns), rng.choice(hows)
    return column, "count" if how == "sum" and column.kind not in ("int", "Decimal") else how


def _fold_text(column: Column, how: str) -> str:
    return f"count(distinct {column.sql})" if how == "distinct" else f"{how}({column.sql})"


def _folded(how: str, values: list[Any]) -> Any:
    there = [each for each in values if each is not None]
    if how == "count":
        return len(there)
    if how == "distinct":
        return len(set(there))
    if not there:
        return None
    return {"min": min, "max": max, "sum": sum}[how](there)  # type: ignore[operator]


# Windows -------------------------------------------------------------------------------------------------------


def _window(rng: Random, columns: list[Column]) -> Given:
    """Some columns, and a rank, or a fold of the window: all of a partition, or up to the row and its equals."""
    chosen = rng.sample(columns, min(len(columns), rng.randrange(1, 3)))
    by = rng.sample(columns, min(len(columns), rng.randrange(0, 3)))
    ranks = rng.choice(("rank", "dense_rank", "", ""))
    order = rng.sample(columns, min(len(columns), rng.randrange(1, 3))) if ranks or rng.random() < 0.6 else []
    column, how = _random_fold(rng, columns, ("count", "min", "max", "sum"))
    over = ("partition by " + _listed(by) if by else "") + (" order by " if order else "")
    over += ", ".join(f"{each.sql} nulls last" for each in order)
    function = f"{ranks}()" if ranks else _fold_text(column, how)

    def given(found: list[Joined]) -> Counter[Row]:
        parts: dict[Row, list[tuple[Row, Joined]]] = {}
        for row in found:
            parts.setdefault(tuple(value(row, each) for each in by), []).append((_place(row, order), row))
        rows: Counter[Row] = Counter()
        for part in parts.values():
            folded = _over(part, ranks, column, how)
            rows.update((*(value(row, each) for each in chosen), folded[place]) for place, row in part)
        return rows

    return f"{_listed(chosen)}, {function} over ({over.strip()})", "", given


def _over(part: list[tuple[Row, Joined]], ranks: str, column: Column, how: str) -> dict[Row, Any]:
    """What the function gives at each place in the order of a partition."""
    at: dict[Row, list[Joined]] = {}
    for place, row in part:
        at.setdefault(place, []).append(row)
    found: dict[Row, Any] = {}
    before: list[Any] = []
    for number, place in enumerate(sorted(at), 1):
        first = len(before) + 1
        before += [value(row, column) for row in at[place]]
        found[place] = first if ranks == "rank" else number if ranks else _folded(how, before)
    return found


def _place(row: Joined, order: list[Column]) -> Row:
    values = [value(row, each) for each in order]
    return tuple((each is None, 0 if each is None else each) for each in values)


# Values --------------------------------------------------------------------------------------------------------


def value(row: Joined, column: Column) -> Any:
    """What a row of the joined tables has in a column."""
    return row[column.table][column.at]


def _listed(columns: list[Column]) -> str:
    return ", ".join(each.sql for each in columns)


def _compared(sign: str, left: Any, right: Any) -> bool:
    if left is None:
        return False
    return bool({"=": left == right, "<>": left != right, "<": left < right, ">=": left >= right}[sign])


def literal(value: Any) -> str:
    """A value as it stands in SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int | Decimal):
        return f"{value}"
    return f"date '{value.isoformat()}'"


def plain(row: Sequence[Any]) -> Row:
    """A row of a result with Decimals by their value, whatever digits they have."""
    return tuple(int(each) if isinstance(each, Decimal) and each == int(each) else each for each in row)
