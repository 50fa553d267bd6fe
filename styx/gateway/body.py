"""Reading a request's body from the server, never more of it in memory than the size limit."""

from __future__ import annotations

import asyncio
from typing import Final

from styx.errors import RequestRejected
from styx.http.asgi import Receive

LINGER_BYTES_MAX: Final = 16 * 1024 * 1024
LINGER_SECONDS_MAX: Final = 2.0


class ClientGone(Exception):
    """The client closed its connection before the request was complete."""


class IncomingBody:
    """One request's body. `complete` once all of it has been taken from the server."""

    __slots__ = ("_receive", "complete")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.complete = False

    async def read(self, bytes_max: int) -> bytes:
        """The whole body; raises `RequestRejected` (`too_large`) as soon as it is over the limit, or `ClientGone`."""
        first = await self.part()
        if self.complete and len(first) <= bytes_max:
            return first
        parts, size = [first], len(first)
        while not self.complete and size <= bytes_max:
            part = await self.part()
            parts.append(part)
            size += len(part)
        if size > bytes_max:
            raise too_large(bytes_max)
        return b"".join(parts)

    async def discard(self) -> None:
        """Takes what is left of a body that nobody wants, within limits.

        Closing a connection with unread data resets it, and the answer is lost on the way to a client that still sends.
        """
        left = LINGER_BYTES_MAX
        try:
            async with asyncio.timeout(LINGER_SECONDS_MAX):
                while not self.complete and left > 0:
                    left -= len(await self.part())
        except (TimeoutError, ClientGone):
            pass

    async def part(self) -> bytes:
        """What comes next of it; raises `ClientGone`."""
        message = await self._receive()
        if message["type"] != "http.request":
            self.complete = True
            raise ClientGone
        self.complete = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part


def too_large(bytes_max: int) -> RequestRejected:
    """The refusal of a body of more than `bytes_max` bytes."""
    return RequestRejected("too_large", f"the request's body is over the limit of {bytes_max} bytes: send less")
