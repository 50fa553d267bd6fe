"""The program of `styx gateway`: it serves until it is told to stop, drains, and finishes the requests in flight."""

from __future__ import annotations

import asyncio
import logging

from styx.cluster.facts_server import FactsAddress, facts_server, metrics_page, well
from styx.cluster.gateway.process import GatewayProcess
from styx.gateway.app import SHUTTING_DOWN
from styx.gateway.front import Front
from styx.gateway.server import serve

_log = logging.getLogger("styx.gateway")


async def serve_gateway(
    process: GatewayProcess, host: str, port: int, facts: FactsAddress, front: Front, drain_seconds: float = 0.0
) -> None:
    """Serves until SIGTERM or SIGINT and drains; raises `ConfigurationError`, or what `GatewayProcess.run` raises."""
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
                on_started=lambda url: _log.info("listening at %s", url),
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
