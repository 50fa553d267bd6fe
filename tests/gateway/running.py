"""A gateway on a real socket, for as long as a `with` block."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from styx.gateway.engine import Engine
from styx.gateway.front import Front
from styx.gateway.server import serve


class Running:
    """Where it listens; `stop` starts its shutdown, `task` ends with it."""

    def __init__(self, url: str, stop: asyncio.Event, task: asyncio.Task[None]) -> None:
        self.url = url
        self.stop = stop
        self.task = task


@asynccontextmanager
async def running(
    engine: Engine,
    on_shutdown: Callable[[], Awaitable[None]] | None = None,
    grace_seconds: int = 20,
    drain_seconds: float = 0.0,
    front: Front | None = None,
    port: int = 0,
) -> AsyncIterator[Running]:
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    task = asyncio.create_task(
        serve(
            engine,
            port=port,
            on_started=started.set_result,
            on_shutdown=on_shutdown,
            stop=stop,
            drain_seconds=drain_seconds,
            grace_seconds=grace_seconds,
            front=front,
        )
    )
    task.add_done_callback(lambda _: started.cancel())  # one that cannot start must not be waited for
    try:
        yield Running(await started, stop, task)
    finally:
        stop.set()
        await task
