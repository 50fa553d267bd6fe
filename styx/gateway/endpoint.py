"""The endpoint of requests below `/v1/`: calls, reads and bulk loads, each from its headers to its answer.

A bare ASGI application: no task, no routing table and no request object of its own. What it decides about a call is in
`calls.py`, which it shares with the direct way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from time import perf_counter
from typing import Final

from styx.errors import RequestRejected
from styx.gateway import edits, head, reads, status
from styx.gateway.auth.identity import IDENTITY
from styx.gateway.body import ClientGone, IncomingBody
from styx.gateway.bulk_load import answer_load
from styx.gateway.calls import POST, SAFE, Calls, Route, ended
from styx.gateway.dead_calls import answer_dead, check_method
from styx.gateway.edits import answer_edit
from styx.gateway.engine import Engine
from styx.gateway.head import DEAD_PREFIX, EDIT_PREFIX, PREFIX, Address, DeadAddress, EditAddress
from styx.gateway.listing import answer_list
from styx.gateway.publishing import answer_publish
from styx.gateway.status import Answer, MethodNotAllowed
from styx.http.asgi import Receive, Scope, Send

CLIENT_GONE_STATUS: Final = 499
"""The status counted for a request whose client was gone before its answer; proxies use the same number."""


class RequestEndpoint:
    """Serves the requests of one engine; `calls` decides about those that call a function."""

    def __init__(self, engine: Engine, calls: Calls) -> None:
        self._engine = engine
        self._calls = calls

    async def __call__(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request, whose `request_path` is `path`."""
        started = perf_counter()
        metrics = self._calls.metrics
        request_id = next(self._calls.request_ids)
        headers, method = dict(scope["headers"]), scope["method"]
        if method != POST:
            # Some programs send an Idempotency-Key with every request. It is ignored for a read: a call with the same
            # key must not find the read's reply.
            headers.pop(b"idempotency-key", None)
        body = IncomingBody(receive)
        metrics.in_flight += 1
        try:
            make = self._answer_operations if path.startswith((DEAD_PREFIX, EDIT_PREFIX)) else self._answer
            answer = await make(path, scope, headers, body, request_id)
            if not body.complete and b"expect" not in headers:
                # The server cancels tasks after its grace period. The answer is known already.
                with contextlib.suppress(asyncio.CancelledError):
                    await body.discard()
        except ClientGone:
            metrics.observe(CLIENT_GONE_STATUS, perf_counter() - started)
            return
        finally:
            metrics.in_flight -= 1
        metrics.observe(answer.status, perf_counter() - started)
        sent = status.headers_of(answer, request_id)
        if method != POST:
            sent.append(status.NOT_CACHED)  # a cache may keep some answers to a GET, errors as well, if it is not told
        await send({"type": "http.response.start", "status": answer.status, "headers": sent})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})

    async def _answer(
        self, path: str, scope: Scope, headers: Mapping[bytes, bytes], body: IncomingBody, request_id: str
    ) -> Answer:
        """Makes the answer. Once the engine has the request, no answer claims that nothing was run."""
        submitted, seconds, engine = False, self._calls.timeout_seconds, self._engine
        try:
            if len(headers) < len(scope["headers"]):
                head.check_once(scope["headers"])
            method = scope["method"]
            asked = _asked(path, method)
            if asked.function is None or asked.key is None:
                seconds = head.timeout_seconds(headers, seconds)
                submitted = True
                return await self._answer_other(asked, scope, headers, body, seconds, request_id)
            call = self._calls.call(asked, method, headers, scope.get(IDENTITY))
            seconds = call.seconds
            self._calls.admit()
            async with asyncio.timeout(seconds):
                length = headers.get(b"content-length")
                sent = (
                    await body.read(engine.limits.request_bytes_max, length)
                    if method == POST
                    else self._queried(call.route, scope)
                )
                request = self._calls.placed(call, sent, request_id)
                if call.outside is None:
                    submitted = True
                    return status.answer_of(await engine.submit_request(request))
            return await reads.answer_read(engine, request, call.outside, seconds)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a client must not be left without an answer
            return ended(error, submitted, seconds, request_id)

    async def _answer_operations(
        self, path: str, scope: Scope, headers: Mapping[bytes, bytes], body: IncomingBody, request_id: str
    ) -> Answer:
        """As `_answer`, for a path of dead calls or of an edit."""
        submitted, seconds = False, self._calls.timeout_seconds
        try:
            head.check_once(scope["headers"])
            method, query = scope["method"], scope.get("query_string", b"")
            dead = _asked_dead(path, method) if path.startswith(DEAD_PREFIX) else None
            edit = _asked_edit(path, method) if dead is None else None
            seconds = head.timeout_seconds(headers, seconds)
            self._calls.admit()
            submitted = True
            async with asyncio.timeout(seconds):
                if dead is not None:
                    return await answer_dead(self._engine, dead, query, headers, request_id)
                assert edit is not None
                return await answer_edit(self._engine, edit, method, query, headers, body, request_id)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as above
            return ended(error, submitted, seconds, request_id)

    async def _answer_other(
        self,
        asked: Address,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        body: IncomingBody,
        seconds: float,
        request_id: str,
    ) -> Answer:
        """Makes the answer to a read, a listing, a bulk load, and to an event that is published. Raises what `_answer`
        catches; what is raised before the engine has the request says that nothing was run.
        """
        engine = self._engine
        if asked.key is None:
            if scope["method"] != POST:
                self._calls.admit()
                query = scope.get("query_string", b"")
                return await answer_list(engine, engine.app.operator(asked.operator), query, headers, seconds)
            operator = head.served(engine.app.operator(asked.operator))
            idempotency_key = head.idempotency_key(headers, scope.get(IDENTITY))
            self._calls.admit()
            query = scope.get("query_string", b"")
            return await answer_load(engine, operator, query, headers, body, idempotency_key, seconds, request_id)
        if scope["method"] == POST:
            self._calls.admit()
            async with asyncio.timeout(seconds):
                return await answer_publish(engine, asked.key, scope, headers, body, request_id)
        request, outside = self._calls.read(asked, scope.get("query_string", b""), headers, request_id)
        if outside is not None:
            return await reads.answer_read(engine, request, outside, seconds)
        async with asyncio.timeout(seconds):
            return status.answer_of_read(await engine.submit_request(request))

    def _queried(self, route: Route, scope: Scope) -> bytes:
        """The JSON of the arguments in the query of a call by a safe method."""
        assert route.query is not None, "a function that may write is called with POST"
        return route.query.body(scope.get("query_string", b""))


