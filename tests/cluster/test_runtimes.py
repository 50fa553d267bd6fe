"""Plain and compiled workers on a real cluster: never together, and neither replays what the other ran; changed behind
an orderly stop.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path

import pytest

from styx.compiled import FORM, PLAIN_VARIABLE
from styx.testing.cluster import ClusterOptions, ClusterUnderTest
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow


async def turned_away(cluster: ClusterUnderTest, place: int) -> None:
    """Waits until the worker has been told."""
    worker = cluster.workers[place]
    assert worker is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "turns this worker away" not in worker.log.read_text():
            worker.check()
            await asyncio.sleep(0.1)
    assert "form" in worker.log.read_text()


async def kill(cluster: ClusterUnderTest) -> None:
    for place, worker in enumerate(cluster.workers):
        if worker is not None:
            await worker.kill()
        cluster.workers[place] = None


def test_forms(kafka: RealKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not FORM.extensions or os.environ.get(PLAIN_VARIABLE):
        pytest.skip("there is no compiled form here")
    name = f"forms-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="examples.bank:app",
        name=name,
        kafka=kafka.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path,
        workers=1,
        slots=4,
        snapshot_interval_s=600.0,
    )

    async def run() -> None:
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:
                await client.call("account", "ada", "open", 100)
                monkeypatch.setenv(PLAIN_VARIABLE, "1")
                await cluster.add_worker()
                await turned_away(cluster, 1)
                await client.call("account", "ada", "credit", 1)

                await kill(cluster)
                assert cluster.coordinator is not None
                await cluster.coordinator.kill()
                await cluster.start_coordinator()
                await cluster.start_worker(0)
                await turned_away(cluster, 0)
                await kill(cluster)
                monkeypatch.delenv(PLAIN_VARIABLE)
                await cluster.start_worker(0)
                assert await client.call("account", "ada", "credit", 1) == 102

                await cluster.coordinator.stop()
                await kill(cluster)
                monkeypatch.setenv(PLAIN_VARIABLE, "1")
                await cluster.start_coordinator()
                await cluster.start_worker(0)
                assert await client.call("account", "ada", "credit", 1) == 103

    asyncio.run(run())
