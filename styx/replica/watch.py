"""`GET /v1/sql/watch?sql=…`: server-sent events with the result of a query, at once and whenever it has changed at a
later epoch.

The query runs again when a later epoch has come; only what it gives is compared. A watcher holds no place while it
waits, and gets no event for an epoch that it did not see.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final

from styx.errors import RequestRejected
from styx.gateway import status
from styx.gateway.body import ClientGone
from styx.gateway.reads import epoch_in
from styx.gateway.status import MethodNotAllowed
from styx.http.asgi import Receive, Scope, Send
from styx.query.service import Asked, Limits, QueryFailed, QueryRefused, QueryService
from styx.replica.encoders import JsonObject
from styx.replica.service import NotReached
from styx.replica.sql_endpoint import GONE_BACK, Reach, refusal_of, respond, token_of, while_there
from styx.replica.sql_request import limits_of, options_of
from styx.values.event_lines import ERROR, HEARTBEAT, block

WATCHERS_MAX: Final = 64
RESULT_BYTES_MAX: Final = 1024 * 1024
"""Of one result that is sent as an event."""
PAUSE_SECONDS: Final = 0.25
"""Between two runs of one watcher's query, at least; also until a query that found no place is tried again."""
HEARTBEAT_SECONDS: Final = 15.0
LOOK_SECONDS: Final = 1.0
"""How often a watcher that waits looks whether the server ends."""
_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    status.NOT_CACHED,
    (b"x-accel-buffering", b"no"),  # a proxy would hold events back
)
_LAST_EVENT: Final = b"last-event-id"
_ENDING: Final = "the server is shutting down: watch at another one"

Later = Callable[[], asyncio.Event]
"""Gives an event that is set once a later epoch has come."""


class WatchEndpoint:
    """Serves watchers of a service, whose queries may each use at most `most`. `later` tells of epochs, `ending`
    whether the server ends; `reach` waits for an epoch.
    """

    def __init__(
        self, service: QueryService, most: Limits, later: Later, ending: Callable[[], bool], reach: Reach
    ) -> None:
        self._reach = reach
        self.watchers = 0
        self.sent = 0
        self._service = service
        self._most = most
        self._later = later
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        try:
            if scope["method"] != "GET":
                raise MethodNotAllowed(scope["method"], ("GET",))
            options = options_of(scope.get("query_string", b""), ("sql", "rows", "seconds"))
            if "sql" not in options:
                raise RequestRejected("bad_request", "the URL has no query: …/v1/sql/watch?sql=SELECT…")
            if self._ending():
                raise RequestRejected("unavailable", _ENDING)
            if self.watchers >= WATCHERS_MAX:
                raise RequestRejected("overloaded", f"{WATCHERS_MAX} watchers are connected; try again soon")
            limits = limits_of(options, self._most)
            token = _seen(dict(scope["headers"]))
        except RequestRejected as error:
            await respond(refusal_of(error), scope, send)
            return
        self.watchers += 1
        try:
            await while_there(self._watch(Asked(options["sql"]), limits, token, scope, send), receive)
        except ClientGone:
            pass
        finally:
            self.watchers -= 1

    async def _watch(self, asked: Asked, limits: Limits, token: int | None, scope: Scope, send: Send) -> None:
        """The first result, or why there is none, decides how the answer begins."""
        begun, seen = False, b""
        if token is not None:
            try:
                await self._reach(token, limits.seconds)
            except QueryRefused as error:
                await respond(refusal_of(error), scope, send)
                return
        while True:
            later = self._later()
            try:
                data, epoch = await self._result(asked, limits)
                if token is not None and epoch < token and not begun:
                    raise NotReached(token, limits.seconds, GONE_BACK)
            except QueryRefused as error:
                if not begun:
                    await respond(refusal_of(error), scope, send)
                    return
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            except QueryFailed as error:
                await self._fail(error, begun, scope, send)
                return
            if not begun:
                await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
                begun = True
            digest = blake2b(data.partition(b",")[2]).digest()  # the epoch stands before the comma
            if digest != seen:
                seen = digest
                self.sent += 1
                await _part(block(str(epoch), data), send)
            if not await self._waited(later, send):
                told = {"error": {"code": "unavailable", "type": "Ending", "message": _ENDING}}
                await _part(block(None, json.dumps(told).encode(), ERROR), send)
                break
        await send({"type": "http.response.body", "body": b""})

    async def _result(self, asked: Asked, limits: Limits) -> tuple[bytes, int]:
        async with self._service.run(asked, limits) as found:
            encoder = JsonObject(found.schema, found.epoch)
            parts = [encoder.begin()]
            size = 0
            async for batch in found.batches:
                parts.append(encoder.rows(batch))
                size += len(parts[-1])
                if size > RESULT_BYTES_MAX:
                    raise QueryFailed(f"a result that is watched has at most {RESULT_BYTES_MAX} bytes", "memory")
            data = b"".join([*parts, encoder.end()])
            return data.replace(b"\n", b""), found.epoch  # JSON has no line feed within a text

    async def _waited(self, later: asyncio.Event, send: Send) -> bool:
        """Waits for a later epoch, and a moment at least. Returns whether it has come; else the server ends."""
        await asyncio.sleep(PAUSE_SECONDS)
        silent_s = 0.0
        while not later.is_set():
            if self._ending():
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(later.wait(), LOOK_SECONDS)
            silent_s += LOOK_SECONDS
            if silent_s >= HEARTBEAT_SECONDS:
                silent_s = 0.0
                await _part(HEARTBEAT, send)
        return True

    async def _fail(self, error: QueryFailed, begun: bool, scope: Scope, send: Send) -> None:
        answer = refusal_of(error)
        if not begun:
            await respond(answer, scope, send)
            return
        await _part(block(None, answer.body, ERROR), send)
        await send({"type": "http.response.body", "body": b""})


def _seen(headers: Mapping[bytes, bytes]) -> int | None:
    """The last epoch that the client has seen: its session's token, or that of the last event before it came again.
    None if it has seen none. Raises `RequestRejected` (`bad_request`).
    """
    last = headers.get(_LAST_EVENT)
    seen = [token_of(headers), None if not last else epoch_in(last, "Last-Event-ID")]
    return max((epoch for epoch in seen if epoch is not None), default=None)


async def _part(data: bytes, send: Send) -> None:
    message: dict[str, Any] = {"type": "http.response.body", "body": data, "more_body": True}
    await send(message)
