"""The columns that a query names: too many are harmless, one too few would show null for a value that does not fit."""

from __future__ import annotations

import duckdb
import msgspec
import pytest

from styx.query.named_columns import named_columns


def found(sql: str) -> list[str] | None:
    [row] = duckdb.connect().execute("SELECT json_serialize_sql($1)", [sql]).fetchall()
    return named_columns(msgspec.json.decode(row[0]))


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select count(*) from cart.items", []),
        ("select I.Price, x + 1 as n from cart.items i where y > 2 order by n", ["i", "n", "price", "x", "y"]),
        ("select a.n from x a join y b using (K)", ["a", "k", "n"]),
        ("with t as (select q from x) select max(t.q) from t", ["q", "t"]),
        ("select sum(z) filter (where f) over (partition by p order by o) from x", ["f", "o", "p", "z"]),
        ("select i.inner.deep from x i", ["deep", "i", "inner"]),
    ],
)
def test_names(sql: str, names: list[str]) -> None:
    assert found(sql) == names


@pytest.mark.parametrize(
    "sql",
    [
        "select * from x",
        "select a.* from x a",
        "select columns('p.*') from x",
        "from x",
        "table x",
        "describe x",
        "summarize x",
        "select #1 from x",
        "select a from x a",
        "select items from cart.items",
        "select 1 from x natural join y",
        "select t.b from x t(a, b)",
        "select t.b from (select 1, 2) t(a, b)",
        "select n from x group by all order by all",
        "unpivot x on a, b into name n value v",
    ],
)
def test_all_columns_may_be_read(sql: str) -> None:
    assert found(sql) is None
