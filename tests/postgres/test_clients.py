"""Real clients against a server over a snapshot: psql, asyncpg, psycopg, SQLAlchemy and pgcli."""

from __future__ import annotations

import asyncio
import datetime
import os
import shutil
import subprocess
import sys
import time
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from tests.postgres.conftest import Served
from tests.postgres.serving import PASSWORD
from tests.query.conftest import Filled

pytestmark = pytest.mark.slow
PSQL = shutil.which("psql")
ENDLESS = "select max(a.range + b.range) from range(10000000) a, range(1000000) b"


def psql(served: Served, *commands: str, options: tuple[str, ...] = ()) -> str:
    if PSQL is None:
        pytest.skip("psql is not installed")
    words = [each for command in commands for each in ("-c", command)]
    ran = subprocess.run(
        [
            PSQL,
            "-X",
            "-A",
            "-t",
            *options,
            "-h",
            "127.0.0.1",
            "-p",
            str(served.port),
            "-U",
            "ann",
            "-d",
            "shop",
            *words,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8"},
    )
    return ran.stdout + ran.stderr


def test_psql_asks(served: Served, filled: Filled) -> None:
    told = psql(served, "select count(*) from cart.items; select 'ä', null, 1.5", "insert into t values (1)")
    count = sum(table == "cart/items" for table, _ in filled.told.state)
    assert told.split("\n") == [
        str(count),
        "ä||1.5",
        "ERROR:  cannot execute INSERT in a read-only transaction: this server is read-only",
        "",
    ]


TABLES = ["cart|by_seller|table|ann", "cart|here|table|ann", "cart|items|table|ann", "cart|state|table|ann"]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("\\d", TABLES),
        ("\\dt", TABLES),
        ("\\dt cart.*", TABLES),
        ("\\dn", ["account|ann", "cart|ann", "counter|ann", "order|ann", "public|ann"]),
        ("\\l", ["shop|ann|UTF8|C|C||libc|"]),
        (
            "\\d cart.items",
            ["product|bigint||not null|", "price|numeric|||", "at|timestamp with time zone|||", "tags|json|||"],
        ),
        ("\\d+ cart.items", ["key|text||not null||extended|||"]),
        ("\\dv", []),
        ("\\df", []),
        ("\\di", []),
        ("\\du", ["ann||{}"]),
        ("\\dp", ["cart|items|table|||"]),
        ("\\dT", []),
        ("\\dx", []),
        ("\\dn+", ["cart|ann||"]),
    ],
)
def test_psql_describes(served: Served, command: str, lines: list[str]) -> None:
    told = psql(served, command)
    assert "ERROR" not in told
    assert set(lines) <= set(told.splitlines())
    assert "pg_shim" not in told


def test_psql_completes_names(served: Served) -> None:
    """What psql 15 asks for `select * from cart.i<tab>`."""
    name = "pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)"
    told = psql(
        served,
        f"SELECT {name} "
        "FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE c.relnamespace = n.oid AND c.relkind IN "
        f"('r', 'S', 'v', 'm', 'f', 'p') AND substring({name},1,6)='cart.i' ORDER BY 1",
    )
    assert told.splitlines() == ["cart.items"]


async def asyncpg_connected(served: Served, **options: Any) -> asyncpg.Connection:
    return await asyncpg.connect(
        host="127.0.0.1", port=served.port, user="ann", password=PASSWORD, database="shop", **options
    )


def test_asyncpg(served: Served) -> None:
    async def run() -> None:
        connection = await asyncpg_connected(served)
        row = await connection.fetchrow(
            "select true a, 2::bigint b, 1.25::decimal(9,3) c, 'ä' d, date '2026-01-02' e, [1, null] f, ['x', null] g, "
            "timestamptz '2026-01-01 10:00:00+00' h, '00000000-0000-0000-0000-000000000005'::uuid i, 'a'::blob j, "
            "'[1]'::json k, sum(5) l, null m"
        )
        assert [str(each) if at == 8 else each for at, each in enumerate(row.values())] == [
            *(True, 2, Decimal("1.25"), "ä", datetime.date(2026, 1, 2), [1, None], ["x", None]),
            *(datetime.datetime(2026, 1, 1, 10, tzinfo=datetime.UTC), "00000000-0000-0000-0000-000000000005"),
            *(b"a", "[1]", Decimal(5), None),
        ]
        found = await connection.fetch(
            'select product from cart.items where product = any($1) and price > $2 and seller <> $3 and "at" > $4 '
            "order by 1 limit $5",
            *([2, 4, 5, 8], Decimal("0.75"), "nobody", datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), 2),
        )
        assert [each["product"] for each in found] == [4, 5]
        statement = await connection.prepare("select product, price from cart.items where product = $1")
        assert [each.name for each in statement.get_parameters()] == ["int8"]
        assert [each.type.name for each in statement.get_attributes()] == ["int8", "numeric"]
        async with connection.transaction():
            cursor = connection.cursor("select * from range(1900) t(i)", prefetch=100)
            assert [each["i"] async for each in cursor] == list(range(1_900))
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await connection.execute("delete from cart.items")
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.fetch("select * from nix")
        with pytest.raises(asyncpg.ProgramLimitExceededError, match="more than 2000 rows"):
            await connection.fetch("select * from range(5000)")
        await connection.reset()
        assert await connection.fetchval("show styx.epoch") == await connection.fetchval(
            "select current_setting('styx.epoch')"
        )
        await connection.close()

    asyncio.run(run())


