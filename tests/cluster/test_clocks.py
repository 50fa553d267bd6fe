"""A real cluster whose workers' clocks are set forward and back: calls for later are made once, and never too early."""

from __future__ import annotations

import asyncio
import secrets
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.skewed_worker import LOOK_SECONDS, MODULE, set_clocks
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
GIVERS, EACH = 8, 5
HOUR = timedelta(hours=1)
IDLE_SECONDS = 5 * LOOK_SECONDS
HALF_AN_HOUR_MS = 1_800_000


def epochs(cluster: ClusterUnderTest) -> float:
    """Epochs that the coordinator has begun, by its metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.facts_port}/metrics", timeout=PATIENCE_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("styx_epochs_total ")))


def test_clocks_that_are_set_forward_and_back(kafka: RealKafka, tmp_path: Path) -> None:
    async def main() -> None:
        options = ClusterOptions(
            app="proof.cluster.later_app:app",
            name=f"clocks-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path,
            worker_module=MODULE,
        )
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:

                async def give(first: int, delay_ms: int) -> None:
                    for who in range(GIVERS):
                        await client.call("giver", who, "give", first, EACH, who, delay_ms, timeout=PATIENCE_SECONDS)

                async def lines(who: int) -> list[list[int]]:
                    found: list[list[int]] = await client.call("book", who, "lines", timeout=PATIENCE_SECONDS)
                    return found

                async def written(count: int) -> None:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        for who in range(GIVERS):
                            while len(await lines(who)) < count:  # noqa: ASYNC110
                                await asyncio.sleep(0.1)
                    await check(lambda number: number == count)

                async def check(right: Callable[[int], bool]) -> None:
                    for who in range(GIVERS):
                        found = await lines(who)
                        assert right(len(found))
                        assert len({number for _, number, _ in found}) == len(found), "none was made twice"
                        assert min([late_us for _, _, late_us in found], default=0) >= 0, "none was made too early"

                # An hour in which nothing is due: no epoch.
                await give(0, HALF_AN_HOUR_MS)
                await asyncio.sleep(2.0)
                before = await asyncio.to_thread(epochs, cluster)
                await asyncio.sleep(IDLE_SECONDS)
                assert await asyncio.to_thread(epochs, cluster) == before
                await check(lambda number: number == 0)

                # Forward: what is due by then is made when the workers look at their clocks.
                set_clocks(tmp_path, HOUR)
                await written(EACH)

                # Back: what is given is due when the engine's time is there, which does not go back.
                set_clocks(tmp_path, -HOUR)
                await give(EACH, 0)
                await written(2 * EACH)

                # Processes that begin with a clock that is an hour behind wait until it is there again.
                await give(2 * EACH, 2 * HALF_AN_HOUR_MS)
                for place in range(options.workers):
                    await cluster.replace_worker(place)
                await asyncio.sleep(3.0)
                await check(lambda number: number == 2 * EACH)
                set_clocks(tmp_path, 2 * HOUR)
                await written(3 * EACH)

    asyncio.run(main())
