"""Values and rows that live for a time, in an embedded engine, whose history is checked."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Context, Index, Operator, PartitionContext, Ref
from styx.client.embedded import EmbeddedClient
from styx.model.agenda import AGENDA_SUFFIX, due_of
from styx.testing import EmbeddedCluster, embedded_cluster

pytestmark = pytest.mark.anyio
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


class Visit(msgspec.Struct):
    """A row."""

    page: str
    user: str = "ada"
    hits: int = 1


class Note(msgspec.Struct):
    """A row of another entity that refers to a session."""

    id: int
    session: tuple[int, str] | None = None
    tenant: int | None = None
    name: str | None = None


def site(ttl: timedelta | None = HOUR, rows_ttl: Any = MINUTE, restricts: bool = True) -> App:
    """Sessions with composite keys, their visits in an index over all, and notes elsewhere that refer to them."""
    session = Operator("session", key_type=(int, str), ttl=ttl)
    visits = session.table(
        "visits",
        Visit,
        key="page",
        indexes=[Index("by_user", equal="user", scope="app"), Index("here", equal="user", scope="partition")],
        ttl=rows_ttl,
    )
    per_user = visits.view("per_user", group_by="user", sum="hits", scope="app")
    diary = Operator("diary")
    notes = diary.table("notes", Note, key="id", references=[Ref(("tenant", "name"), session)] if restricts else [])

    @session.register
    async def log_in(ctx: Context, value: Any = "in") -> None:
        await ctx.put(value)

    @session.register
    async def log_out(ctx: Context) -> None:
        await ctx.delete()

    @session.register
    async def visit(ctx: Context, page: str, seconds: int | None = None) -> None:
        await ctx.rows(visits).put(Visit(page), ttl=None if seconds is None else timedelta(seconds=seconds))

    @session.register
    async def again(ctx: Context, page: str) -> None:
        if await ctx.rows(visits).get(page) is not None:
            await ctx.rows(visits).update(page, hits=2)

    @session.register
    async def leave(ctx: Context, page: str) -> None:
        await ctx.rows(visits).delete(page)

    @session.register
    async def look(ctx: Context) -> Any:
        pages = [row.page for row in await ctx.rows(visits).select(scan=True)]
        group: Any = await ctx.group(per_user, "ada")
        return [await ctx.get(), pages, len(await ctx.find(visits, "by_user", user="ada")), group.count]

    @session.register_partition
    async def touch(ctx: PartitionContext) -> int:
        found = await ctx.rows(visits).select(user="ada")
        for key, row in found:
            await ctx.rows(visits, of=key).put(row)
        return len(found)

    @session.register
    async def touch_all(ctx: Context) -> int:
        return sum(await ctx.call_all(session, touch))

    @diary.register
    async def note(ctx: Context, number: int, tenant: int | None, name: str | None) -> None:
        await ctx.rows(notes).put(Note(number, None, tenant, name))

    return App("site", [session, diary])


A, B = (1, "a"), (2, "b")


async def look(cluster: EmbeddedCluster, key: Any = A) -> Any:
    return await cluster.call("session", key, "look")


async def test_values_and_rows_end_with_their_entries_elsewhere() -> None:
    async with embedded_cluster(site()) as cluster:
        await cluster.call("session", A, "log_in")
        await cluster.call("session", A, "visit", "home")
        await cluster.call("session", B, "visit", "home", 3600)
        assert await look(cluster) == ["in", ["home"], 2, 2]
        await cluster.advance(MINUTE)
        assert await look(cluster) == ["in", [], 1, 1]
        assert await look(cluster, B) == [None, ["home"], 1, 1]
        await cluster.advance(HOUR)
        assert await look(cluster) == [None, [], 0, 0]
        assert cluster.engine.worker.given_for_later == 0


async def test_partition_functions_begin_lives_anew() -> None:
    async with embedded_cluster(site()) as cluster:
        for key in (A, B):
            await cluster.call("session", key, "visit", "home")
        await cluster.advance(MINUTE / 2)
        assert await cluster.call("session", A, "touch_all") == 2
        await cluster.advance(MINUTE * 0.75)
        assert (await look(cluster))[2] == 2
        await cluster.advance(MINUTE / 2)
        assert (await look(cluster))[2] == 0


async def test_an_engine_that_loses_power_ends_lives_in_time(tmp_path: Path) -> None:
    async with embedded_cluster(site(), tmp_path) as cluster:
        await cluster.call("session", A, "log_in")
        await cluster.call("session", A, "visit", "home")
        await cluster.crash_and_recover()
        assert await look(cluster) == ["in", ["home"], 1, 1]
        await cluster.advance(MINUTE)
        await cluster.crash_and_recover()
        assert await look(cluster) == ["in", [], 0, 0]
        await cluster.advance(HOUR)
        await cluster.crash_and_recover()
        assert await look(cluster) == [None, [], 0, 0]


async def test_a_session_that_others_refer_to_stays_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "styx.functions"):
        async with embedded_cluster(site()) as cluster:
            await cluster.call("session", A, "log_in")
            await cluster.call("diary", "d", "note", 1, *A)
            await cluster.advance(HOUR)
            assert (await look(cluster))[0] == "in"
            assert cluster.engine.reports.dead_calls.by_function["session.<expire>"] >= 1
            [text] = [record.getMessage() for record in caplog.records if "ttl=" in record.getMessage()]
            assert text.startswith(
                "what session[(1, 'a')] has kept for its ttl= could not be deleted: ReferenceViolation: "
            )
            assert text.endswith(". It stays, and this is tried again")
            await cluster.call("diary", "d", "note", 1, None, None)
            await cluster.advance(HOUR)
            assert (await look(cluster))[0] is None


async def test_loaded_values_and_rows_live_as_those_that_are_put() -> None:
    async with embedded_cluster(site()) as cluster:
        await cluster.load("session", [((n, "x"), "in") for n in range(300)])
        await cluster.load_rows("session/visits", [((n, "x"), Visit("home")) for n in range(300)])
        assert cluster.engine.worker.given_for_later == 600
        await cluster.advance(MINUTE)
        assert cluster.engine.worker.given_for_later == 300
        await cluster.advance(HOUR)
        assert cluster.engine.worker.given_for_later == 0
        assert await look(cluster, (7, "x")) == [None, [], 0, 0]


async def test_writing_one_entity_a_thousand_times_keeps_one_entry() -> None:
    async with embedded_cluster(site()) as cluster:
        for _ in range(20):
            await asyncio.gather(*[cluster.call("session", A, "log_in") for _ in range(50)])
            assert cluster.engine.worker.given_for_later == 1


@pytest.mark.parametrize("seed", range(4))
async def test_random_requests_and_times(seed: int) -> None:
    rng = Random(seed)

    async def one(cluster: EmbeddedCluster) -> None:
        key, page = (rng.randrange(3), rng.choice("xy")), rng.choice(["home", "help"])
        requests: list[tuple[str, list[Any]]] = [
            ("log_in", [rng.random()]),
            ("log_out", []),
            ("visit", [page]),
            ("visit", [page, rng.randrange(1, 9)]),
            ("again", [page]),
            ("leave", [page]),
            ("touch_all", []),
            ("look", []),
        ]
        name, arguments = rng.choice(requests)
        if rng.random() < 0.1:
            await cluster.request("diary", "d", "note", rng.randrange(3), *rng.choice([key, (None, None)]))
        await cluster.request("session", key, name, *arguments)

    async with embedded_cluster(site(), n_slots=4) as cluster:
        for _ in range(12):
            await asyncio.gather(*[one(cluster) for _ in range(20)])
            await cluster.advance(timedelta(seconds=rng.choice([0.5, 2, 20, 100, 1800])))
        for number in range(3):
            await cluster.call("diary", "d", "note", number, None, None)
        await cluster.advance(3 * HOUR)
        assert cluster.engine.worker.given_for_later == 0
        assert await look(cluster) == [None, [], 0, 0]


# Versions of the app ---------------------------------------------------------------------------------------


async def test_a_version_that_is_deployed_gives_what_was_there_its_time(tmp_path: Path) -> None:
    async with styx.embedded(site(None, None), tmp_path) as client:
        await client.call("session", A, "log_in")
        await client.call("session", A, "visit", "home")
        assert client.engine.worker.given_for_later == 0
    async with styx.embedded(site(), tmp_path) as client:
        await advance(client, timedelta(seconds=1))
        assert client.engine.worker.given_for_later == 2
        await advance(client, MINUTE - timedelta(seconds=20))
        assert await client.call("session", A, "look") == ["in", ["home"], 1, 1]
        await advance(client, MINUTE)
        assert await client.call("session", A, "look") == ["in", [], 0, 0]
    async with styx.embedded(site(None, None), tmp_path) as client:
        assert client.engine.worker.given_for_later == 0
        assert await client.call("session", A, "look") == ["in", [], 0, 0]


async def advance(client: EmbeddedClient, by: timedelta) -> None:
    await client.engine.set_forward(by // timedelta(microseconds=1))
    assert await client.engine.settled(60)


async def test_metrics_say_how_late_calls_are() -> None:
    async with embedded_cluster(site()) as cluster:
        await cluster.call("session", A, "log_in")
        now_us = cluster.engine.now_us()
        deliveries = cluster.engine.worker.deliveries
        assert deliveries.overdue_us(now_us) == 0
        assert deliveries.overdue_us(now_us + 3_601_000_000) in range(1_000_000, 2_000_000)
        assert "styx_later_overdue_seconds 0" in cluster.engine.metrics()


async def test_no_call_for_later_of_the_transaction_has_the_id_of_an_end() -> None:
    """The place of a statement in the serial order can be, byte by byte, the call path of another function."""
    thing, caller = Operator("thing", ttl=HOUR), Operator("caller")

    @thing.register
    async def make(ctx: Context) -> None:
        await ctx.put(1)

    @thing.register
    async def look(ctx: Context) -> Any:
        return await ctx.get()

    @caller.register
    async def first(ctx: Context) -> None:
        ctx.after_commit(thing, look, "x")
        await ctx.call(caller, second, "b")

    @caller.register
    async def second(ctx: Context) -> None:
        await ctx.call(thing, look, "x")
        await ctx.call(caller, third, "c")

    @caller.register
    async def third(ctx: Context) -> None:
        await ctx.call(thing, make, "d")

    async with embedded_cluster(App("ids", [thing, caller]), n_slots=1) as cluster:
        await cluster.call("caller", "a", "first")
        entries = [data for (table, _), data in cluster.engine.encoded_state().items() if table.endswith(AGENDA_SUFFIX)]
        assert len({due_of(data)[1] for data in entries}) == len(entries)
        await cluster.advance(2 * HOUR)
        assert cluster.entity("thing", "d") is None
