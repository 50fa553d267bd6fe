"""Answers of a gateway that drains: each is the last one on its connection, so that the next request goes elsewhere.

A client that is told `Connection: close` opens another connection for its next request. One whose kept-alive connection
is closed without a word may have a request under way on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

CLOSE: Final = (b"connection", b"close")


def closing(send: Send, draining: Callable[[], bool]) -> Send:
    """`send`, with the header on every answer that begins while `draining()`; the server then closes the connection."""

    def send_last(message: Message) -> Awaitable[None]:
        if draining() and message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), CLOSE]
        return send(message)

    return send_last
