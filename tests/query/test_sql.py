"""Queries over a real snapshot equal what functions have read; hostile ones cost nobody anything but their sender."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from styx.errors import UnsupportedValue
from styx.query import sql_process
from styx.query.arrow import SQL_TYPE
from styx.query.relations import Table
from styx.query.schema import of_description
from styx.query.service import PARAMETER_TYPES, Asked, Limits, QueryFailed
from styx.query.source import of_cluster
from styx.query.sql import Query
from styx.schema.description import AppDescription, OperatorDescription
from tests.backup.snapshots import Cluster
from tests.query.conftest import Filled
from tests.query.shop import Colour, Item

SMALL = Limits(memory_mib=200, seconds=20.0, rows=1_000)


def rows(filled: Filled, sql: str, limits: Limits = SMALL, **asked: Any) -> list[dict[str, Any]]:
    with Query(filled.source, filled.by_app, Asked(sql, **asked), limits) as query:
        schema, batches = query.result()
        found: list[dict[str, Any]] = pa.Table.from_batches(list(batches), schema).to_pylist()
    return found


def items(filled: Filled) -> list[tuple[str, Item]]:
    return [(key[0], row) for (table, key), row in filled.told.state.items() if table == "cart/items"]


def test_groups_and_sums(filled: Filled) -> None:
    found = rows(
        filled,
        "select seller, colour, count(*) n, sum(price) price, max(day) latest, sum(octet_length(raw)) bytes, "
        "sum(len(tags::varchar[])) tags from cart.items group by seller, colour",
    )
    by: dict[tuple[str, Colour], list[Item]] = defaultdict(list)
    for _, item in items(filled):
        by[item.seller, item.colour].append(item)
    assert {(row["seller"], row["colour"]) for row in found} == {(seller, each.value) for seller, each in by}
    for row in found:
        group = by[row["seller"], Colour(row["colour"])]
        assert row["n"] == len(group)
        assert row["price"] == sum(item.price for item in group)
        assert row["latest"] == max((item.day for item in group if item.day), default=None)
        assert row["bytes"] == len(group)
        assert row["tags"] == sum(len(item.tags) for item in group)


def test_types_that_arrow_lacks_come_as_text(filled: Filled) -> None:
    found = rows(
        filled,
        "select 340282366920938463463374607431768211455::uhugeint a, [timetz '12:00:00+05'] b, '101'::bit c, 2 d, "
        "{'x': 12345678901234567890123456789012345678901234567890::bignum} e",
    )
    assert list(found[0].values()) == [
        str(2**128 - 1),
        "['12:00:00+05']",
        "101",
        2,
        "{'x': 12345678901234567890123456789012345678901234567890}",
    ]


def test_a_join_over_three_operators(filled: Filled) -> None:
    found = rows(
        filled,
        "select o.key, o.key_2, o.total, count(l.number) lines, (select count(*) from cart.items i where i.product <= "
        'o.lines) below, (select value::int from counter.state where key = 7) seven from "order".state o '
        'left join "order".lines l on (o.key, o.key_2) = (l.entity_key, l.key_2) group by all order by 1, 2',
    )
    state = filled.told.state
    orders = {key: order for (table, key), order in state.items() if table == "order"}
    lines = Counter(key[:2] for table, key in state if table == "order/lines")
    products = [item.product for _, item in items(filled)]
    assert found == [
        {
            "key": key[0],
            "key_2": key[1],
            "total": order.total,
            "lines": lines[key],
            "below": sum(product <= order.lines for product in products),
            "seven": 2,
        }
        for key, order in sorted(orders.items())
    ]


def test_views_and_rows_agree(filled: Filled) -> None:
    found = rows(
        filled,
        "select v.seller, v.count, v.price, v.min_price, v.min_day, count(*) n, sum(i.price) p, min(i.price) least, "
        "min(i.day) d from cart.by_seller v join cart.items i using (seller) group by all",
    )
    assert len(found) == 3
    for row in found:
        assert (row["count"], row["price"], row["min_price"], row["min_day"]) == (
            *(row["n"], row["p"], row["least"], row["d"]),
        )
        assert Decimal(filled.told.sellers[row["seller"]]["price"]) == row["price"]


def test_values_and_json(filled: Filled) -> None:
    found = rows(filled, "select key, value->>'balance' b, value is null n from account.state order by key")
    assert [tuple(row.values()) for row in found] == [
        *(("ada", "6", False), ("bob", None, False), ("empty value", None, True)),
        *(("late", None, False), ("ädä", None, False)),
    ]
    [row] = rows(filled, 'select "at", day, number, weight, gift, raw, size from cart.items where product = 5')
    [item] = [item for _, item in items(filled) if item.product == 5]
    assert (row["at"], row["day"], row["weight"], row["gift"], row["raw"]) == (
        *(item.at, item.day, item.weight, item.gift, item.raw),
    )
    assert (row["number"], row["size"]) == (str(item.number), '{"height":5,"width":2}')


def test_only_tables_that_are_named_are_read() -> None:
    cluster = Cluster()
    cluster.snapshot(10, {"a": b"\xc1"})
    operator = OperatorDescription(n_partitions=None, key_type="str", partition_key=False, functions={})
    schema = of_description(
        AppDescription(name="bank", operators={"account": operator, "of-0": operator, "x": operator})
    )
    source = of_cluster(cluster.store)
    with Query(source, schema, Asked("select count(*) from x.state as account"), SMALL) as query:
        assert [batch.to_pylist() for batch in query.result()[1]] == [[{"count_star()": 0}]]
    with (
        Query(source, schema, Asked('select 1 from x.state join "OF-0".STATE AS "t" using (key)'), SMALL) as query,
        pytest.raises(UnsupportedValue, match=r"of-0\['a'\] cannot be shown"),
    ):
        query.result()


@pytest.mark.parametrize(
    ("sql", "numbers"),
    [
        ("select 1", []),
        ('select a.x from CART.Items a join "or der".state as s using (x)', [0, 1]),
        ("with items as (select * from other.items) select * from items, unnest([1, 2])", [2]),
        ("select (select max(x) from cart.items) from range(3) union all from other.items", [0, 2]),
        ("describe cart.items", [0]),
        ("select * from memory.cart.items i where exists (from main.alone)", [0, 3]),
        ("from alone", [3]),
        ("select 'cart.items'", []),
    ],
)
def test_the_tables_that_a_query_names(sql: str, numbers: list[int]) -> None:
    names = [("cart", "items"), ("or der", "state"), ("other", "items"), ("main", "alone")]
    tables = [Table(schema, name, [("x", "int")]) for schema, name in names]
    assert sql_process.named(sql_process.connected(), sql, tables).tables == numbers


# What is asked besides -----------------------------------------------------------------------------------------------


def test_parameters_are_values(filled: Filled) -> None:
    text = "'; select 1 --\0ä"
    found = rows(
        filled,
        "select $1 a, $2 b, $3 c, $4 d, $5 e, $6 f, (select count(*) from cart.items where product < $2) n",
        parameters=[text, 2**63 - 1, 0.5, True, b"\xff\0", None],
    )
    assert found == [
        {"a": text, "b": 2**63 - 1, "c": 0.5, "d": True, "e": b"\xff\0", "f": None, "n": len(items(filled))}
    ]
    with pytest.raises(QueryFailed, match=r"\$2 is not of 64 bits"):
        rows(filled, "select $1, $2", parameters=[0, 2**63])
    with pytest.raises(QueryFailed, match="half of a surrogate pair"):
        rows(filled, "select $1", parameters=["\ud800"])
    with pytest.raises(QueryFailed, match="Values were not provided"):
        rows(filled, "select $1, $2", parameters=[0])


def test_a_query_that_is_described_reads_nothing() -> None:
    cluster = Cluster()
    cluster.snapshot(10, {"a": b"\xc1"})  # which nobody can decode
    operator = OperatorDescription(n_partitions=None, key_type="int", partition_key=False, functions={})
    schema = of_description(AppDescription(name="bank", operators={"account": operator}))
    sql = "select key, value v, count(*) n, sum(key) s, uuid() u, $2 p from account.state where key = $1 group by all"
    with Query(of_cluster(cluster.store), schema, Asked(sql, describe=True), SMALL) as query:
        described, batches = query.result()
        assert list(batches) == []
    types = [(each.name, each.metadata[SQL_TYPE].decode()) for each in described]
    assert types == [
        *(("key", "BIGINT"), ("v", "JSON"), ("n", "BIGINT"), ("s", "HUGEINT"), ("u", "UUID"), ("p", '"NULL"')),
    ]
    assert described.metadata[PARAMETER_TYPES] == b'["BIGINT",""]'


def test_a_prelude_runs_before_the_lock_and_its_macros_are_there(filled: Filled) -> None:
    prelude = ["create macro twice(a) as 2 * a", "create schema own", "create view own.v as select twice(21) as answer"]
    assert rows(filled, "select answer from own.v", prelude=prelude) == [{"answer": 42}]


def test_the_catalog_has_all_tables_and_rows_of_those_that_are_named(filled: Filled) -> None:
    sql = (
        "select schema_name s, table_name t, (select count(*) from cart.items) n from duckdb_tables() "
        "where schema_name in ('cart', 'order') and table_name in ('state', 'items', 'lines')"
    )
    found = {(row["s"], row["t"]): row["n"] for row in rows(filled, sql, catalog=True)}
    names = [("cart", "items"), ("cart", "state"), ("order", "state"), ("order", "lines")]
    assert found == dict.fromkeys(names, len(items(filled)))
    assert {(row["s"], row["t"]) for row in rows(filled, sql)} == {("cart", "items")}


def test_a_failure_says_which_limit_it_was(filled: Filled) -> None:
    def cause(sql: str, limits: Limits = SMALL) -> str:
        with pytest.raises(QueryFailed) as failed:
            rows(filled, sql, limits)
        return failed.value.cause

    assert cause("selec 1") == cause("drop table x") == "query"
    assert cause("select * from range(1000000)") == "rows"
    assert cause("select repeat('x', 1000000000)") == "memory"
    assert cause("select max(a.range + b.range) from range(10000000) a, range(10000) b", Limits(200, 0.5)) == "seconds"


# Hostile ones --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [
        ("select * from read_csv('/etc/passwd')", "file system operations are disabled"),
        ("select * from '/etc/passwd'", "does not exist"),
        ("select * from read_text('/proc/self/environ')", "file system operations are disabled"),
        ("select * from glob('/etc/*')", "file system operations are disabled"),
        ("select * from read_blob('http://127.0.0.1:1/')", "file system operations are disabled"),
        ("select * from parquet_scan('s3://styx/x')", "file system operations are disabled"),
        ("copy (select 1) to 'FILE'", "only a SELECT may run, and this is COPY"),
        ("with x as (insert into cart.items values (1)) select 1", "only a SELECT may run, and this has INSERT in it"),
        ("with x as (copy (select 1) to 'FILE') select 1", "only a SELECT may run, and this has COPY in it"),
        ("attach 'FILE'", "only a SELECT may run, and this is ATTACH"),
        ("attach ':memory:' as other", "only a SELECT may run, and this is ATTACH"),
        ("set memory_limit = '100GB'", "only a SELECT may run, and this is SET"),
        ("reset memory_limit", "only a SELECT may run"),
        ("pragma memory_limit = '100GB'", "only a SELECT may run"),
        ("install httpfs", "only a SELECT may run, and this is LOAD"),
        ("load httpfs", "only a SELECT may run, and this is LOAD"),
        ("export database 'FILE'", "only a SELECT may run, and this is EXPORT"),
        ("drop table cart.items", "only a SELECT may run, and this is DROP"),
        ("insert into cart.items(product) values (1)", "only a SELECT may run, and this is INSERT"),
        ("create table x as select 1", "only a SELECT may run, and this is CREATE"),
        ("select 1; drop table cart.items", "one SELECT is expected, and these are 2 statements"),
        ("-- nothing", "one SELECT is expected, and these are 0 statements"),
        ("select getenv('HOME')", "does not exist"),
        ("select " + "(" * 5_000 + "1" + ")" * 5_000, "expression depth"),
        ("select * from cart.itms", "The tables are: account.item-sold, account.state, "),
        ("selec 1", "syntax error"),
        ("select repeat('x', 1000000000)", "needs more than 200 MiB: --memory MIB allows more"),
        ("select printf('%*d', 2000000000, 1)", "needs more than 200 MiB"),
        ("select list(i) from range(100000000) t(i)", "needs more than 200 MiB"),
        ("select repeat('x', 1000000) from range(1000)", "--memory MIB allows more"),
        ("select * from range(1000000)", "the result has more than 1000 rows: --rows N allows more"),
    ],
)
def test_hostile_queries(filled: Filled, tmp_path: Path, sql: str, complaint: str) -> None:
    with pytest.raises(QueryFailed) as failed:
        rows(filled, sql.replace("FILE", str(tmp_path / "file")))
    assert complaint in str(failed.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "with recursive r as (select 1 as n union all select n + 1 from r) select max(n) from r",
        "select count(*) from range(100000000000) a, range(1000000) b where a.range % 7 = b.range % 5",
    ],
)
def test_endless_queries(filled: Filled, sql: str) -> None:
    with pytest.raises(QueryFailed, match=r"has not ended within 0\.5 s: --seconds N allows more"):
        rows(filled, sql, Limits(memory_mib=200, seconds=0.5))


def test_an_error_behind_the_first_rows_is_told(filled: Filled) -> None:
    sql = "select case range when 900 then error('at ' || range) else 'y' end from range(1000)"
    with pytest.raises(QueryFailed, match="at 900") as failed:
        rows(filled, sql)
    assert failed.value.cause == "query"


def test_the_start_of_the_process_is_no_time_of_the_query(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.query.running.START_SECONDS_MAX", 0.0)
    with pytest.raises(QueryFailed, match="the query's process has not begun within 0 s"):
        rows(filled, "select 1", Limits(seconds=600.0))


def test_the_end_of_a_query_ends_its_process(filled: Filled) -> None:
    with Query(filled.source, filled.by_app, Asked("select * from range(1000000)"), SMALL) as query:
        _, batches = query.result()
        next(batches)
        process = query._process
        assert not process.ended
    assert process.status() == -9


def test_the_process_has_no_secrets(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYX_SECRET", "x" * 64)
    with Query(filled.source, filled.by_app, Asked("select * from range(1000000)"), SMALL) as query:
        query.result()  # it has begun, and waits for a reader of its rows
        environment = Path(f"/proc/{query._process.number}/environ").read_bytes()
    assert b"PYTHONPATH" in environment
    assert b"STYX_SECRET" not in environment


CONFINED = """
import sys
from styx.query.sql_process import confine, _limit_time
confine(2**20)
_limit_time(0)
if sys.argv[1] == "file":
    with open(sys.argv[2], "wb") as file:
        file.write(b"x")
elif sys.argv[1] == "memory":
    bytearray(2**30)
else:
    while True:
        pass
"""


@pytest.mark.parametrize(
    ("what", "told", "status"), [("file", "File too large", 1), ("memory", "MemoryError", 1), ("time", "", None)]
)
def test_the_kernel_s_limits_hold_without_duckdb_s(tmp_path: Path, what: str, told: str, status: int | None) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CONFINED, what, str(tmp_path / "file")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert told in ran.stderr
    assert ran.returncode < 0 if status is None else ran.returncode == status
