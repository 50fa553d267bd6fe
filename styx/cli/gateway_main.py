"""What `styx gateway` runs: serves until it is told to stop, then finishes what is in flight."""

from __future__ import annotations

import asyncio
import logging

from styx.cluster.facts_server import FactsAddress, facts_server, metrics_page, well
from styx.cluster.gateway_process import GatewayProcess
from styx.gateway.server import serve

_log = logging.getLogger("styx.gateway")


async def serve_gateway(process: GatewayProcess, host: str, port: int, facts: FactsAddress) -> None:
    """Serves until SIGTERM or SIGINT; raises `ConfigurationError`, or what `GatewayProcess.run` raises."""
    stop = asyncio.Event()
    pages = {
        "/healthz": lambda: well(None),
        "/readyz": lambda: well(process.unavailable_reason),
        "/metrics": lambda: metrics_page(process.metrics()),
    }
    following = asyncio.create_task(process.run())
    following.add_done_callback(lambda _: stop.set())
    try:
        async with facts_server(facts, pages):
            await serve(process, host, port, on_started=lambda url: _log.info("listening at %s", url), stop=stop)
        if following.done():
            following.result()
    finally:
        following.cancel()
        await process.close()
