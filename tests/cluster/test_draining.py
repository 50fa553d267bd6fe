"""`styx drain` and SIGTERM on real processes, with `--workers auto`: exit codes, probes, and nothing replayed."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP
from styx.cli.facts_client import fetch, fetch_status
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow


async def styx(cluster: ClusterUnderTest, *words: str) -> tuple[int, str]:
    """Exit code and what it said."""
    link = {"STYX_SECRET": cluster.options.secret, "STYX_COORDINATOR": f"127.0.0.1:{cluster.coordinator_port}"}
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "styx", *words],
        env={**os.environ, **link},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


async def probe(port: int, path: str = "/readyz") -> tuple[int, str]:
    status, body = await asyncio.to_thread(fetch, f"http://127.0.0.1:{port}{path}")
    return status, body.decode()


def test_drained_one_after_the_other(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    name = f"drained-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path,
        auto=True,
        silence_s=60.0,  # on a busy machine, too, nobody is taken for dead
    )

    async def run() -> None:
        async with ClusterUnderTest(options) as cluster:
            await cluster.start_coordinator()
            for place in (0, 1):
                await cluster.start_worker(place)
            await cluster.settled()
            ports = cluster.worker_http_ports
            assert [(await probe(port))[0] for port in ports] == [200, 200]
            assert "(auto)" in (await styx(cluster, "status", "--url", cluster.facts_url))[1]
            refused, why = await styx(cluster, "scale", "2")
            assert (refused, "start or stop workers instead" in why) == (1, True)

            assert await styx(cluster, "drain", "nobody") == (
                0,
                "no worker 'nobody' is registered: there is nothing to drain\n",
            )
            assert await styx(cluster, "drain", "w0") == (0, "worker 'w0' has no slots any more\n")
            status, why = await probe(ports[0])
            assert (status, "it leaves" in why) == (503, True)
            assert (await probe(ports[0], "/healthz"))[0] == 200
            members = [worker.name for worker in fetch_status(cluster.facts_url).workers if worker.member]
            assert members == ["w1"]
            assert (await styx(cluster, "drain", "w0"))[0] == 0, "again"

            first, last = cluster.workers
            assert first is not None
            assert last is not None
            cluster.workers = [None, None]
            await first.stop()
            await last.stop()
            for child in (first, last):
                assert "stopping: others have its slots" in child.log.read_text()
            assert fetch_status(cluster.facts_url).phase == "waiting"

            await cluster.start_worker(0)
            await cluster.settled()
            assert await cluster.replayed() == 0

            # Without a coordinator nobody waits: `stop` gives up long before a drain would.
            coordinator, worker = cluster.coordinator, cluster.workers[0]
            assert coordinator is not None
            assert worker is not None
            cluster.coordinator, cluster.workers[0] = None, None
            await coordinator.stop()
            assert "stopping: the snapshot is stored" in coordinator.log.read_text()
            await worker.stop()

    asyncio.run(run())
