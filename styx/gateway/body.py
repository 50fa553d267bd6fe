"""The body of a request, read from the server within the size limit. `arguments.py` reads what is in it."""

from __future__ import annotations

import asyncio
from typing import Final

from styx.gateway.arguments import check_announced, check_size
from styx.http.asgi import Receive

LINGER_BYTES_MAX: Final = 16 * 1024 * 1024
LINGER_SECONDS_MAX: Final = 2.0
"""How long the rest of an unwanted body is read. `LINGER_BYTES_MAX` limits its size."""


class ClientGone(Exception):
    """The client closed its connection before the request was complete."""


class IncomingBody:
    """The body of one request; `complete` once all of it has been read from the server."""

    __slots__ = ("_receive", "complete")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.complete = False

    async def read(self, bytes_max: int, announced: bytes | None = None) -> bytes:
        """Reads the whole body; `announced` is its `Content-Length`.

        Raises `RequestRejected` as soon as the body, or at once if its announced length, is over the limit
        (`too_large`), and if the announced length is no number (`bad_request`). Raises `ClientGone`.
        """
        check_announced(announced, bytes_max)
        first = await self.part()
        if self.complete and len(first) <= bytes_max:
            return first
        parts, size = [first], len(first)
        while not self.complete and size <= bytes_max:
            part = await self.part()
            parts.append(part)
            size += len(part)
        check_size(size, bytes_max)
        return b"".join(parts)

    async def discard(self) -> None:
        """Reads the rest of an unwanted body, within limits.

        Closing a connection with unread data resets it, and a client that still sends would lose the answer.
        """
        left = LINGER_BYTES_MAX
        try:
            async with asyncio.timeout(LINGER_SECONDS_MAX):
                while not self.complete and left > 0:
                    left -= len(await self.part())
        except (TimeoutError, ClientGone):
            pass

    async def part(self) -> bytes:
        """The next part of the body; raises `ClientGone`."""
        message = await self._receive()
        if message["type"] != "http.request":
            self.complete = True
            raise ClientGone
        self.complete = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part
