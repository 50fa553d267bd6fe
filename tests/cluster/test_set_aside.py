"""A real cluster that one request holds up in C code, for good: the log says what to type, and that works."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.blocking import APP
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow


async def styx(cluster: ClusterUnderTest, words: str) -> tuple[int, str]:
    """Exit code and what it said."""
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "styx", *words.split()],
        env={**os.environ, "STYX_SECRET": cluster.options.secret},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


async def named(cluster: ClusterUnderTest) -> tuple[int, str]:
    """Which worker is held up, and the command that its log gives."""
    while True:
        for place, worker in enumerate(cluster.workers):
            assert worker is not None
            found = re.search(r"`styx (set-aside [^`]*)`", await asyncio.to_thread(worker.log.read_text))
            if found is not None:
                return place, found[1]
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_a_cluster_that_one_request_holds_up(kafka: RealKafka, tmp_path: Path, stopped: bool) -> None:
    async def main() -> None:
        options = ClusterOptions(
            app=APP,
            name=f"aside-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path,
            function_seconds_max=0.5,
        )
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:
                assert await client.call("counter", "a", "add", timeout=PATIENCE_SECONDS) == 1
                stuck = asyncio.ensure_future(
                    client.submit("counter", "a", "block", 100_000.0, timeout=PATIENCE_SECONDS)
                )
                held, command = await named(cluster)
                place = command.split()[1]
                behind = asyncio.ensure_future(client.call("counter", "b", "add", timeout=PATIENCE_SECONDS))
                beside = f" --store {options.store} --log {cluster.url}"
                if stopped:
                    for child in (*cluster.workers, cluster.coordinator):
                        assert child is not None
                        await child.kill()
                    command = command.split(" --")[0] + beside
                status, said = await styx(cluster, f"{command} --dry-run")
                assert (status, "block on 'a', would be set aside" in said) == (0, True), said
                status, said = await styx(cluster, command)
                assert (status, "block on 'a', is set aside" in said) == (0, True), said
                assert stopped or f"The others go on without w{held}" in said
                if stopped:
                    await cluster.start_coordinator()
                    for number in range(options.workers):
                        await cluster.start_worker(number)
                reply = await stuck
                assert reply.error is not None
                assert reply.error.type == "RequestSetAside"
                assert await behind == 1
                assert await client.call("counter", "a", "add", timeout=PATIENCE_SECONDS) == 2
                status, said = await styx(cluster, f"set-aside {place}{beside}")
                assert (status, "is set aside already" in said) == (2, True), said
                online = f"--coordinator 127.0.0.1:{cluster.coordinator_port}"
                assert await styx(cluster, f"set-aside {online}") == (0, f"{place}\n")
                slot = place.partition(":")[0]
                status, said = await styx(cluster, f"set-aside {slot}:9999 {online}")
                assert (status, f"there is no request {slot}:9999" in said) == (2, True), said
                worker = cluster.workers[held]
                assert worker is not None
                if not stopped:
                    os.kill(worker.pid, signal.SIGTERM)
                    await asyncio.wait_for(worker._process.wait(), PATIENCE_SECONDS)
                    await cluster.start_worker(held)
                assert await client.call("counter", "a", "add", timeout=PATIENCE_SECONDS) == 3

    asyncio.run(main())
