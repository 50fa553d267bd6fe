"""The PostgreSQL line as a deployment for the driver: a server that runs, and the application in uvicorn's processes in
front of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.processes import with_children
from benchmarks.driver.styx_target import HttpTargets
from benchmarks.marketplace.postgres.serialized import (
    CHECKOUT_VARIABLE,
    CONNECTION_VARIABLE,
    CONNECTIONS_VARIABLE,
    SESSION,
)
from benchmarks.reference.postgres_accounting import processes
from benchmarks.reference.postgres_server import PostgresServer
from proof.cluster.child import ChildFailed, ChildProcess
from styx.client.connect import connect
from styx.process.ports import free_port

ROLE: Final = "fastapi"
READY_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.05
_READY: Final = "Application startup complete"
"""What each of uvicorn's processes says once."""
SETTINGS: Final = {
    # Locks of rows, not of whole pages or tables: a page's lock is in the way of the neighbours.
    "max_pred_locks_per_transaction": "1024",
    "max_pred_locks_per_page": "256",
    "max_pred_locks_per_relation": "10000",
}
"""Of the server, for SERIALIZABLE with small rows; beside those of every server here."""


class Shape(NamedTuple):
    """The application's processes, the connections of all of them to the database, and the form of a checkout, a name
    in `FORMS`.
    """

    workers: int
    connections: int
    checkout: str = "function"


@asynccontextmanager
async def served(server: PostgresServer, shape: Shape) -> AsyncIterator[Deployment]:
    """In front of a server with filled tables. Raises `ChildFailed`."""
    each = max(1, shape.connections // shape.workers)
    port = free_port()
    words = ["-m", "uvicorn", "--factory", "benchmarks.marketplace.postgres.application:make_app"]
    words += ["--port", str(port), "--workers", str(shape.workers), "--loop", "uvloop", "--http", "httptools"]
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        CONNECTION_VARIABLE: json.dumps(server.connection()),
        CONNECTIONS_VARIABLE: str(each),
        CHECKOUT_VARIABLE: shape.checkout,
    }
    url = f"http://127.0.0.1:{port}"
    server_pids = processes(server)
    with tempfile.TemporaryDirectory(prefix="styx-marketplace-fastapi-") as directory:
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
                    "checkout": shape.checkout,
                    **server.settings,
                    **SESSION,
                },
                open_client=lambda: connect(url),
                make_target=HttpTargets(url),
                pids=pids,
            )
        finally:
            await process.stop()


async def _ready(process: ChildProcess, workers: int) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS_MAX):
            while process.log.read_text("utf-8").count(_READY) < workers:
                process.check()
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise ChildFailed(f"the application did not serve within {READY_SECONDS_MAX:g} s.{process.tail()}") from None
