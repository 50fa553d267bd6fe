"""A real cluster whose processes are killed: each tick comes once, and dead calls are found through Kafka and HTTP."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.cron_app import PLACES
from styx.client.http import HttpClient
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow


def test_ticks_and_dead_calls_outlive_processes(kafka: RealKafka, tmp_path: Path) -> None:
    async def main() -> None:
        options = ClusterOptions(
            app="proof.cluster.cron_app:app",
            name=f"cron-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path,
        )
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client, HttpClient(cluster.http_url) as http:
                for place in range(options.workers):
                    await asyncio.sleep(1.5)
                    await cluster.replace_worker(place)
                await cluster.replace_coordinator()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while len((await client.dead_calls("clock", timeout=PATIENCE_SECONDS)).calls) < 3:  # noqa: ASYNC110
                        await asyncio.sleep(0.2)
                for place in range(PLACES):
                    ticks = await http.entity("clock", place, timeout=PATIENCE_SECONDS)
                    assert len(ticks) >= 3
                    assert ticks == sorted(set(ticks))
                    assert all(tick == round(tick) for tick in ticks)

                await client.call("clock", 100, "help_it", timeout=PATIENCE_SECONDS)
                await asyncio.sleep(0.5)  # one that has failed may still be put off
                dead = (await client.dead_calls("clock")).calls
                assert (await http.dead_calls("clock")).calls == dead
                assert {call.giver for call in dead} == {100}
                assert await http.replay_dead_call("clock", dead[0].id) is True
                assert await client.replay_dead_call("clock", dead[1].id) is True
                assert await client.drop_dead_call("clock", dead[1].id) is False
                for call in dead[2:]:
                    assert await http.drop_dead_call("clock", call.id) is True
                await asyncio.sleep(0.5)
                assert (await http.dead_calls("clock", key=100)).calls == []

    asyncio.run(main())
