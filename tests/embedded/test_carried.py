"""A person is told of transactions that are carried again and again, and a test can be made to fail for them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from styx import App, ConfigurationError, Context, Operator
from styx.coordinator.barrier import PatchRounds
from styx.testing import CarriedTooOften, EmbeddedCluster, embedded_cluster
from tests.metrics.documented import values

pytestmark = pytest.mark.anyio
counter = Operator("counter")


@counter.register
async def hop(ctx: Context, left: int) -> int:
    """Each counter's number names the next counter: what a transaction calls depends on all that came before it."""
    number = int(await ctx.get(0)) + 1
    await ctx.put(number)
    return int(await ctx.call(counter, hop, f"c{number % 7}", (left - 1,))) if left else number


@counter.register
async def add(ctx: Context) -> None:
    await ctx.put(await ctx.get(0) + 1)


app = App("counters", [counter])


async def entangle(cluster: EmbeddedCluster) -> None:
    """With two rounds of patches, where an engine has 24 or more: nothing sensible is carried there."""
    cluster.engine.coordinator.rounds = PatchRounds(1, 1, 1)
    await asyncio.gather(*[cluster.call("counter", f"c{n % 7}", "hop", 12) for n in range(12)])


async def test_it_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "styx.carried"):
        async with embedded_cluster(app) as cluster:
            await entangle(cluster)
            again = values(cluster.engine.metrics())["styx_carried_again_total,function=counter.hop"]
            assert again > 0
    assert 0 < len(caplog.records) < again, "at most once a minute for each kind of call that changes"
    assert "was carried 3 times" in caplog.text
    assert "counter.hop on 'c" in caplog.text
    assert "calls counter.hop on 'c" in caplog.text


async def test_a_test_fails_for_it(tmp_path: Path) -> None:
    with pytest.raises(CarriedTooOften, match=r"counter.hop on 'c\d' was carried \d+ times.*carried_max is 2"):
        async with embedded_cluster(app, carried_max=2) as cluster:
            await entangle(cluster)
    async with embedded_cluster(app, tmp_path / "data", carried_max=2) as cluster:
        await entangle(cluster)
        with pytest.raises(CarriedTooOften):
            await cluster.crash_and_recover()
        cluster.crash()


async def test_contention_on_one_entity_is_no_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "styx.carried"):
        async with embedded_cluster(app, carried_max=0) as cluster:
            await asyncio.gather(*[cluster.call("counter", "a", "add") for _ in range(200)])
            assert cluster.engine.counters.carried == 0
            assert "styx_carried_again_total{" not in cluster.engine.metrics()
    assert not caplog.records


@pytest.mark.parametrize("wrong", [-1, 1.5, "2", True])
def test_what_carried_max_is(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="carried_max is a number of times"):
        embedded_cluster(app, carried_max=wrong)  # type: ignore[arg-type]
