"""What `styx worker` runs: works until it is told to stop. Its end is no different from a crash to the others."""

from __future__ import annotations

import logging

from styx.app import App
from styx.cli.cluster_process import until_told
from styx.cluster.facts_server import FactsAddress, facts_server, metrics_page, well
from styx.cluster.options import ProcessOptions
from styx.cluster.worker.process import WorkerProcess

_log = logging.getLogger("styx.worker")


async def work(options: ProcessOptions, app: App | None, facts: FactsAddress) -> None:
    """Works until SIGTERM or SIGINT; raises what `WorkerProcess` raises."""
    process = WorkerProcess(options, app)
    pages = {
        "/healthz": lambda: well(process.stuck()),
        "/readyz": lambda: well(process.stuck() if process.session else "it is not registered with the coordinator"),
        "/metrics": lambda: metrics_page(""),
    }

    async def leave() -> None:
        _log.info("stopping: the other workers take over")

    async with facts_server(facts, pages):
        await until_told(process.run(), leave)
