"""One process of a cluster, from its start to its end: log lines, event loop, signals, and the pages of its own port.

`coordinate`, `work`, `serve_gateway`, `serve_replica` and `run_ingest` are the programs of `styx coordinator`, `styx
worker`, `styx gateway`, `styx replica` and `styx ingest`. A program imports its part of the cluster when it runs, so
that a process has only its own part in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.cli.serving import run_loop
from styx.cluster.facts_server import FactsAddress, Page, facts_server, metrics_page, well
from styx.process.memory import return_large_blocks, tune_collector
from styx.reports.log_setup import replaying_is, set_up_logging
from styx.watchdog import held_interpreter
from styx.watchdog.ending import notice

if TYPE_CHECKING:
    from styx.cluster.gateway.process import GatewayProcess
    from styx.cluster.ingest.process import IngestProcess
    from styx.cluster.options import CoordinatorOptions, ProcessOptions
    from styx.cluster.worker.process import WorkerProcess
    from styx.gateway.front import Front
    from styx.model.app import App
    from styx.postgres.serving import PostgresOptions
    from styx.replica.application import SqlApplication
    from styx.replica.process import ReplicaProcess
    from styx.store.base import Store

SUPERVISED_VARIABLE: Final = "STYX_SUPERVISED"
"""Set by a supervisor whose pipe is this process's standard input: the seconds that an end may take. Without the
variable, standard input has no meaning.
"""
STORE_RETRY_SECONDS: Final = 1.0
"""The pause between two attempts to open a store that is out of reach."""


def run_process(name: str, main: Coroutine[Any, Any, None]) -> None:
    """Runs `main` to its end, as the program of this process; raises what it raises."""
    end_with_supervisor()
    log_to_stderr(name)
    return_large_blocks()
    tune_collector()
    run_loop(main)


def log_to_stderr(name: str) -> None:
    """Log lines go to standard error: time, level, name of the process, text."""
    set_up_logging(name)
    held_interpreter.write_to(sys.stderr)
    # These libraries log each attempt to reach a server that is away; the engine says once what it waits for.
    for library in ("aiokafka", "urllib3"):
        logging.getLogger(library).setLevel(logging.CRITICAL)


# The end ---------------------------------------------------------------------------------------------------


def end_with_supervisor() -> None:
    """Ends this process when its supervisor is gone, if it has one: SIGTERM at once, SIGKILL when the time is over.

    A supervisor's end closes the pipe that is standard input here, however it ends, on every system. The pipe is read
    in a thread, so that an event loop held up by a function does not matter.
    """
    seconds = os.environ.pop(SUPERVISED_VARIABLE, "")
    if seconds:
        watched = (sys.stdin.fileno(), float(seconds))
        threading.Thread(target=_watch, args=watched, name="styx-supervisor", daemon=True).start()


def _watch(pipe: int, seconds_max: float) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(seconds_max)
    os.kill(os.getpid(), signal.SIGKILL)


async def until_told(
    work: Coroutine[Any, Any, None], before_end: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Runs `work` until SIGTERM or SIGINT, then awaits `before_end()` and cancels it. A second signal waits no longer.

    Raises what `work` raises.
    """
    loop = asyncio.get_running_loop()
    working = asyncio.ensure_future(work)
    told: asyncio.Queue[None] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.put_nowait, None)
    notice()
    first = asyncio.ensure_future(told.get())
    try:
        await asyncio.wait([working, first], return_when=asyncio.FIRST_COMPLETED)
        if before_end is not None and not working.done():
            ending, second = asyncio.ensure_future(before_end()), asyncio.ensure_future(told.get())
            await asyncio.wait([ending, second, working], return_when=asyncio.FIRST_COMPLETED)
            second.cancel()
            ending.cancel()
    finally:
        first.cancel()
        working.cancel()
        await asyncio.wait([working])
    if not working.cancelled():
        working.result()


# The programs ----------------------------------------------------------------------------------------------


async def coordinate(options: ProcessOptions, wanted: CoordinatorOptions, app: App | None, facts: FactsAddress) -> None:
    """Coordinates until SIGTERM or SIGINT, then takes a last snapshot; raises what `CoordinatorProcess.run` raises."""
    from styx.cluster.coordinator.process import CoordinatorProcess
    from styx.cluster.coordinator.status import status_of

    log = logging.getLogger("styx.coordinator")
    process = CoordinatorProcess(options, wanted, app)
    pages = {
        "/healthz": lambda: well(process.stuck()),
        "/readyz": lambda: well(process.away),
        "/status": lambda: Page(msgspec.json.encode(status_of(process))),
        "/metrics": lambda: metrics_page(process.metrics()),
    }

    async def last_snapshot() -> None:
        log.info("stopping: taking a last snapshot")
        complete = await process.last_snapshot()
        log.info("stopping: %s", "the snapshot is stored" if complete else "there is no new snapshot")

    async with facts_server(facts, pages):
        await until_told(process.run(), last_snapshot)


