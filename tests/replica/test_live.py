"""`/v1/sql` of an embedded engine: each query sees a closed epoch with all that was answered before, while others
write.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from random import Random
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.gateway.app import Gateway
from styx.gateway.auth.policy import action_of
from styx.replica.live import LiveMoments, LiveSql
from tests.query.shop import app, fill

ACCOUNTS = 20
account = Operator("account", key_type=int)


@account.register
async def add(ctx: Context, amount: int) -> int:
    value: int = (await ctx.get() or 0) + amount
    await ctx.put(value)
    return value


@account.register
async def transfer(ctx: Context, other: int, amount: int) -> None:
    await ctx.put((await ctx.get() or 0) - amount)
    await ctx.call("account", "add", other, (amount,))


bank = App("bank", [account])


class Reading(msgspec.Struct):
    number: int
    exact: Decimal
    count: int


meter = Operator("meter", key_type=int)
readings = meter.table("readings", Reading, key="number")
metered = App("metered", [meter])


async def asked(sql: LiveSql, query: str) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body of a posted query."""
    body = msgspec.json.encode({"sql": query, "format": "json"})
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/sql",
        "raw_path": b"/v1/sql",
        "headers": [(b"content-type", b"application/json")],
    }
    sent: list[Any] = []
    given = iter([{"type": "http.request", "body": body}])

    async def receive() -> Any:
        for message in given:
            return message
        await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    await sql(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(each.get("body", b"") for each in sent[1:])


async def rows(sql: LiveSql, query: str) -> tuple[list[Any], int]:
    status, headers, body = await asked(sql, query)
    assert status == 200, body
    return msgspec.json.decode(body)["rows"], int(headers[b"styx-epoch"])


def test_money_is_neither_made_nor_lost_while_it_moves() -> None:
    async def run() -> None:
        async with styx.embedded(bank) as client:
            for key in range(ACCOUNTS):
                await client.call("account", key, "add", 100)
            sql = LiveSql(client.engine)
            moving = [asyncio.ensure_future(move(client, Random(seed))) for seed in range(8)]
            seen = []
            for _ in range(12):
                [row], epoch = await rows(sql, "select count(*) n, sum(value::int) money from account.state")
                assert row == {"n": ACCOUNTS, "money": 100 * ACCOUNTS}
                seen.append(epoch)
            for each in moving:
                each.cancel()
            await asyncio.wait(moving)
            assert seen == sorted(seen)
            assert len(set(seen)) > 5
            await sql.close()

    asyncio.run(run())


async def move(client: EmbeddedClient, rng: Random) -> None:
    while True:
        one, other = rng.sample(range(ACCOUNTS), 2)
        await client.call("account", one, "transfer", other, rng.randrange(10))


def test_a_query_sees_what_was_answered_before_it() -> None:
    async def run() -> None:
        async with styx.embedded(bank) as client:
            sql = LiveSql(client.engine)
            for number in range(1, 12):
                value = await client.call("account", number % 3, "add", number)
                [row], _ = await rows(sql, f"select value::int v from account.state where key = {number % 3}")
                assert row["v"] == value
            await sql.close()

    asyncio.run(run())


def test_tables_and_rows_of_an_app() -> None:
    async def run() -> None:
        async with styx.embedded(app, n_slots=5) as client:
            await fill(client)
            sql = LiveSql(client.engine)
            [row], _ = await rows(sql, "select count(*) n, sum(price) p from cart.items")
            assert row == {"n": 60, "p": "442.5"}
            found, _ = await rows(sql, "select sum(price) p from cart.by_seller")
            assert found == [{"p": "442.5"}]
            status, _, body = await asked(sql, "drop table cart.items")
            assert (status, msgspec.json.decode(body)["error"]["code"]) == (400, "bad_request")
            await sql.close()

    asyncio.run(run())


def test_a_value_that_does_not_fit_fails_only_queries_that_read_its_column() -> None:
    async def run() -> None:
        async with styx.embedded(metered) as client:
            third = Decimal(1) / 3
            await client.load_rows(readings, [(1, Reading(1, third, 5)), (1, Reading(2, Decimal(1), 2**64 - 1))])
            sql = LiveSql(client.engine)
            found, _ = await rows(sql, "select r.number n, count(*) c from meter.readings r group by n order by n")
            assert found == [{"n": 1, "c": 1}, {"n": 2, "c": 1}]
            for query, column in (
                ("select sum(exact) from meter.readings", "exact"),
                ("select COUNT from meter.readings where number = 1", "count"),
                ("select * from meter.readings where number = 3", "exact"),
                ("select r from meter.readings r", "exact"),
            ):
                status, _, body = await asked(sql, query)
                message = msgspec.json.decode(body)["error"]["message"]
                assert (status, f"column '{column}' is" in message) == (400, True), message
            await sql.close()

    asyncio.run(run())


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.query.extra.find_spec", lambda _: None)

    async def run() -> None:
        async with styx.embedded(bank) as client:
            status, _, body = await asked(LiveSql(client.engine), "select 1")
            assert status == 404
            assert "SQL lacks duckdb: pip install" in msgspec.json.decode(body)["error"]["message"]

    asyncio.run(run())


def test_an_app_with_an_operator_of_that_name_keeps_its_paths() -> None:
    async def run() -> None:
        for operator, has in ((account, True), (Operator("sql"), False)):
            async with styx.embedded(App("other", [operator])) as client:
                gateway = Gateway(client.engine, sql=LiveSql(client.engine))
                assert gateway.has_sql() is has
                scope = {"method": "POST", "path": "/v1/sql", "raw_path": b"/v1/sql"}
                action = action_of(scope, has_sql=gateway.has_sql)
                assert str(action) == ("sql query" if has else "load sql")
                assert not Gateway(client.engine).has_sql()

    asyncio.run(run())


@pytest.mark.parametrize(("answered", "closed_first"), [(0, 0), (1, 0)])
def test_it_waits_for_the_end_of_an_epoch(monkeypatch: pytest.MonkeyPatch, answered: int, closed_first: int) -> None:
    """As long as a table has what an open epoch has committed, and until all that was answered is in a closed one."""
    closed = closed_first
    monkeypatch.setattr("styx.replica.live.closed_epoch", lambda _: closed)
    monkeypatch.setattr("styx.replica.live.answered_epoch", lambda _: answered)

    async def run() -> None:
        nonlocal closed
        async with styx.embedded(bank) as client:
            await client.call("account", 1, "add", 1)
            tables = [table for slot in client.engine.worker.slots.values() for table in slot.state.tables.values()]
            for table in tables:
                table.epoch = 0 if answered else 1  # of an epoch that is open, if nobody has been answered yet
            moments = LiveMoments(client.engine)
            waiting = asyncio.ensure_future(moments.refresh())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            closed = 1
            assert await waiting is None
            assert moments.now().state.epoch == 1

    asyncio.run(run())
