"""A FastAPI application in uvicorn's processes, before a PostgreSQL server that runs: a deployment for the driver."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.processes import with_children
from benchmarks.driver.styx_target import HttpTargets
from benchmarks.reference.postgres_accounting import processes
from benchmarks.reference.postgres_server import PostgresServer
from benchmarks.reference.serialized import CONNECTION_VARIABLE, CONNECTIONS_VARIABLE, SESSION
from proof.cluster.child import ChildFailed, ChildProcess
from styx.client.connect import connect
from styx.process.ports import free_port

ROLE: Final = "fastapi"
READY_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.05
ENDS_WELL: Final = (0, -signal.SIGTERM)
"""A single process of uvicorn shuts down in order, and then ends by the signal that it was told to end by."""
_READY: Final = "Application startup complete"
"""What each of uvicorn's processes says once."""


class Served(NamedTuple):
    """The application's factory, MODULE:FUNCTION, its processes, and the connections of all of them to the database.
    `environment` is for the application, `facts` are for results.
    """

    factory: str
    workers: int
    connections: int
    environment: Mapping[str, str]
    facts: Mapping[str, Any]


@asynccontextmanager
async def fastapi(server: PostgresServer, shape: Served) -> AsyncIterator[Deployment]:
    """In front of a server with filled tables. Raises `ChildFailed`."""
    each = max(1, shape.connections // shape.workers)
    port = free_port()
    words = ["-m", "uvicorn", "--factory", shape.factory]
    words += ["--port", str(port), "--workers", str(shape.workers), "--loop", "uvloop", "--http", "httptools"]
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        CONNECTION_VARIABLE: json.dumps(server.connection()),
        CONNECTIONS_VARIABLE: str(each),
        **shape.environment,
    }
    url = f"http://127.0.0.1:{port}"
    server_pids = processes(server)
    with tempfile.TemporaryDirectory(prefix="styx-benchmark-fastapi-") as directory:
        process = await ChildProcess.start("uvicorn", [*words, "--no-access-log"], environment, Path(directory))

        def pids() -> Mapping[str, Sequence[int]]:
            process.check()
            return {ROLE: with_children(process.pid), **server_pids()}

        try:
            await _ready(process, shape.workers)
            yield Deployment(
                facts={
                    "kind": f"FastAPI and {server.version}",
                    "processes": shape.workers,
                    "connections": each * shape.workers,
                    **shape.facts,
                    **server.settings,
                    **SESSION,
                },
                open_client=lambda: connect(url),
                make_target=HttpTargets(url),
                pids=pids,
            )
        finally:
            await process.stop(ENDS_WELL)


async def _ready(process: ChildProcess, workers: int) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS_MAX):
            while process.log.read_text("utf-8").count(_READY) < workers:
                process.check()
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise ChildFailed(f"the application did not serve within {READY_SECONDS_MAX:g} s.{process.tail()}") from None
