"""`POST /v1/sql` runs a query, `GET /v1/sql` lists the tables.

The result is sent as it comes, and little of it is held: its beginning, so that a query that fails early has an answer
that says so. One that fails later ends the connection before the answer's end, which every client of HTTP sees. A
client that leaves ends its query.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec

from styx.errors import RequestRejected
from styx.gateway import status
from styx.gateway.body import ClientGone, IncomingBody
from styx.gateway.reads import epoch_in
from styx.gateway.status import Answer, MethodNotAllowed
from styx.http.asgi import CLOSE, Receive, Scope, Send
from styx.metrics.histogram import Histogram
from styx.query.service import Answer as Found
from styx.query.service import Limits, QueryFailed, QueryRefused, QueryService
from styx.replica.encoders import ENCODERS
from styx.replica.service import NothingToAsk, NotReached
from styx.replica.sql_request import BODY_BYTES_MAX, SqlRequest, of_body

HELD_BYTES: Final = 256 * 1024
"""So much of a result is held before its answer begins; a shorter one is sent at once, with its length."""
READING_SECONDS_MAX: Final = 300.0
"""How long a client may take to read a result, beyond the query's own limit of time: the query holds a place."""
SQL_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
AGE: Final = b"styx-age"
"""The header with the seconds since a result was the newest that is known of."""
Reach = Callable[[int, float], Awaitable[None]]
"""Waits for the end of an epoch, for so many seconds at most; raises `NotReached`."""
GONE_BACK: Final = "what was there has turned out to be of another history"
"""Why a result is of an older epoch than the one that was waited for. A later state that has come meanwhile is not what
the result was made of.
"""
_encode = msgspec.json.Encoder().encode


class SqlEndpoint:
    """Serves the queries of a service, each of which may use at most `most`. `note` stands beside the tables. `reach`
    waits for a session's token; without it every query sees what was answered before.
    """

    def __init__(self, service: QueryService, most: Limits, note: str = "", reach: Reach | None = None) -> None:
        self._reach = reach
        self.latency = Histogram(SQL_SECONDS)
        self._service = service
        self._most = most
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        method = scope["method"]
        try:
            if method in ("GET", "HEAD"):
                await respond(self._listed(), scope, send)
            elif method == "POST":
                await self._post(scope, receive, send)
            else:
                raise MethodNotAllowed(method, ("GET", "POST"))
        except (RequestRejected, QueryRefused) as error:
            await respond(refusal_of(error), scope, send)
        except ClientGone:
            pass

    def _listed(self) -> Answer:
        tables = [
            {
                "schema": table.schema,
                "name": table.name,
                "columns": [{"name": name, "kind": kind} for name, kind in table.columns],
            }
            for table in self._service.tables()
        ]
        note = {"note": self._note} if self._note else {}
        return Answer(200, _encode({"tables": tables, **note}))

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        incoming = IncomingBody(receive)
        try:
            body = await incoming.read(BODY_BYTES_MAX, headers.get(b"content-length"))
        except RequestRejected:
            await incoming.discard()
            raise
        request = of_body(headers, scope.get("query_string", b""), body, self._most)
        token = token_of(headers)
        began = time.perf_counter()
        sending = _Sending(send)
        await while_there(self._answer(request, token, sending), receive, lambda: sending.ended)
        self.latency.observe(time.perf_counter() - began)

    async def _answer(self, request: SqlRequest, token: int | None, sending: _Sending) -> None:
        try:
            if token is not None and self._reach is not None:
                await self._reach(token, request.limits.seconds)
            async with (
                asyncio.timeout(request.limits.seconds + READING_SECONDS_MAX),
                self._service.run(request.asked, request.limits) as found,
            ):
                if token is not None and found.epoch < token and self._reach is not None:
                    raise NotReached(token, request.limits.seconds, GONE_BACK)
                await _send_result(found, request.format, sending)
        except (QueryFailed, QueryRefused, TimeoutError) as error:
            await sending.fail(error, in_lines=request.format == "jsonl")


