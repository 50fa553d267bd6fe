"""A cluster's snapshots in a real S3 server, looked at by the commands while the cluster runs, and after its end."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pyarrow.parquet
import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions, SteadyLoad, chaos_requests
from proof.cluster.audit import at_rest
from proof.cluster.recorded import newest_manifest, snapshot_state
from styx.query.source import of_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

RATE = 40.0
APP = "proof.chaos_app:app"


class Ran(NamedTuple):
    """What a command gave."""

    status: int
    out: str
    err: str


def test_a_cluster_s_snapshots(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    name = f"look-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path / "cluster",
        snapshot_interval_s=1.0,
    )
    asyncio.run(looked_at(ClusterUnderTest(options), tmp_path))


async def looked_at(cluster: ClusterUnderTest, directory: Path) -> None:
    rng = Random(cluster.options.name)
    async with cluster:
        await cluster.start()
        async with cluster.client() as client:
            early = await styx(cluster, "state", "list", "account")
            assert early.status == 0 or "there is no snapshot yet" in early.err
            requests = chaos_requests(rng, cluster.options.slots)
            load = SteadyLoad(client, None, dict(cluster.app.operators), requests, LoadOptions(RATE), rng)
            load.start()
            await asyncio.wait_for(asyncio.to_thread(covered, cluster, 100), PATIENCE_SECONDS)
            during = await styx(cluster, "state", "export", "--format", "json", "--out", str(directory / "during"))
            assert during.status == 0, during.err
            await load.stop()
        await asyncio.to_thread(at_rest, cluster)
    store = cluster.open_store()
    manifest = newest_manifest(store)
    assert manifest is not None
    state = snapshot_state(store, manifest)
    await exports_equal(cluster, directory, state)
    await entities_equal(cluster, state)
    assert of_cluster(store, secret=cluster.options.secret.encode()).manifest == manifest


def covered(cluster: ClusterUnderTest, epoch: int) -> None:
    """Waits for a snapshot of that epoch or a later one."""
    while (found := newest_manifest(cluster.open_store())) is None or found.epoch < epoch:
        time.sleep(0.2)


async def exports_equal(cluster: ClusterUnderTest, directory: Path, state: dict[tuple[str, Any], Any]) -> None:
    """Each dataset has as many rows as the snapshot has entries."""
    [module] = cluster.options.directory.glob("styx_app_*.py")
    for words in ((), ("--app", f"{module}:app")):
        out = directory / f"out-{len(words)}"
        ran = await styx(cluster, "state", "export", "--format", "parquet", "--out", str(out), *words)
        assert ran.status == 0, ran.err
        tables = {table for table, _ in state if table in cluster.app.operators or table in cluster.app.tables}
        assert any("/" in table for table in tables), "the load wrote rows"
        for table in tables:
            declared = cluster.app.tables.get(table)
            if declared is not None and declared.view_rule is not None:
                continue
            rows = pyarrow.parquet.read_table(out / f"{table}.parquet").num_rows
            assert rows == sum(each == table for each, _ in state)


async def entities_equal(cluster: ClusterUnderTest, state: dict[tuple[str, Any], Any]) -> None:
    for operator in ("text", "number", "pair"):
        wanted = [key for name, key in state if name == operator]
        assert wanted
        ran = await styx(cluster, "state", "list", operator, "--limit", "10000")
        listed = [msgspec.json.decode(line) for line in ran.out.splitlines()]
        query = f"select count(*) n, max(key) last from {operator}.state"
        [asked] = (await styx(cluster, "sql", query, "--format", "json")).out.splitlines()
        last = max(key[0] if operator == "pair" else key for key in wanted)
        assert msgspec.json.decode(asked) == {"n": len(wanted), "last": last}
        assert [each["key"] for each in listed] == [list(key) if operator == "pair" else key for key in sorted(wanted)]
        for each in listed[:2]:
            key = each["key"] if operator == "text" else msgspec.json.encode(each["key"]).decode()
            ran = await styx(cluster, "state", "get", operator, key, "--snapshot", "latest")
            assert (ran.status, msgspec.json.decode(ran.out)) == (0, each["value"])


async def styx(cluster: ClusterUnderTest, *words: str) -> Ran:
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
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "styx", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())
