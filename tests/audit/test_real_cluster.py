"""The audit beside a cluster of real processes, on Kafka and S3, whose workers are killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions, SteadyLoad, chaos_requests
from styx.audit.verdict import AGREED, DIFFERS, UNJUDGED, Verdict, decode_verdict
from styx.cli.facts_client import fetch
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka, RealMinio

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

INTERVALS = 4
RATE = 60.0


def under_test(app: str, kafka: RealKafka, minio: RealMinio, directory: Path) -> ClusterUnderTest:
    name = f"audit-{secrets.token_hex(4)}"
    return ClusterUnderTest(
        ClusterOptions(
            app=app,
            name=name,
            kafka=kafka.bootstrap,
            store=name,
            s3_endpoint=f"http://{minio.endpoint}",
            directory=directory / "cluster",
            snapshot_interval_s=4.0,
            workers=3,
            keep_log=False,
        )
    )


@asynccontextmanager
async def auditing(cluster: ClusterUnderTest, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`styx audit` of the cluster, as a process."""
    options = cluster.options
    [module] = options.directory.glob("styx_app_*.py")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "STYX_LOG": f"kafka://{options.kafka}",
        "STYX_STORE": f"s3://styx/{options.store}",
        "STYX_S3_ENDPOINT": options.s3_endpoint or "",
        "STYX_S3_ACCESS_KEY": options.s3_access_key,
        "STYX_S3_SECRET_KEY": options.s3_secret_key,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "styx", "audit", f"{module}:app", "--json", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
        limit=2**24,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)


async def verdicts(process: asyncio.subprocess.Process, number: int) -> list[Verdict]:
    """The next so many that were judged."""
    assert process.stdout is not None
    found: list[Verdict] = []
    while len(found) < number:
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)
        assert line, "the audit has ended"
        verdict = decode_verdict(line)
        if verdict.outcome == UNJUDGED:
            assert verdict.passing, verdict.reason
        else:
            found.append(verdict)
    return found


async def test_random_programs_agree_while_workers_are_killed(
    kafka: RealKafka, minio: RealMinio, tmp_path: Path
) -> None:
    cluster = under_test("proof.chaos_app:emitting", kafka, minio, tmp_path)
    rng = Random(cluster.options.name)
    port = free_port()
    async with cluster:
        await cluster.start()
        async with cluster.client() as client:
            requests = chaos_requests(rng, cluster.options.slots)
            load = SteadyLoad(client, None, dict(cluster.app.operators), requests, LoadOptions(RATE), rng)
            load.start()
            async with auditing(cluster, "--follow", "--http-port", str(port)) as process:
                found = await verdicts(process, 2)
                victim, cluster.workers[0] = cluster.workers[0], None
                assert victim is not None
                await victim.kill()
                await cluster.start_worker(0)
                found += await verdicts(process, INTERVALS)
                _, page = await asyncio.to_thread(fetch, f"http://127.0.0.1:{port}/metrics")
            await load.stop()
        assert [verdict.outcome for verdict in found] == [AGREED] * (2 + INTERVALS), found
        assert sum(verdict.replies for verdict in found) > 100
        assert max(verdict.recorded_workers for verdict in found) == 3
        assert {verdict.workers for verdict in found} == {2}
        assert b'styx_audit_intervals_total{outcome="differs"} 0.0' in page
        async with auditing(cluster) as process:
            [once] = await verdicts(process, 1)
            assert (once.outcome, await process.wait()) == (AGREED, 0)


async def test_a_random_number_in_the_state_is_found_within_an_interval(
    kafka: RealKafka, minio: RealMinio, tmp_path: Path
) -> None:
    cluster = under_test("proof.cluster.unsteady_app:app", kafka, minio, tmp_path)
    async with cluster:
        await cluster.start()
        async with cluster.client() as client:
            ended = asyncio.Event()

            planting = asyncio.Event()

            async def adding() -> None:
                number = 0
                while not ended.is_set():
                    number += 1
                    await client.call("ticket", f"steady {number % 40}", "add")
                    if planting.is_set() and number % 40 == 0:
                        await client.call("ticket", f"planted {number}", "hidden")

            load = asyncio.create_task(adding())
            async with auditing(cluster, "--follow") as process:
                assert [verdict.outcome for verdict in await verdicts(process, 1)] == [AGREED]
                planting.set()
                # The first one of them may be of snapshots from before.
                found = await verdicts(process, 3)
            ended.set()
            await load
    differing = [verdict for verdict in found if verdict.outcome == DIFFERS]
    assert len(differing) >= 2, found
    for verdict in differing:
        assert verdict.reply_differences == 0
        assert all(each.key.startswith("'planted ") for each in verdict.first_entries)
        assert verdict.origin is not None
        assert verdict.origin.functions == ["ticket.hidden"]
