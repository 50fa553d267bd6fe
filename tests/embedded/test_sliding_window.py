"""The guide's recipe for a sliding window over event time: a warning comes once, and goes by the clock alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator, Tumbling, at_least
from styx.testing import EmbeddedCluster, embedded_cluster

pytestmark = pytest.mark.anyio
MINUTE, WINDOW, MOST = timedelta(minutes=1), timedelta(minutes=10), 3
minutes = Tumbling("at", MINUTE)


class Failure(msgspec.Struct):
    payment: int
    at: datetime
    weight: int = 1


seller = Operator("seller")
failures: Any = seller.table("failures", Failure, key="payment")
by_minute: Any = failures.view("by_minute", group_by=minutes, sum="weight")
desk = Operator("desk")


async def judge(ctx: Context) -> None:
    oldest = minutes.start(ctx.now()) - WINDOW + minutes.width
    recent = await ctx.rows(by_minute).select(at=at_least(oldest))
    many, warned = sum(minute.weight for minute in recent) > MOST, await ctx.get(False)
    if many != warned:
        await ctx.put(many)
        ctx.after_commit(desk, hear, "desk", (ctx.key, many))
    if many:
        ctx.after(recent[0].at + WINDOW - ctx.now(), seller, judge_again, ctx.key, name="judge")


@seller.register
async def judge_again(ctx: Context) -> None:
    await judge(ctx)


@seller.register
async def failed(ctx: Context, payment: int, age: int, weight: int) -> None:
    """A failure that is told of `age` minutes late."""
    await ctx.rows(failures).put(Failure(payment, ctx.now() - age * MINUTE, weight))
    await judge(ctx)


@seller.register
async def withdrawn(ctx: Context, payment: int) -> None:
    await ctx.rows(failures).delete(payment)
    await judge(ctx)


@desk.register
async def hear(ctx: Context, who: str, warning: bool) -> None:
    await ctx.put([*await ctx.get([]), [who, warning]])


APP = App("shop", [seller, desk])


class Window:
    """A seller's failures, looked at from the middle of a minute, so that no minute ends while one looks."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.cluster.engine.now_us() / 1_000_000, UTC)

    async def advance(self, number: int) -> None:
        """So many minutes, to the first quarter of one; 0: until what is due now is done."""
        time = minutes.start(self.now()) + number * MINUTE + MINUTE / 4 - self.now()
        await self.cluster.advance(time if number else timedelta(0))

    def check(self) -> bool:
        """The warning is what the rows say; returns it."""
        oldest = minutes.start(self.now()) - WINDOW + MINUTE
        rows: list[Failure] = self.cluster.rows(failures, "ann")
        due = sum(row.weight for row in rows if row.at >= oldest) > MOST
        assert bool(self.cluster.entity(seller, "ann")) == due
        told = self.cluster.entity(desk, "desk") or []
        assert [warning for _, warning in told] == [at % 2 == 0 for at in range(len(told))], "each once, by turns"
        assert bool(told and told[-1][1]) == due
        return due


async def test_the_clock_alone_takes_a_warning_back() -> None:
    async with embedded_cluster(APP) as cluster:
        window = Window(cluster)
        await window.advance(1)
        for payment in range(4):
            await cluster.call(seller, "ann", failed, payment, 0, 1)
            await window.advance(1)
        assert window.check()
        await window.advance(5)
        assert window.check(), "all four are there"
        await window.advance(1)
        assert not window.check(), "nobody sent anything"
        assert cluster.entity(desk, "desk") == [["ann", True], ["ann", False]]
        await window.advance(60)
        assert cluster.entity(desk, "desk") == [["ann", True], ["ann", False]]


async def test_a_late_row_counts_where_its_time_says() -> None:
    async with embedded_cluster(APP) as cluster:
        window = Window(cluster)
        await window.advance(1)
        await cluster.call(seller, "ann", failed, 1, 0, 2)
        await cluster.call(seller, "ann", failed, 2, 30, 9)
        assert not window.check(), "it is told of too late to count"
        await cluster.call(seller, "ann", failed, 3, 8, 2)
        await window.advance(0)
        assert window.check()
        await window.advance(2)
        assert not window.check(), "it leaves before those that came before it"


@pytest.mark.parametrize("seed", range(4))
async def test_the_warning_is_always_what_the_rows_say(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    async with embedded_cluster(APP, data_dir=tmp_path) as cluster:
        window = Window(cluster)
        await window.advance(1)
        seen = set()
        for step in range(40):
            drawn = random.random()
            if drawn < 0.5:
                await cluster.call(
                    seller,
                    "ann",
                    failed,
                    random.randrange(12),
                    random.choice([0, 0, 1, 5, 9, 15]),
                    random.randint(1, 3),
                )
            elif drawn < 0.6:
                await cluster.call(seller, "ann", withdrawn, random.randrange(12))
            if step % 13 == 12:
                await cluster.crash_and_recover()
            await window.advance(random.choice([0, 0, 0, 1, 3]))
            seen.add(window.check())
        assert seen == {True, False}
