"""A test of an app sets the clock."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from styx import App, ConfigurationError, Context, Operator
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio
job = Operator("job", key_type=str)


@job.register
async def start(ctx: Context, times: int) -> None:
    await ctx.put([])
    ctx.after(timedelta(hours=1), job, again, ctx.key, (times,))


@job.register
async def again(ctx: Context, times: int) -> None:
    done = await ctx.get([])
    await ctx.put([*done, ctx.now().timestamp()])
    if len(done) + 1 < times:
        ctx.after(timedelta(hours=1), job, again, ctx.key, (times,))


app = App("jobs", [job])


async def test_each_call_has_its_own_time() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(job, "a", start, 24)
        await cluster.advance(timedelta(hours=12, minutes=30))
        assert len(cluster.entity(job, "a")) == 12
        await cluster.advance(timedelta(days=1))
        times = cluster.entity(job, "a")
        assert len(times) == 24
        assert {round(later - earlier) for earlier, later in pairwise(times)} == {3600}
    assert cluster.report is not None
    assert cluster.report.committed == 25


async def test_the_clock_outlives_a_crash(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        await cluster.call(job, "a", start, 2)
        await cluster.advance(timedelta(hours=1))
        await cluster.engine.flushed()
        await cluster.crash_and_recover()
        assert len(cluster.entity(job, "a")) == 1
        await cluster.advance(timedelta(hours=1))
        assert len(cluster.entity(job, "a")) == 2


@pytest.mark.parametrize("wrong", [5, timedelta(seconds=-1), None])
async def test_time_goes_forward(wrong: Any) -> None:
    async with embedded_cluster(app) as cluster:
        with pytest.raises(ConfigurationError, match="a timedelta from 0 on"):
            await cluster.advance(wrong)