def test_cancel_ends_the_query_and_not_the_connection(served: Served) -> None:
    async def run() -> None:
        connection = await asyncpg_connected(served)
        with pytest.raises(TimeoutError):  # asyncpg cancels on the server, and waits for it
            await connection.fetch(ENDLESS, timeout=2)
        assert await connection.fetchval("select 5") == 5
        await connection.execute("set statement_timeout = '300ms'")
        with pytest.raises(asyncpg.QueryCanceledError, match=r"not ended within 0\.3 s"):
            await connection.fetch(ENDLESS)
        await connection.close()

    asyncio.run(run())


def test_psycopg(served: Served) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(served.dsn) as connection:
        for binary in (False, True):
            row = connection.execute(
                'select product, price, day, "at", tags, raw from cart.items where product = %s and seller <> %s',
                (5, "nobody"),
                binary=binary,
            ).fetchone()
            assert (row[0], row[1], row[4], row[5]) == (5, Decimal("1.25"), ["a", "b,c"], b"\5")
        with connection.transaction(), connection.cursor(name="named") as cursor:
            cursor.itersize = 300
            assert [i for (i,) in cursor.execute("select * from range(%s)", (1_000,))] == list(range(1_000))
        with connection.pipeline():
            cursors = [connection.execute("select %s::int", (each,)) for each in range(3)]
            assert [each.fetchone() for each in cursors] == [(0,), (1,), (2,)]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("create table x(a int)")


def reflected(connection: Any) -> None:
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    assert {"account", "cart", "counter", "order"} <= set(inspector.get_schema_names())
    assert {"items", "state", "by_seller"} <= set(inspector.get_table_names(schema="cart"))
    columns = {each["name"]: str(each["type"]) for each in inspector.get_columns("items", schema="cart")}
    assert (columns["product"], columns["price"], columns["tags"]) == ("BIGINT", "NUMERIC", "JSON")
    for name, key in (("items", ["key", "product"]), ("state", ["key"])):
        found = inspector.get_pk_constraint(name, schema="cart")
        assert (found["constrained_columns"], found["name"]) == (key, f"{name}_pkey")
    assert inspector.get_foreign_keys("items", schema="cart") == []
    assert inspector.get_indexes("items", schema="cart") == []
    assert inspector.has_table("items", schema="cart")
    assert not inspector.has_table("nix", schema="cart")
    table = sa.Table("items", sa.MetaData(), schema="cart", autoload_with=connection)
    assert [each.name for each in table.primary_key] == ["key", "product"]
    query = sa.select(table.c.product, table.c.price).where(table.c.product.in_([4, 5])).order_by(table.c.product)
    assert connection.execute(query).all() == [(4, Decimal(1)), (5, Decimal("1.25"))]


def test_sqlalchemy(served: Served) -> None:
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    engine = sa.create_engine(served.url("psycopg"))
    with engine.connect() as connection:
        reflected(connection)
    engine.dispose()


def test_sqlalchemy_with_asyncpg(served: Served) -> None:
    pytest.importorskip("sqlalchemy")
    from sqlalchemy.ext.asyncio import create_async_engine

    async def run() -> None:
        engine = create_async_engine(served.url("asyncpg"))
        async with engine.connect() as connection:
            await connection.run_sync(reflected)
        await engine.dispose()

    asyncio.run(run())


def test_pgcli(served: Served) -> None:
    pytest.importorskip("pgcli")
    script = (
        "from pgcli.pgexecute import PGExecute\nfrom pgspecial.main import PGSpecial\n"
        f"e = PGExecute('shop', 'ann', {PASSWORD!r}, '127.0.0.1', {served.port})\n"
        "print(sorted(e.schemata())); print(('cart', 'items') in list(e.tables()))\n"
        "print([c[2] for c in e.table_columns() if c[:2] == ('cart', 'items')][:3])\n"
        "print(list(e.views()), list(e.foreignkeys()), list(e.databases()))\n"
        "print(list(e.functions()), list(e.datatypes()))\n"
        "print([list(r[1]) for r in e.run('select product from cart.items where product = 5') if r[1]])\n"
        "print([list(r[1]) for r in e.run('\\\\dt cart.items', pgspecial=PGSpecial()) if r[1]])\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert ran.stdout.splitlines() == [
        "['account', 'cart', 'counter', 'information_schema', 'order', 'pg_catalog', 'public']",
        "True",
        "['key', 'product', 'seller']",
        "[] [] ['shop']",
        "[] []",
        "[[(5,)]]",
        "[[('cart', 'items', 'table', 'ann')]]",
    ], ran.stderr


def test_a_client_that_leaves_ends_its_query(served: Served) -> None:
    if PSQL is None or not os.path.isdir("/proc"):
        pytest.skip("psql or /proc is not there")
    words = [PSQL, "-X", served.dsn, "-c", ENDLESS]
    client = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _until(lambda: _queries(served) == 1)
    client.kill()
    client.wait()
    _until(lambda: _queries(served) == 0)


def _queries(served: Served) -> int:
    """Processes of queries of the server under test."""
    ran = subprocess.run(["ps", "--ppid", str(served.pid), "-o", "args"], capture_output=True, text=True, check=False)
    return sum("styx.query.sql_process" in each for each in ran.stdout.splitlines())


def _until(true: Any) -> None:
    ends = time.monotonic() + 60
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.1)
