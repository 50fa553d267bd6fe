"""The places where large cases run: `styx dev` as a process, or a cluster of processes on Kafka. Either can be killed
in the middle of a case.
"""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
from pathlib import Path
from typing import Final

from proof.cluster.child import ChildProcess
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.large.run import Case, Outcome, run_case
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS

APP: Final = "proof.large.app:app"
SNAPSHOT_SECONDS: Final = 2.0


async def on_embedded(case: Case, directory: Path, kill: bool) -> Outcome:
    """Runs a case on `styx dev`."""
    port = free_port()
    arguments = ["-m", "styx", "dev", APP, "--port", str(port), "--data-dir", str(directory / "data"), "--quiet"]
    arguments += ["--snapshot-interval", str(SNAPSHOT_SECONDS)]
    children = [await ChildProcess.start("dev", arguments, {}, directory)]
    url = f"http://127.0.0.1:{port}"

    async def killed() -> None:
        await children[-1].kill()
        children.append(await ChildProcess.start("dev", arguments, {}, directory))

    try:
        await ready(url, children[-1])
        return await run_case(case, url, lambda: {"engine": children[-1].pid}, case.name, killed if kill else None)
    finally:
        await children[-1].kill()


async def on_cluster(case: Case, directory: Path, kill: bool, kafka: str, name: str) -> Outcome:
    """Runs a case on a cluster of two workers. `kill` kills both."""
    options = ClusterOptions(
        app=APP, name=name, kafka=kafka, store=f"file://{directory}/store", directory=directory, slots=8
    )
    async with ClusterUnderTest(options) as cluster:
        await cluster.start()
        await cluster.settled()

        def pids() -> dict[str, int]:
            return {child.name.partition("-")[0] + child.name[-8:]: child.pid for child in cluster.children}

        async def killed() -> None:
            for worker in cluster.workers:
                assert worker is not None
                await worker.kill()
            for place in range(len(cluster.workers)):
                await cluster.start_worker(place)

        outcome = await run_case(case, cluster.http_url, pids, case.name, killed if kill else None)
        for child in cluster.children:
            child.check()
        return outcome


async def ready(url: str, child: ChildProcess) -> None:
    """Waits until it can serve; raises `ChildFailed` if it ends before."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            child.check()
            with contextlib.suppress(OSError):
                await asyncio.to_thread(lambda: urllib.request.urlopen(f"{url}/readyz").close())
                return
            await asyncio.sleep(0.1)
