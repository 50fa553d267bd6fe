"""The program of `styx worker`: it works until it is told to stop, and then gives its slots to other workers."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from styx.cli.cluster_process import until_told
from styx.cluster.facts_server import FactsAddress, Page, facts_server, metrics_page, well
from styx.cluster.options import ProcessOptions
from styx.cluster.worker.process import WorkerProcess
from styx.model.app import App
from styx.reports.log_setup import replaying_is
from styx.reports.mistakes import Mistakes
from styx.reports.warnings_shown import warnings_shown
from styx.store.base import Store

STORE_RETRY_SECONDS: Final = 1.0
"""Before another attempt to open a store that is out of reach."""

_log = logging.getLogger("styx.worker")


async def work(options: ProcessOptions, app: App | None, facts: FactsAddress, drain_s: float) -> None:
    """Works until SIGTERM or SIGINT, and at most `drain_s` longer; raises what `WorkerProcess` raises."""
    made: list[WorkerProcess] = []

    async def run() -> None:
        store = await _opened(options)
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
                _log.info("stopping: its slots move to other workers, in at most %g s", drain_s)
            _log.info("stopping: %s", await made[0].leave(drain_s))

    pages = {
        "/healthz": lambda: well(stuck()),
        "/readyz": lambda: well(unready()),
        "/metrics": lambda: metrics_page(made[0].metrics() if made else ""),
        "/errors": lambda: Page(made[0].node.reports.mistakes.page() if made else Mistakes().page()),
    }
    async with facts_server(facts, pages):
        await until_told(run(), leave)


async def _opened(options: ProcessOptions) -> Store:
    """The store, as soon as it is there."""
    failures = 0
    while True:
        try:
            return await asyncio.to_thread(options.open_store)
        except OSError as error:
            failures += 1
            if failures == 1:
                _log.warning("waiting for the store: %s", error)
            await asyncio.sleep(STORE_RETRY_SECONDS)