def _asked(path: str, method: str) -> Address:
    """The address in a path. Raises `RequestRejected` if the method does not fit the address."""
    asked = head.parse(path)
    reads = asked is not None and asked.key is not None and asked.function is None
    if asked is None or (reads and method not in SAFE and head.published(path, method) is None):
        raise RequestRejected(
            "not_found",
            f"requests go to {PREFIX}OPERATOR/KEY/FUNCTION with POST, and to {PREFIX}OPERATOR/KEY and {PREFIX}OPERATOR "
            f"with GET; an event is posted to {head.EVENTS_PREFIX}NAME; write a / inside a key as %2F",
        )
    if asked.key is None and method not in (*SAFE, POST):
        raise MethodNotAllowed(method, (*SAFE, POST))
    return asked


def _asked_dead(path: str, method: str) -> DeadAddress:
    """The address in a path of dead calls. Raises `RequestRejected` as `_asked`."""
    asked = head.parse_dead(path)
    if asked is None:
        raise RequestRejected(
            "not_found",
            f"dead calls are listed with GET {DEAD_PREFIX}OPERATOR, and tried again or dropped with POST "
            f"{DEAD_PREFIX}OPERATOR/ID/replay or …/drop",
        )
    check_method(asked, method)
    return asked


def _asked_edit(path: str, method: str) -> EditAddress:
    """The address in a path of an edit. Raises `RequestRejected` as `_asked`."""
    asked = head.parse_edit(path)
    if asked is None:
        raise RequestRejected("not_found", f"edits are made at {EDIT_PREFIX}OPERATOR/KEY, with GET and then POST")
    edits.check_method(method)
    return asked
