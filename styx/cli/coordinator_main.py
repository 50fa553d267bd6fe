"""The program of `styx coordinator`: it coordinates until it is told to stop, and then takes a last snapshot."""

from __future__ import annotations

import logging

import msgspec

from styx.cli.cluster_process import until_told
from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.coordinator.status import status_of
from styx.cluster.facts_server import FactsAddress, Page, facts_server, metrics_page, well
from styx.cluster.options import CoordinatorOptions, ProcessOptions
from styx.model.app import App

_log = logging.getLogger("styx.coordinator")


async def coordinate(options: ProcessOptions, wanted: CoordinatorOptions, app: App | None, facts: FactsAddress) -> None:
    """Coordinates until SIGTERM or SIGINT; raises what `CoordinatorProcess.run` raises."""
    process = CoordinatorProcess(options, wanted, app)
    pages = {
        "/healthz": lambda: well(process.stuck()),
        "/readyz": lambda: well(process.away),
        "/status": lambda: Page(msgspec.json.encode(status_of(process))),
        "/metrics": lambda: metrics_page(process.metrics()),
    }

    async def last_snapshot() -> None:
        _log.info("stopping: taking a last snapshot")
        complete = await process.last_snapshot()
        _log.info("stopping: %s", "the snapshot is stored" if complete else "there is no new snapshot")

    async with facts_server(facts, pages):
        await until_told(process.run(), last_snapshot)