async def _send_result(found: Found, form: str, sending: _Sending) -> None:
    encoder = ENCODERS[form](found.schema, found.epoch)
    sending.headers = [
        (b"content-type", encoder.content_type.encode()),
        status.NOT_CACHED,
        (status.EPOCH, b"%d" % found.epoch),
    ]
    if found.as_of_s is not None:
        sending.headers.append((AGE, b"%.3f" % max(0.0, time.time() - found.as_of_s)))
    await sending.more(encoder.begin())
    async for batch in found.batches:
        await sending.more(encoder.rows(batch))
    await sending.end(encoder.end())


class _Sending:
    """An answer whose beginning is held back. `ended`: all of it was sent."""

    def __init__(self, send: Send) -> None:
        self.ended = False
        self.headers: list[tuple[bytes, bytes]] = []
        self._send = send
        self._held: list[bytes] = []
        self._bytes = 0
        self._begun = False

    async def more(self, data: bytes) -> None:
        """A part of the body."""
        if self._begun:
            await self._body(data, more=True)
            return
        self._held.append(data)
        self._bytes += len(data)
        if self._bytes > HELD_BYTES:
            await self._begin([])
            await self._body(b"".join(self._held), more=True)
            self._held = []

    async def end(self, data: bytes) -> None:
        """The last part."""
        if self._begun:
            await self._body(data, more=False)
            return
        body = b"".join([*self._held, data])
        await self._begin([(b"content-length", b"%d" % len(body))])
        await self._body(body, more=False)

    async def fail(self, error: QueryFailed | QueryRefused | TimeoutError, in_lines: bool) -> None:
        """Says why there is no result, if the answer has not begun; else the answer stays without an end."""
        answer = refusal_of(error)
        if not self._begun:
            self.headers = [*answer.headers, status.NOT_CACHED, (b"content-length", b"%d" % len(answer.body))]
            await self._send({"type": "http.response.start", "status": answer.status, "headers": self.headers})
            await self._body(answer.body, more=False)
            return
        if in_lines:
            await self._body(answer.body + b"\n", more=True)

    async def _begin(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._begun = True
        sent = [*self.headers, *(headers or [CLOSE])]
        await self._send({"type": "http.response.start", "status": 200, "headers": sent})

    async def _body(self, data: bytes, more: bool) -> None:
        self.ended = not more
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


async def while_there(
    work: Coroutine[Any, Any, None], receive: Receive, ended: Callable[[], bool] = lambda: False
) -> None:
    """Does the work, unless the client leaves before the answer has `ended`; then raises `ClientGone`."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done() and not ended():
            raise ClientGone
        await working
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.wait([working, leaving])


async def respond(answer: Answer, scope: Scope, send: Send) -> None:
    """Sends an answer that is there as a whole."""
    headers = [*answer.headers, status.NOT_CACHED, (b"content-length", b"%d" % len(answer.body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})


def refusal_of(error: RequestRejected | QueryFailed | QueryRefused | TimeoutError) -> Answer:
    """The answer to a query that has no result."""
    if isinstance(error, RequestRejected):
        return status.refusal(error, error.code)
    if isinstance(error, QueryFailed):
        return status.failure("bad_request" if error.cause == "query" else "query_limit", "QueryFailed", str(error))
    if isinstance(error, TimeoutError):
        return status.failure("query_limit", "QueryFailed", "the result was not read in time")
    code = {NothingToAsk: "unavailable", NotReached: "timeout"}.get(type(error), "overloaded")
    return status.failure(code, type(error).__name__, str(error))


def token_of(headers: Mapping[bytes, bytes]) -> int | None:
    """The session's token in the request, None without one. Raises `RequestRejected` (`bad_request`)."""
    sent = headers.get(status.EPOCH)
    return None if sent is None else epoch_in(sent, "Styx-Epoch")


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
