"""Random SELECTs over tables of plain rows, each with what it gives, which plain Python computes.

A query joins one to three tables by columns of one kind, keeps rows by a filter, and gives either some columns of all
rows, or groups with their counts, sums and ends. NULL is as in SQL: it equals nothing, sums leave it out, and a filter
of it keeps nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any, Final, NamedTuple

from styx.query.relations import Table, quoted

Row = tuple[Any, ...]
Rows = Mapping[str, Sequence[Row]]
"""By `schema.name`."""
JOINED_KINDS: Final = ("int", "str")
ORDERED_KINDS: Final = ("int", "str", "Decimal", "date")
ROWS_MAX: Final = 20_000
"""Of a product of tables: larger ones are not asked."""


class Column(NamedTuple):
    """A column of a table of the query: which table, where in its rows, its kind, and its name in SQL."""

    table: int
    at: int
    kind: str
    sql: str


class Question(NamedTuple):
    """A query, and its rows in any order."""

    sql: str
    rows: Counter[Row]


Filter = tuple[str, Callable[[Sequence[Row]], bool]]


def question(rng: Random, tables: Sequence[Table], rows: Rows) -> Question:
    """A query and its result."""
    while True:
        chosen = [rng.choice(tables) for _ in range(rng.choice((1, 2, 2, 3, 3)))]
        contents = [rows[f"{each.schema}.{each.name}"] for each in chosen]
        size = 1
        for each in contents:
            size *= len(each)
        if 0 < size <= ROWS_MAX:
            break
    columns = [
        Column(number, at, kind, f"t{number}.{quoted(name)}")
        for number, table in enumerate(chosen)
        for at, (name, kind) in enumerate(table.columns)
    ]
    filters = [_join(rng, columns, number) for number in range(1, len(chosen))]
    filters += [_comparison(rng, columns, contents) for _ in range(rng.choice((0, 1, 1, 2)))]
    kept = [each for each in filters if each is not None]
    found = [row for row in product(*contents) if all(holds(row) for _, holds in kept)]
    sources = ", ".join(f"{quoted(each.schema)}.{quoted(each.name)} t{at}" for at, each in enumerate(chosen))
    where = " where " + " and ".join(text for text, _ in kept) if kept else ""
    give = _groups if rng.random() < 0.5 else _plain
    selected, behind, given = give(rng, [each for each in columns if each.kind in ORDERED_KINDS], found)
    return Question(f"select {selected} from {sources}{where}{behind}", given)


def _join(rng: Random, columns: list[Column], number: int) -> Filter | None:
    """A table equals one before it in a column of the same kind, if there is one."""
    pairs = [
        (left, right)
        for right in columns
        for left in columns
        if right.table == number and left.table < number and left.kind == right.kind and left.kind in JOINED_KINDS
    ]
    if not pairs:
        return None
    left, right = rng.choice(pairs)
    return f"{left.sql} = {right.sql}", lambda row: _equal(value(row, left), value(row, right))


def _comparison(rng: Random, columns: list[Column], contents: Sequence[Sequence[Row]]) -> Filter | None:
    column = rng.choice([each for each in columns if each.kind in ORDERED_KINDS])
    if rng.random() < 0.2:
        wanted = rng.random() < 0.5
        return f"{column.sql} is {'' if wanted else 'not '}null", lambda row: (value(row, column) is None) == wanted
    bound = rng.choice(contents[column.table])[column.at]
    if bound is None:
        return None
    sign = rng.choice(("=", "<>", "<", ">="))
    return f"{column.sql} {sign} {literal(bound)}", lambda row: _compared(sign, value(row, column), bound)


def _plain(rng: Random, columns: list[Column], found: list[Any]) -> tuple[str, str, Counter[Row]]:
    chosen = rng.sample(columns, min(len(columns), rng.randrange(1, 4)))
    distinct = rng.random() < 0.3
    rows = [tuple(value(row, each) for each in chosen) for row in found]
    text = ", ".join(each.sql for each in chosen)
    return ("distinct " if distinct else "") + text, "", Counter(set(rows) if distinct else rows)


def _groups(rng: Random, columns: list[Column], found: list[Any]) -> tuple[str, str, Counter[Row]]:
    by = rng.sample(columns, min(len(columns), rng.randrange(0, 3)))
    folded = [(rng.choice(columns), rng.choice(("count", "min", "max", "distinct", "sum"))) for _ in range(2)]
    folded = [(each, "count" if how == "sum" and each.kind not in ("int", "Decimal") else how) for each, how in folded]
    groups: dict[Row, list[Any]] = {} if by else {(): []}
    for row in found:
        groups.setdefault(tuple(value(row, each) for each in by), []).append(row)
    rows = [
        (*key, len(group), *(_folded(how, [value(row, each) for row in group]) for each, how in folded))
        for key, group in groups.items()
    ]
    selected = [each.sql for each in by] + ["count(*)"] + [_fold_text(each, how) for each, how in folded]
    behind = " group by " + ", ".join(each.sql for each in by) if by else ""
    return ", ".join(selected), behind, Counter(rows)


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


def value(row: Sequence[Row], column: Column) -> Any:
    """What a row of the joined tables has in a column."""
    return row[column.table][column.at]


def _equal(left: Any, right: Any) -> bool:
    return left is not None and left == right


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