async def work(options: ProcessOptions, app: App | None, facts: FactsAddress, drain_s: float) -> None:
    """Works until SIGTERM or SIGINT, then gives its slots to other workers, for at most `drain_s` seconds; raises what
    `WorkerProcess` raises.
    """
    from styx.cluster.worker.process import WorkerProcess
    from styx.reports.mistakes import Mistakes
    from styx.reports.warnings_shown import warnings_shown

    log = logging.getLogger("styx.worker")
    made: list[WorkerProcess] = []

    async def run() -> None:
        store = await _opened(options, log)
        process = WorkerProcess(replace(options, open_store=lambda: store), app)
        made.append(process)
        reports = process.node.reports
        replaying_is(lambda: reports.notes.replaying)
        with warnings_shown(reports, origins=False):
            await process.run()

    def stuck() -> str | None:
        return made[0].stuck() if made else None

    def unready() -> str | None:
        return made[0].unready() if made else "it waits for the store"

    async def leave() -> None:
        if made and drain_s:
            if made[0].session is not None:
                log.info("stopping: its slots move to other workers, in at most %g s", drain_s)
            log.info("stopping: %s", await made[0].leave(drain_s))

    pages = {
        "/healthz": lambda: well(stuck()),
        "/readyz": lambda: well(unready()),
        "/metrics": lambda: metrics_page(made[0].metrics() if made else ""),
        "/errors": lambda: Page(made[0].node.reports.mistakes.page() if made else Mistakes().page()),
    }
    async with facts_server(facts, pages):
        await until_told(run(), leave)


async def _opened(options: ProcessOptions, log: logging.Logger) -> Store:
    """The store; while it is out of reach, tries again."""
    failures = 0
    while True:
        try:
            return await asyncio.to_thread(options.open_store)
        except OSError as error:
            failures += 1
            if failures == 1:
                log.warning("waiting for the store: %s", error)
            await asyncio.sleep(STORE_RETRY_SECONDS)


async def serve_gateway(
    process: GatewayProcess, host: str, port: int, facts: FactsAddress, front: Front, drain_seconds: float = 0.0
) -> None:
    """Serves until SIGTERM or SIGINT, drains, and finishes the requests in flight; raises `ConfigurationError`, or what
    `GatewayProcess.run` raises.
    """
    from styx.gateway.app import SHUTTING_DOWN
    from styx.gateway.server import serve

    log = logging.getLogger("styx.gateway")
    stop, draining = asyncio.Event(), asyncio.Event()
    pages = {
        "/healthz": lambda: well(process.broken_reason),
        "/readyz": lambda: well(SHUTTING_DOWN if draining.is_set() else process.unavailable_reason),
        "/metrics": lambda: metrics_page(process.metrics()),
    }
    following = asyncio.create_task(process.run())
    following.add_done_callback(lambda _: stop.set())
    try:
        async with facts_server(facts, pages):
            await serve(
                process,
                host,
                port,
                on_started=lambda url: log.info("listening at %s", url),
                on_draining=draining.set,
                stop=stop,
                drain_seconds=drain_seconds,
                front=front,
            )
        if following.done():
            following.result()
    finally:
        following.cancel()
        await process.close()


async def serve_replica(
    make: Callable[[], ReplicaProcess],
    host: str,
    port: int,
    facts: FactsAddress,
    front: Front,
    drain_seconds: float,
    postgres: PostgresOptions | None,
) -> None:
    """Follows and serves, on the port of `postgres` as well, until SIGTERM or SIGINT, drains, and finishes the results
    under way; raises `ConfigurationError`, or what `ReplicaProcess.run` raises.
    """
    from styx.gateway.server import serve_application

    log = logging.getLogger("styx.replica")
    stop, process = asyncio.Event(), make()
    application = process.application
    pages = {path: partial(_replica_page, application, path) for path in ("/healthz", "/readyz", "/status", "/metrics")}
    following = asyncio.create_task(process.run())
    following.add_done_callback(lambda _: stop.set())
    await process.service.open()
    try:
        async with facts_server(facts, pages), contextlib.AsyncExitStack() as stack:
            if postgres is not None:
                from styx.postgres.serving import serve_postgres

                server = await stack.enter_async_context(serve_postgres(process.service, postgres))
                log.info("PostgreSQL's clients are served at %s:%d", *server.address)
            await serve_application(
                application,
                host,
                port,
                on_started=lambda url: log.info("listening at %s", url),
                stop=stop,
                drain_seconds=drain_seconds,
                front=front,
            )
        if following.done():
            following.result()
    finally:
        following.cancel()
        await process.service.close()


def _replica_page(application: SqlApplication, path: str) -> Page:
    answer = application.page(path)
    return Page(answer.body, answer.status, dict(answer.headers)[b"content-type"])


async def run_ingest(process: IngestProcess, facts: FactsAddress) -> None:
    """Feeds until SIGTERM or SIGINT; raises what `IngestProcess.run` raises."""
    pages = {
        "/healthz": lambda: well(process.engine.broken_reason),
        "/readyz": lambda: well(process.unready_reason),
        "/metrics": lambda: metrics_page(process.metrics()),
    }
    async with facts_server(facts, pages):
        await until_told(process.run())
