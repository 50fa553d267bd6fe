"""Streams of server-sent events to one reader: how one begins, goes on, is refused and ends.

A reader that takes nothing is waited for, and nothing is gathered for it meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec

from styx.errors import StyxError
from styx.gateway import status
from styx.gateway.status import Answer
from styx.http.asgi import Receive, Send
from styx.values.event_lines import ERROR, block

LOOK_SECONDS: Final = 1.0
"""How often a stream in which nothing comes looks whether the gateway ends."""
ENDING: Final = "the gateway is shutting down: read on from another one"
HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    status.NOT_CACHED,
    (b"x-accel-buffering", b"no"),  # a proxy would hold events back
)
_encode = msgspec.json.Encoder().encode

T = TypeVar("T")


async def begin(first: bytes, send: Send) -> None:
    """The head of the answer, and the first block."""
    await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
    await give(first, send)


async def give(data: bytes, send: Send) -> None:
    """Sends blocks."""
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def end(send: Send) -> None:
    """The end of the answer."""
    await send({"type": "http.response.body", "body": b""})


async def refuse(answer: Answer, method: str, send: Send) -> None:
    """An answer in place of a stream."""
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length, status.NOT_CACHED]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})


async def until_gone(receive: Receive) -> None:
    """Returns when the reader is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def steps(
    source: AsyncIterator[T],
    gone: asyncio.Future[None],
    ending: Callable[[], bool],
    take: Callable[[T], Awaitable[None]],
    look: Callable[[], Awaitable[None]],
) -> bool:
    """Gives each step of `source` to `take` until it ends or the reader is `gone`; `look` is called in each second in
    which nothing comes. Returns whether the gateway was `ending`. Raises what the source raises.
    """
    step = asyncio.ensure_future(anext(source))
    try:
        while not gone.done():
            waited: set[asyncio.Future[Any]] = {step, gone}
            await asyncio.wait(waited, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if step.done():
                await take(step.result())
                step = asyncio.ensure_future(anext(source))
            elif ending():
                return True
            else:
                await look()
    except StopAsyncIteration:
        pass
    finally:
        step.cancel()
        with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration, StyxError):
            await step
    return False


def failure(error: Exception, **more: Any) -> bytes:
    """The block with which a stream ends before its end."""
    told = {"type": type(error).__name__, "message": str(error), **more}
    return block(None, _encode({"error": told}), ERROR)


def last_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """What a browser says that connects again, which repeats the URL: how far it has come."""
    return next((value.decode("latin-1") for name, value in headers if name == b"last-event-id"), None)
