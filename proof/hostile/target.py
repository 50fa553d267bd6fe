"""The address under test and connections to it: raw bytes out, one answer in. Never connects to anything else."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from styx.errors import ConfigurationError
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport.address import parse_address

ANSWER_SECONDS_MAX: Final = PATIENCE_SECONDS
"""Limit on the wait for an answer or a close. All limits of the server are lower."""
READ_BYTES_MAX: Final = 64 * 1024 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Target(NamedTuple):
    """A gateway. `headers` are sent with each request, for example the sender's credential."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    prefix: str
    headers: tuple[str, ...]

    @property
    def place(self) -> str:
        """HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def head(self, line: str, *headers: str) -> bytes:
        """A request's line and headers, up to the empty line."""
        lines = [f"{line} HTTP/1.1", f"Host: {self.place}", *self.headers, *headers]
        return "\r\n".join([*lines, "\r\n"]).encode("latin-1")

    def post(self, path: str, body: bytes = b"[]", *headers: str) -> bytes:
        """A whole request with a JSON body."""
        length = f"Content-Length: {len(body)}"
        return self.head(f"POST {self.prefix}{path}", "Content-Type: application/json", length, *headers) + body

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Streams]:
        """A connection; raises `OSError`."""
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
        try:
            yield reader, writer
        finally:
            writer.close()


class HttpAnswer(NamedTuple):
    """An answer. `status` 0 stands for a connection that was closed without an answer."""

    status: int
    headers: bytes
    body: bytes


def target_of(url: str, headers: list[str], authority: str | None) -> Target:
    """The target of a URL. Raises `ConfigurationError` for a text that is no URL of a gateway."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{url!r} is no gateway's URL; write http://HOST:PORT")
    tls = ssl.create_default_context(cafile=authority) if parts.scheme == "https" else None
    port = parts.port or (443 if tls else 80)
    return Target(parts.hostname, port, tls, parts.path.rstrip("/"), tuple(headers))


def targets_of(addresses: list[str]) -> list[Target]:
    """The targets of other ports, with any protocol."""
    return [Target(*parse_address(address), None, "", ()) for address in addresses]


async def send(streams: Streams, *parts: bytes) -> None:
    """Sends the parts; a peer that has closed already is no failure."""
    try:
        for part in parts:
            streams[1].write(part)
            await streams[1].drain()
    except OSError:
        pass


async def next_answer(reader: asyncio.StreamReader) -> HttpAnswer:
    """The next answer on the connection. Raises `TimeoutError` after `ANSWER_SECONDS_MAX`."""
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            while head.startswith(b"HTTP/1.1 100"):
                head = await reader.readuntil(b"\r\n\r\n")
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            body = await reader.readexactly(int(lengths[0][15:])) if lengths else await reader.read(READ_BYTES_MAX)
        except (asyncio.IncompleteReadError, OSError):
            return HttpAnswer(0, b"", b"")
    return HttpAnswer(int(head.split(b" ", 2)[1]), head, body)


async def closed(reader: asyncio.StreamReader) -> bytes:
    """The bytes that arrive until the peer closes the connection. Raises `TimeoutError`."""
    got = b""
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        try:
            while part := await reader.read(65_536):
                got = (got + part)[-65_536:]
        except OSError:
            pass
    return got
