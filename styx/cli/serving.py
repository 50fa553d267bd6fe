"""An app embedded behind its HTTP gateway, in this process: what `styx dev` serves and what the demo kills.

The caller says what to do at each stage.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import styx
from styx.cli.engine_facts import Start, snapshot_epoch, start_of
from styx.errors import EngineFailed
from styx.gateway.server import serve
from styx.model.app import App
from styx.model.limits import Limits
from styx.process.memory import return_large_blocks, tune_collector
from styx.watchdog import ending

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine
    from styx.gateway.front import Front
    from styx.http.asgi import Application

WATCH_SECONDS: Final = 1.0
"""How often a served engine is asked whether it still runs."""

SWITCH_INTERVAL_S: Final = 0.0005
"""Python's default is ten times as long."""

T = TypeVar("T")


class ServingOptions(NamedTuple):
    """Where to listen and where to keep data; `snapshot_interval` in seconds, `keep_log`, `accept_changed_replay`
    and `limits` as in `styx.embedded`, `front` as in `serve`.
    """

    host: str
    port: int
    data_dir: Path
    snapshot_interval: float
    keep_log: bool = False
    front: Front | None = None
    accept_changed_replay: bool = False
    limits: Limits | None = None


async def serve_embedded(
    app: App,
    options: ServingOptions,
    *,
    on_started: Callable[[str, Start], None],
    on_stopping: Callable[[], None],
    stop: asyncio.Event | None = None,
    listener: socket.socket | None = None,
    around: Callable[[Application], Application] | None = None,
    beside: Callable[[EmbeddedEngine], AbstractContextManager[object]] = nullcontext,
) -> int | None:
    """Serves until SIGTERM, SIGINT or `stop`, then finishes what is in flight and snapshots.

    Returns the epoch of the stored snapshot, None if there was nothing to store. `listener` and `around` are as in
    `serve`. `beside` is entered with the engine before it starts, and left when it has ended.

    Raises what `styx.embedded` and `serve` raise, and `EngineFailed` as soon as the engine has failed.
    """
    stop = asyncio.Event() if stop is None else stop
    ending.notice([signal.SIGINT])  # until the gateway handles signals; a function that is replayed may never end

    async def stopping() -> None:
        on_stopping()

    embedded = styx.embedded(
        app,
        options.data_dir,
        snapshot_interval=options.snapshot_interval,
        keep_log=options.keep_log,
        accept_changed_replay=options.accept_changed_replay,
        limits=options.limits,
    )
    engine = embedded.engine
    with beside(engine):
        async with embedded:
            start = start_of(engine)
            return_large_blocks()
            tune_collector()
            # The log's writer waits so long for the interpreter beside a busy engine, and a reply waits for the writer.
            sys.setswitchinterval(SWITCH_INTERVAL_S)
            watching = asyncio.create_task(_until_failed(engine, stop))
            try:
                await serve(
                    engine,
                    options.host,
                    options.port,
                    on_started=lambda url: on_started(url, start),
                    on_shutdown=stopping,
                    front=options.front,
                    stop=stop,
                    listener=listener,
                    around=around,
                )
            finally:
                watching.cancel()
            if not engine.ready:
                raise EngineFailed(engine.unavailable_reason or "the engine stopped")
    return snapshot_epoch(engine)


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on the fastest event loop there is."""
    try:
        import uvloop
    except ImportError:  # not on every platform
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def _until_failed(engine: EmbeddedEngine, stop: asyncio.Event) -> None:
    """An engine that failed serves nobody: better to end, loudly, so that somebody starts it again."""
    while engine.ready:  # noqa: ASYNC110 - the engine has no event for it, and nobody waits for the second it takes
        await asyncio.sleep(WATCH_SECONDS)
    stop.set()
