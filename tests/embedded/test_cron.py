"""Crons in an embedded engine: each tick once, over crashes, failures, jumps of the clock and other versions."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Context, Operator, Retry
from styx.embedded_engine.engine import EmbeddedEngine
from styx.model.agenda import agenda_of
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


async def hourly(ctx: Context) -> None:
    await ctx.put([*await ctx.get([]), ctx.now().isoformat()])


async def failing(ctx: Context) -> None:
    raise ValueError("no")


async def settings(ctx: Context) -> None:
    if await ctx.get(None) is None:
        raise ValueError("it is not set")


async def set_it(ctx: Context) -> None:
    await ctx.put([ctx.now().isoformat()])


def app_of(
    hourly_at: str | None = "0 * * * *", failing_at: str | None = None, operators: tuple[str, ...] = ("report",)
) -> App:
    made = [Operator(name) for name in operators]
    for operator in made:
        operator.register(hourly)
        operator.register(set_it)
        if hourly_at is not None:
            operator.cron(hourly_at, key="all")(hourly)
        if failing_at is not None:
            operator.cron(failing_at, key="bad", retry=Retry(2, timedelta(seconds=10)))(failing)
    return App("cron", made)


def hours(texts: list[str]) -> list[datetime]:
    times = [datetime.fromisoformat(text) for text in texts]
    assert all(time.tzinfo == UTC and time.minute == time.second == time.microsecond == 0 for time in times)
    return times


async def test_each_tick_comes_once_and_gives_the_next() -> None:
    async with embedded_cluster(app_of()) as cluster:
        await cluster.advance(timedelta(days=1))
        times = hours(cluster.entity("report", "all"))
        assert len(times) == 24
        assert [later - sooner for sooner, later in itertools.pairwise(times)] == [HOUR] * 23


async def test_ticks_that_were_missed_are_one_and_the_time_is_the_last() -> None:
    async with embedded_cluster(app_of()) as cluster:
        await cluster.advance(HOUR)
        await cluster.engine.set_forward(int(timedelta(hours=50).total_seconds() * 1e6))
        await cluster.advance(timedelta(0))
        first, second = hours(cluster.entity("report", "all"))
        assert timedelta(hours=49) < second - first < timedelta(hours=51)
        await cluster.advance(HOUR)
        assert hours(cluster.entity("report", "all"))[2] == second + HOUR


async def test_what_fails_is_a_dead_call_and_the_next_tick_comes() -> None:
    async with embedded_cluster(app_of(None, "30 * * * *")) as cluster:
        await cluster.advance(timedelta(hours=3))
        dead = (await cluster.dead_calls("report", key="bad")).calls
        assert len(dead) == 3
        assert {(call.function, call.attempts, call.error_message) for call in dead} == {("failing", 2, "no")}
        gaps = [later.died_at - sooner.died_at for sooner, later in itertools.pairwise(dead)]
        assert all(timedelta(minutes=59) < gap < timedelta(minutes=61) for gap in gaps)
        # Tried again, it is one call, and no second cron.
        assert await cluster.replay_dead_call("report", dead[0].id)
        await cluster.advance(timedelta(minutes=5))
        assert len(agenda(cluster.engine, "report")) == 1


async def test_pauses_of_a_late_tick_begin_when_it_was_taken() -> None:
    async with embedded_cluster(app_of(None, "0 3 * * *")) as cluster:
        await cluster.advance(timedelta(days=1))
        before = len((await cluster.dead_calls("report")).calls)
        await cluster.engine.set_forward(int(timedelta(days=2, hours=6).total_seconds() * 1e6))
        assert len((await cluster.dead_calls("report")).calls) == before
        await cluster.advance(timedelta(seconds=9))
        assert len((await cluster.dead_calls("report")).calls) == before
        await cluster.advance(timedelta(seconds=2))
        assert len((await cluster.dead_calls("report")).calls) == before + 1


def agenda(engine: EmbeddedEngine, operator: str) -> list[Any]:
    return [key for name, key in engine.encoded_state() if name == agenda_of(operator)]


async def test_a_crash_takes_and_gives_no_tick(tmp_path: Path) -> None:
    async with embedded_cluster(app_of(), tmp_path, snapshot_interval=0.01) as cluster:
        for _ in range(4):
            await cluster.advance(timedelta(hours=2, minutes=30))
            await cluster.crash_and_recover()
            assert len(agenda(cluster.engine, "report")) == 1
        times = hours(cluster.entity("report", "all"))
        assert len(times) == len(set(times)) == 10


async def test_a_crash_before_the_first_snapshot(tmp_path: Path) -> None:
    async with embedded_cluster(app_of(), tmp_path, snapshot_interval=1000) as cluster:
        for _ in range(3):
            await cluster.crash_and_recover()
        await cluster.advance(HOUR)
        assert len(hours(cluster.entity("report", "all"))) == 1
        assert len(agenda(cluster.engine, "report")) == 1


async def started(app: App, directory: Path, ahead: timedelta = timedelta(0)) -> tuple[list[Any], dict[Any, Any]]:
    """(keys in the agenda, states) behind a start on this app, and so much time."""
    client = styx.embedded(app, directory)
    client.engine.ahead_us = int(ahead.total_seconds() * 1e6)
    async with client:
        await client.engine.settled(10)  # an entry that begins is gone
        await client.engine.set_forward(0)
        await client.engine.settled(10)
        return agenda(client.engine, "report"), client.state()


async def test_other_versions_change_and_remove_crons(tmp_path: Path) -> None:
    keys, _ = await started(app_of(None), tmp_path)
    assert keys == []
    keys, _ = await started(app_of("0 * * * *"), tmp_path)
    assert keys == [("all", "*hourly")]
    keys, state = await started(app_of("0 * * * *"), tmp_path, timedelta(hours=2))
    assert len(state["report", "all"]) == 1
    keys, state = await started(app_of("0 3 * * *", "0 4 * * *"), tmp_path, timedelta(hours=2))
    assert sorted(keys) == [("all", "*hourly"), ("bad", "*failing")]
    assert len(state["report", "all"]) == 1, "the old schedule's ticks are gone"
    keys, state = await started(app_of("0 3 * * *"), tmp_path, timedelta(days=3))
    assert keys == [("all", "*hourly")]
    assert len(state["report", "all"]) == 2
    keys, state = await started(app_of(None), tmp_path, timedelta(days=30))
    assert keys == []
    assert len(state["report", "all"]) == 2


async def test_an_operator_whose_only_entries_are_crons_may_go(tmp_path: Path) -> None:
    await started(app_of("0 3 * * *", operators=("report", "passing")), tmp_path)
    keys, _ = await started(app_of("0 3 * * *"), tmp_path)
    assert keys == [("all", "*hourly")]


async def test_an_operator_whose_only_entries_are_crons_may_be_spread_anew(tmp_path: Path) -> None:
    for n_partitions in (1, 3, 7):
        report = Operator("report", n_partitions=n_partitions)
        report.cron("0 3 * * *", key="all")(failing)
        keys, _ = await started(App("cron", [report]), tmp_path)
        assert keys == [("all", "*failing")]


async def test_a_cron_can_be_removed_with_its_function(tmp_path: Path) -> None:
    await started(app_of(None, "* * * * *"), tmp_path, timedelta(minutes=5))
    bare = Operator("report")
    bare.register(hourly)
    keys, _ = await started(App("cron", [bare]), tmp_path, timedelta(minutes=6))
    assert keys == [("bad", "*failing")], "it knows the last tick, and calls nothing"
    keys, _ = await started(App("cron", [bare]), tmp_path, timedelta(days=2))
    assert keys == []


async def test_a_version_that_adds_a_cron_and_a_time_to_live_begins_both(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(20)]  # each slot has some
    async with styx.embedded(app_of(None), tmp_path) as client:
        for name in names:
            await client.call("report", name, "set_it")
    mortal = Operator("report", ttl=HOUR)
    mortal.register(set_it)
    mortal.cron("0 3 * * *", key="all")(hourly)
    keys, _ = await started(App("cron", [mortal]), tmp_path)
    assert sorted(keys) == [("all", "*hourly"), *((name, "~") for name in sorted(names))]


asked: list[asyncio.Event] = []


async def somebody_else() -> None:
    asked[0].set()
    await asyncio.Event().wait()


async def asks_for_long(ctx: Context) -> None:
    await ctx.call_external(somebody_else)


@pytest.mark.parametrize("key_type", [None, int], ids=["removed", "of other keys"])
async def test_an_operator_may_go_while_the_call_of_its_cron_is_under_way(
    tmp_path: Path, key_type: type | None
) -> None:
    kept, report = Operator("kept"), Operator("report")
    kept.register(set_it)
    report.cron("0 * * * *", key="all")(asks_for_long)
    async with styx.embedded(App("cron", [kept, report]), tmp_path) as client:
        await client.engine.settled(10)
        asked[:] = [asyncio.Event()]
        await client.engine.set_forward(int(HOUR.total_seconds() * 1e6))
        await asked[0].wait()
    kept = Operator("kept")
    kept.register(set_it)
    others = [] if key_type is None else [Operator("report", key_type=key_type)]
    async with styx.embedded(App("cron", [kept, *others]), tmp_path) as client:
        await client.call("kept", "x", "set_it")
        await client.engine.settled(10)
        assert client.engine.encoded_state().keys() == {("kept", "x")}
