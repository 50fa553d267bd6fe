"""A replica beside a real cluster on Kafka and MinIO: it follows while the cluster works, and ends with its state."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions, SteadyLoad, chaos_requests
from proof.cluster.audit import at_rest
from proof.cluster.recorded import newest_manifest, snapshot_state
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

RATE = 40.0
EPOCHS = 5


def test_a_replica_of_a_cluster(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    name = f"replica-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="proof.chaos_app:app",
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path / "cluster",
        snapshot_interval_s=1.0,
    )
    asyncio.run(asked(ClusterUnderTest(options)))


async def asked(cluster: ClusterUnderTest) -> None:
    rng = Random(cluster.options.name)
    async with cluster:
        await cluster.start()
        async with replica(cluster) as url, aiohttp.ClientSession() as session:
            async with cluster.client() as client:
                requests = chaos_requests(rng, cluster.options.slots)
                load = SteadyLoad(client, None, dict(cluster.app.operators), requests, LoadOptions(RATE), rng)
                load.start()
                epochs = await followed(session, url)
                assert epochs == sorted(epochs)
                await load.stop()
            await asyncio.to_thread(at_rest, cluster)
            store = cluster.open_store()
            manifest = newest_manifest(store)
            assert manifest is not None
            await until(session, url, manifest.epoch)
            state = snapshot_state(store, manifest)
            for operator in ("text", "number", "pair"):
                wanted: list[Any] = [key for name, key in state if name == operator]
                assert wanted
                [row], epoch = await rows(session, url, f"select count(*) n, max(key) last from {operator}.state")
                assert (row["n"], epoch) == (len(wanted), manifest.epoch)
                assert row["last"] == max(key[0] if operator == "pair" else key for key in wanted)
            tables = {name for name, _ in state if name in cluster.app.tables and "<" not in name}
            assert tables
            for name in tables:
                operator, own = name.split("/")
                [row], _ = await rows(session, url, f'select count(*) n from "{operator}"."{own}"')
                assert row["n"] == sum(each == name for each, _ in state)


async def followed(session: aiohttp.ClientSession, url: str) -> list[int]:
    """The epochs of queries, until there were `EPOCHS` different ones; each query sees one of them alone."""
    found: list[int] = []
    same = "select (select count(*) from text.state) a, (select count(*) from text.state where true) b"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(set(found)) < EPOCHS:
            async with session.post(f"{url}/v1/sql", json={"sql": same}) as response:
                if response.status == 200:
                    row = await response.json(content_type=None)
                    assert row["a"] == row["b"]
                    found.append(int(response.headers["styx-epoch"]))
                else:
                    assert response.status == 503, await response.text()
            await asyncio.sleep(0.2)
    return found


async def until(session: aiohttp.ClientSession, url: str, epoch: int) -> None:
    """Waits until the replica is at that epoch."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            async with session.get(f"{url}/status") as response:
                if (await response.json()).get("epoch") == epoch:
                    return
            await asyncio.sleep(0.2)


async def rows(session: aiohttp.ClientSession, url: str, sql: str) -> tuple[list[Any], int]:
    async with session.post(f"{url}/v1/sql", json={"sql": sql, "format": "json"}) as response:
        assert response.status == 200, await response.text()
        told = await response.json()
        return told["rows"], told["epoch"]


@asynccontextmanager
async def replica(cluster: ClusterUnderTest) -> AsyncIterator[str]:
    """The URL of a replica of the cluster's store, in a process of its own."""
    options = cluster.options
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "STYX_STORE": f"s3://styx/{options.store}",
        "STYX_S3_ENDPOINT": options.s3_endpoint or "",
        "STYX_S3_ACCESS_KEY": options.s3_access_key,
        "STYX_S3_SECRET_KEY": options.s3_secret_key,
        "STYX_SECRET": options.secret,
    }
    log = cluster.options.directory.parent / "replica.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "styx", "replica", "--port", "0"), stderr=file, env=environment
        )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := re.search(r"listening at (\S+)", log.read_text())) is None:
            assert time.monotonic() < deadline, log.read_text()
            await asyncio.sleep(0.1)
        yield found[1]
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE_SECONDS) == 0, log.read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
