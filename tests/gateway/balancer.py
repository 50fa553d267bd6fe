"""A balancer of connections before gateways, as small as one can be."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx

from styx.http.server import url_of
from styx.testing.patience import PATIENCE_SECONDS

LOOK_SECONDS = 0.2
"""Longer than a server without a drain goes on accepting."""


class Balancer:
    """Passes each new connection on to the first gateway that was always ready; knows no requests."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.ready = list(urls)

    async def look(self) -> None:
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
            while True:
                for url in list(self.ready):
                    try:
                        ready = (await client.get(f"{url}/readyz")).status_code == 200
                    except httpx.TransportError:
                        ready = False
                    if not ready:
                        self.ready.remove(url)
                await asyncio.sleep(LOOK_SECONDS)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(self.ready[0])
        to_reader, to_writer = await asyncio.open_connection(address.hostname, address.port)
        await asyncio.gather(_copy(reader, to_writer), _copy(to_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def balanced(*urls: str) -> AsyncIterator[str]:
    """The URL of a balancer before the gateways at `urls`."""
    balancer = Balancer(urls)
    looking = asyncio.create_task(balancer.look())
    server = await asyncio.start_server(balancer.accept, "127.0.0.1", 0)
    try:
        async with server:
            yield url_of(server.sockets[0])
    finally:
        looking.cancel()
