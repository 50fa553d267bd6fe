"""A replica served over HTTP on this machine, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from styx.gateway.front import Front
from styx.gateway.server import serve_application
from styx.query.service import Limits
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Follower
from styx.replica.process import ReplicaProcess
from styx.replica.service import Places
from styx.replica.source import SnapshotSource, Source
from tests.replica.moments import LARGE, TWO

MOST = Limits(memory_mib=200, seconds=20.0, rows=100_000)


@asynccontextmanager
async def replica_of(
    source: Follower | Source, places: Places = TWO, most: Limits = MOST, front: Front | None = None
) -> AsyncIterator[tuple[str, ReplicaProcess]]:
    """Its URL, and the process."""
    followed = SnapshotSource(source) if isinstance(source, Follower) else source
    process = ReplicaProcess(followed, ArrowRows(LARGE, 10_000), places, most)
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    await process.service.open()
    following = asyncio.ensure_future(process.run())
    serving = asyncio.ensure_future(
        serve_application(process.application, port=0, on_started=started.set_result, stop=stop, front=front)
    )
    try:
        either: set[asyncio.Future[Any]] = {started, serving}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        yield await asyncio.wait_for(started, 1), process
    finally:
        stop.set()
        await serving
        following.cancel()
        await asyncio.wait([following])
        await process.service.close()


async def so(condition: Callable[[], bool]) -> None:
    """Waits until something is so."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a test has no event for it
            await asyncio.sleep(0.01)
