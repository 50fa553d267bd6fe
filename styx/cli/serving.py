"""An embedded engine behind its HTTP gateway, in this process: `styx dev` serves it, and the demo kills it.

The caller is told of each stage, with the facts of the engine's start.
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
from styx.errors import EngineFailed
from styx.gateway.server import serve
from styx.model.app import App
from styx.model.limits import Limits
from styx.process.memory import return_large_blocks, tune_collector
from styx.replica.live import LiveSql
from styx.watchdog import ending

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine
    from styx.gateway.front import Front
    from styx.http.asgi import Application

WATCH_SECONDS: Final = 1.0
"""The time between two checks that a served engine still runs."""
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


class Start(NamedTuple):
    """The start of an engine: its seconds, the epoch of its snapshot, and the last epoch; None if there is none.

    `replayed` epochs of the log were run again. `changed`: the app is another than at the last start; `recorded_code`:
    the epochs were run on the code that had run them before. `notes` are about the check of the stored state.
    """

    seconds: float
    snapshot_epoch: int | None
    epoch: int | None
    replayed: int = 0
    changed: bool = False
    recorded_code: bool = False
    notes: tuple[str, ...] = ()


def start_of(engine: EmbeddedEngine) -> Start:
    """The facts of a start that has just ended."""
    epoch, counters, change = engine.worker.epoch, engine.counters, engine.app_change
    return Start(
        counters.recovery_s,
        counters.recovered_from,
        epoch if epoch >= 0 else None,
        counters.replayed or 0,
        change.changed,
        change.recorded_code_ran,
        tuple(change.notes),
    )


def snapshot_epoch(engine: EmbeddedEngine) -> int | None:
    """The epoch up to which the newest stored snapshot reaches, None if there is none."""
    manifests = engine.coordinator.ledger.manifests
    return manifests[0].epoch if manifests else None


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
            sql = LiveSql(engine)
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
                    sql=sql,
                )
            finally:
                watching.cancel()
                await sql.close()
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
    """Stops the server of an engine that failed: a process that ends is started again."""
    while engine.ready:  # noqa: ASYNC110 - the engine has no event for it, and a second's delay does not matter
        await asyncio.sleep(WATCH_SECONDS)
    stop.set()
