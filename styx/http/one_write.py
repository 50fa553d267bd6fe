"""A transport that writes the head of an answer together with its body: one system call, and one wake-up of the client,
instead of two.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_HEAD: Final = b"HTTP/1.1 "
_LENGTH: Final = b"\r\ncontent-length: "


class OneWrite:
    """The way of a connection's answers to its `transport`. A head that announces a length is held until the next write
    or the answer's end; a stream's head leaves at once. Everything else is the transport's.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        """As the transport's, but for a head."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(_HEAD) and _LENGTH in data:
            self._head = data
            return
        self._transport.write(data)

    def complete(self) -> None:
        """The answer is complete: to a `HEAD` it has nothing behind its head."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        """As the transport's, behind all that was written."""
        self.complete()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
