"""What is written anew on the way to DuckDB: the list in the guide, and nothing else."""

from __future__ import annotations

import pytest

from styx.postgres.catalog import Asker
from styx.postgres.commands import Query
from styx.postgres.lexer import statements
from styx.postgres.rewriting import for_duckdb, list_parameters
from styx.postgres.settings import Settings


def written(sql: str, *, catalog: bool = True, **expressions: str) -> str:
    [tokens] = statements(sql)
    known = {int(name.removeprefix("p")): each for name, each in expressions.items()}
    return for_duckdb(sql, tokens, known, catalog=catalog)


QUOTED = "select ' pg_catalog.pg_class' /* pg_class */, \"pg_class\""


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select * from pg_catalog.pg_class c", "select * from pg_shim.pg_class c"),
        ("select PG_CLASS.relname from pg_class", "select PG_CLASS.relname from pg_shim.pg_class"),
        ("select * from information_schema.tables", "select * from pg_shim.is_tables"),
        ("select pg_catalog.format_type(1, 2)", "select format_type(1, 2)"),
        ("select a OPERATOR(pg_catalog.~) 'b'", "select a ~ 'b'"),
        ("select 'a' COLLATE pg_catalog.default, b", "select 'a' , b"),
        ("select 'a' collate \"C\"", "select 'a' "),
        ("select 'cart.items'::regclass::oid", "select pg_shim_oid_of('cart.items')::UINTEGER"),
        ("select 'x'::pg_catalog.regclass", "select pg_shim_oid_of('x')"),
        ("select a::pg_catalog.regtype::pg_catalog.text", "select a::VARCHAR::VARCHAR"),
        ("select a::\"char\", b::name, c::int2vector", "select a::VARCHAR, b::VARCHAR, c::SMALLINT[]"),
        ("select cast(a as regclass)", "select cast(a AS VARCHAR)"),
        ("select pg_catalog.json_build_object('a', 1)", "select json_object('a', 1)"),
        ("select a = any('{r,\"x y\"}')", "select a = any((CAST('[\"r\",\"x y\"]' AS JSON)::VARCHAR[]))"),
        (QUOTED, QUOTED),
        ("select x.pg_class, pg_class(1)", "select x.pg_class, pg_class(1)"),
        ("select 1 as name", "select 1 as name"),
    ],
)  # fmt: skip
def test_in_queries_about_the_catalog(sql: str, found: str) -> None:
    assert written(sql) == found


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select a::numeric, b::Decimal[]", "select a::DECIMAL(38,18), b::DECIMAL(38,18)[]"),
        ("select cast((a) as numeric), (b)", "select cast((a) as DECIMAL(38,18)), (b)"),
        ("select try_cast(f(a) AS dec)", "select try_cast(f(a) AS DECIMAL(38,18))"),
        ("select a::numeric(9,2), cast(a as decimal(9))", "select a::numeric(9,2), cast(a as decimal(9))"),
        ("select (select 1 as numeric), numeric", "select (select 1 as numeric), numeric"),
        ("select cast((select 1 as numeric) as int)", "select cast((select 1 as numeric) as int)"),
    ],
)
def test_a_cast_to_numeric_keeps_its_digits(sql: str, found: str) -> None:
    assert written(sql, catalog=False) == found


@pytest.mark.parametrize(
    "sql",
    [
        "select a collate nocase, pg_class.x from pg_class",
        "select a::name",
        "select json_build_object()",
        "select 1  -- x",
    ],
)
def test_other_queries_stay(sql: str) -> None:
    assert written(sql, catalog=False) == sql


def test_parameters_and_lists_in_every_query() -> None:
    sql = "select $1, $2 + $1, '$1', a = ANY ( $2 ), b = any('{1,NULL}')"
    assert written(sql, catalog=False, p1="CAST({} AS DATE)") == (
        "select CAST($1 AS DATE), $2 + CAST($1 AS DATE), '$1', a = ANY ( $2 ), "
        "b = any((CAST('[\"1\",null]' AS JSON)::VARCHAR[]))"
    )
    assert list_parameters(statements(sql)[0]) == {2}


def test_only_queries_about_the_catalog_get_the_shim_and_only_what_they_name() -> None:
    def asked(sql: str):  # type: ignore[no-untyped-def]
        return Asker("a'n", "shop", 1, Settings("a'n")).asked(Query(sql, statements(sql)[0]), {}, ())

    assert asked("select * from cart.items where name = 'pg_class'").prelude == ()
    about = asked("select * from pg_catalog.pg_roles")
    assert about.catalog
    assert sum("pg_shim.pg_roles" in each for each in about.prelude) == 1
    assert not any("pg_shim.pg_class" in each for each in about.prelude)
    assert "CREATE MACRO current_user() AS 'a''n'" in about.prelude
