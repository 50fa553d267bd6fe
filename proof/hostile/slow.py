"""Clients that are slow, silent or many, at every port. Each must be disconnected in time, and must not keep other
clients out.

The number of connections at each port and their time are limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from proof.hostile.target import Streams, Target, closed, send

AT_ONCE: Final = 100
"""Connections that are begun together."""
DRIP_SECONDS: Final = 0.5
"""Between two bytes of a slow client."""

Opening = Callable[[Target, int], bytes]


def nothing(_: Target, number: int) -> bytes:
    """The opening of a silent client: mostly nothing, sometimes a byte or two."""
    return b"\0\0"[: number % 3]


def half_a_header(target: Target, number: int) -> bytes:
    """The opening of a request whose headers never end."""
    return f"POST {target.prefix}/v1/none/{number}/none HTTP/1.1\r\nHost: {target.place}\r\n".encode()


def half_a_body(path: str) -> Opening:
    """The opening of a call of the function at `path`, whose headers announce a longer body than is sent."""

    def opening(target: Target, _: int) -> bytes:
        kind, length = "Content-Type: application/json", "Content-Length: 100000"
        return target.head(f"POST {target.prefix}{path}", kind, length) + b"["

    return opening


@asynccontextmanager
async def many(target: Target, count: int, opening: Opening) -> AsyncIterator[list[Streams]]:
    """Opens `count` connections, each with its opening. Connections that the peer refuses are left out."""
    made: list[Streams] = []

    async def one(number: int) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            streams = await asyncio.wait_for(asyncio.open_connection(target.host, target.port), 10)
            made.append(streams)
            await send(streams, opening(target, number))

    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(first, min(count, first + AT_ONCE))))
    try:
        yield made
    finally:
        for _, writer in made:
            writer.close()


async def half_open(target: Target, count: int, seconds: float) -> str:
    """Keeps silent connections open for `seconds`."""
    async with many(target, count, nothing) as made:
        await asyncio.sleep(seconds)
        return f"{len(made)} of {count} connections taken, {_ended(made)} closed within {seconds:g} s"


async def dripping(target: Target, count: int, seconds: float, opening: Opening) -> str:
    """Sends requests byte by byte for `seconds`."""
    async with many(target, count, opening) as made:
        for byte in itertools.islice(itertools.cycle(b"x: y\r\n"), int(seconds / DRIP_SECONDS)):
            for streams in made:
                streams[1].write(bytes([byte]))
            await asyncio.sleep(DRIP_SECONDS)
        return f"{len(made)} of {count} connections, {_ended(made)} closed within {seconds:g} s"


async def unread(target: Target, count: int, seconds: float, request: bytes) -> str:
    """Clients that send requests and never read an answer."""
    async with many(target, count, lambda *_: request * 200) as made:
        for streams in made:
            streams[1].transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(seconds)
        return f"{len(made)} clients read nothing for {seconds:g} s"


async def noise(target: Target, count: int) -> str:
    """Sends bytes that no process of a cluster sends to a port of the cluster. Each connection must be closed."""
    sent = (
        b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(509),
        b"\x80\x04\x95" + bytes(500),
        (1 << 30).to_bytes(4, "big") + b"x" * 64,
        (5).to_bytes(4, "big") + b"hello",
        b"\xff" * 4096,
    )

    async def one(data: bytes) -> None:
        async with target.connected() as streams:
            await send(streams, data, b"\r\n\r\n")
            await closed(streams[0])

    tried: list[Awaitable[None]] = [one(data) for data in sent for _ in range(count)]
    await asyncio.gather(*tried)
    return f"{len(tried)} connections closed"


def _ended(made: list[Streams]) -> int:
    return sum(reader.at_eof() or writer.is_closing() for reader, writer in made)
