"""The endpoint of events, `GET /v1/events/NAME`: a stream of server-sent events, each with its cursor as `id`.

A reader that takes nothing is waited for, and nothing is gathered for it meanwhile: what comes is read from the log
when there is room. So a slow reader costs itself, until the server ends its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from time import perf_counter
from typing import Final
from urllib.parse import parse_qs

import msgspec

from styx.errors import BadArguments, EventsCut, EventsReleased, RequestRejected
from styx.gateway import head, server_sent, status
from styx.gateway.calls import GatewayMetrics
from styx.gateway.engine import Engine
from styx.gateway.status import Answer
from styx.http.asgi import Receive, Scope, Send
from styx.model.event import no_such_event
from styx.model.event_seen import END, EventMessage, checked_cursor
from styx.values.codec import shown
from styx.values.event_lines import HEARTBEAT, block

STREAMS_MAX: Final = 256
"""Streams of one gateway that are open at once."""
HEARTBEAT_SECONDS: Final = 15.0
"""A stream in which nothing comes for so long gets a comment, so that proxies keep it, and a dead reader is found."""

_SAFE: Final = ("GET", "HEAD")
_FOLLOWS: Final = {"true": True, "false": False}
_encode = msgspec.json.Encoder().encode


def event_in(path: str) -> str | None:
    """The event's name in a `request_path`, None for another path. Raises `RequestRejected` as `head.parse`."""
    asked = head.parse(path)
    return asked.key if asked is not None and asked.operator == head.EVENTS and asked.function is None else None


class EventEndpoint:
    """Serves the events of one engine, and counts in `metrics`. When the gateway is `ending`, all streams end soon, and
    their readers are told to come again.
    """

    def __init__(self, engine: Engine, metrics: GatewayMetrics, ending: Callable[[], bool]) -> None:
        self._engine = engine
        self._metrics = metrics
        self._ending = ending

    def serves(self, path: str, method: str) -> bool:
        """Whether a request, by its raw path, reads events; other apps may have an operator of that name."""
        try:
            return bool(self._engine.app.events) and method in _SAFE and bool(event_in(path))
        except RequestRejected:
            return False  # refused where requests are

    async def __call__(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request. A stream counts as answered when it has begun."""
        started = perf_counter()
        try:
            name, after, follow = self._asked(path, scope)
            events = self._engine.events
            if after == END:
                after = await events.last(name)
            messages = events.read(name, after, follow)
            # It says first whether there is anything to read; then the answer can still be a refusal.
            await anext(messages)
        except (RequestRejected, BadArguments, EventsReleased, EventsCut) as error:
            answer = _refusal(error)
            self._metrics.observe(answer.status, perf_counter() - started)
            await server_sent.refuse(answer, scope["method"], send)
            return
        self._metrics.observe(200, perf_counter() - started)
        self._metrics.streams += 1
        gone = asyncio.ensure_future(server_sent.until_gone(receive))
        try:
            # It begins with the place, so that a reader that has had no event yet comes again to the same one.
            await server_sent.begin(HEARTBEAT if after is None else block(after, None), send)
            if scope["method"] != "HEAD":
                await self._stream(messages, gone, send)
            await server_sent.end(send)
        finally:
            self._metrics.streams -= 1
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone
            await messages.aclose()  # type: ignore[attr-defined]  # a generator

    def _asked(self, path: str, scope: Scope) -> tuple[str, str | None, bool]:
        """(name, cursor, whether to follow) of a request that is served. Raises `RequestRejected` or `BadArguments`."""
        engine, name = self._engine, event_in(path)
        if name is None or name not in engine.app.events:
            raise RequestRejected("not_found", no_such_event(engine.app.name, name, engine.app.events))
        query = _query(scope.get("query_string", b""))
        follow = query.get("follow", "true")
        if follow not in _FOLLOWS:
            raise RequestRejected("bad_request", f"follow is true or false, got {shown(follow)}")
        after = checked_cursor(server_sent.last_id(scope["headers"]) or query.get("after"))
        if engine.unavailable_reason is not None:
            raise RequestRejected("unavailable", engine.unavailable_reason)
        if self._ending():
            raise RequestRejected("unavailable", server_sent.ENDING)
        if self._metrics.streams >= STREAMS_MAX:
            raise RequestRejected("overloaded", f"{STREAMS_MAX} readers of events are connected; try again soon")
        return name, after, _FOLLOWS[follow]

    async def _stream(
        self, messages: AsyncIterator[list[EventMessage]], gone: asyncio.Future[None], send: Send
    ) -> None:
        """Sends what comes until it ends, the reader is gone, or the gateway ends."""
        silent_s = 0.0

        async def take(found: list[EventMessage]) -> None:
            nonlocal silent_s
            silent_s = 0.0
            for message in found:
                await server_sent.give(block(message.cursor, _encode(message)), send)
                self._metrics.events_sent += 1

        async def look() -> None:
            nonlocal silent_s
            silent_s += server_sent.LOOK_SECONDS
            if silent_s >= HEARTBEAT_SECONDS:
                silent_s = 0.0
                await server_sent.give(HEARTBEAT, send)

        try:
            if await server_sent.steps(messages, gone, self._ending, take, look):
                raise EventsCut(server_sent.ENDING)
        except (EventsCut, EventsReleased) as error:
            await server_sent.give(server_sent.failure(error), send)


def _refusal(error: RequestRejected | BadArguments | EventsReleased | EventsCut) -> Answer:
    if isinstance(error, RequestRejected):
        return status.refusal(error, error.code)
    code = {BadArguments: "bad_request", EventsReleased: "released"}.get(type(error), "unavailable")
    return status.refusal(error, code)


def _query(query: bytes) -> Mapping[str, str]:
    found = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    for name, values in found.items():
        if name not in ("after", "follow") or len(values) > 1:
            told = f"a stream of events takes after and follow, each once: got {shown(name)}"
            raise RequestRejected("bad_request", told)
    return {name: values[0] for name, values in found.items()}
