"""Workers of two runtimes on a real cluster: never together, and neither replays what the other ran; changed behind an
orderly stop. The other runtime is one in name only, so that the test needs neither two Pythons nor a compiler.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from styx.runtime import RUNTIME
from styx.testing.cluster import ClusterOptions, ClusterUnderTest
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow

OTHER = """
import sys

from styx.cluster.worker import node

node.RUNTIME = "CPython 2.7, another form"
from styx.cli import main

sys.exit(main())
"""


async def turned_away(cluster: ClusterUnderTest, place: int) -> None:
    """Waits until the worker has been told why."""
    worker = cluster.workers[place]
    assert worker is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "turns this worker away" not in worker.log.read_text():
            worker.check()
            await asyncio.sleep(0.1)
    said = worker.log.read_text()
    assert f"this cluster runs on {RUNTIME}, and the worker on CPython 2.7, another form" in said
    assert said.count("turns this worker away") == 1


async def kill_workers(cluster: ClusterUnderTest) -> None:
    for place, worker in enumerate(cluster.workers):
        if worker is not None:
            await worker.kill()
        cluster.workers[place] = None


def test_runtimes(kafka: RealKafka, tmp_path: Path) -> None:
    name = f"runtimes-{secrets.token_hex(4)}"
    own = ClusterOptions(
        app="examples.bank:app",
        name=name,
        kafka=kafka.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path,
        workers=1,
        slots=4,
        snapshot_interval_s=600.0,
    )
    (tmp_path / "other_runtime.py").write_text(OTHER)
    other = replace(own, worker_module="other_runtime")

    async def run() -> None:
        async with ClusterUnderTest(own) as cluster:
            await cluster.start()
            async with cluster.client() as client:
                await client.call("account", "ada", "open", 100)
                cluster.options = other
                await cluster.add_worker()
                await turned_away(cluster, 1)
                await client.call("account", "ada", "credit", 1)

                await kill_workers(cluster)
                assert cluster.coordinator is not None
                await cluster.coordinator.kill()
                await cluster.start_coordinator()
                await cluster.start_worker(0)
                await turned_away(cluster, 0)
                await kill_workers(cluster)
                cluster.options = own
                await cluster.start_worker(0)
                assert await client.call("account", "ada", "credit", 1) == 102

                await cluster.coordinator.stop()
                await kill_workers(cluster)
                cluster.options = other
                await cluster.start_coordinator()
                await cluster.start_worker(0)
                assert await client.call("account", "ada", "credit", 1) == 103

    asyncio.run(run())
