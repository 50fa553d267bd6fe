"""`styx dev` in a process of its own: a whole app behind HTTP, durable in a directory, which is gone afterwards."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.processes import with_children
from benchmarks.driver.serving import until_serving
from benchmarks.driver.styx_target import HttpTargets
from benchmarks.driver.workload import Workload
from proof.cluster.child import ChildProcess
from styx.client.connect import connect
from styx.process.ports import free_port

ROLE: Final = "styx"
READY_SECONDS_MAX: Final = 60.0


@asynccontextmanager
async def styx_dev(workload: Workload) -> AsyncIterator[Deployment]:
    """With no data yet. A line for each request and the check of each transaction, which are for developers, are off.

    Raises `ChildFailed`, and `TimeoutError` if it does not serve.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="styx-benchmark-dev-") as directory:
        words = ["-m", "styx", "dev", workload.app_target, "--port", str(port), "--data-dir", "data"]
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = await ChildProcess.start("styx", [*words, "--quiet", "--no-check"], environment, Path(directory))

        def pids() -> Mapping[str, Sequence[int]]:
            process.check()
            return {ROLE: with_children(process.pid)}

        try:
            await until_serving(lambda: connect(url), workload, READY_SECONDS_MAX, lambda _: process.check())
            yield Deployment(
                facts={"kind": "styx dev", "through": "http"},
                open_client=lambda: connect(url),
                make_target=HttpTargets(url),
                pids=pids,
                urls=lambda: {ROLE: [url]},
            )
        finally:
            await process.stop()
