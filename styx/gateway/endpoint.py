"""The endpoint of requests below `/v1/`: calls, reads and bulk loads, each from its headers to its answer, and their
metrics.

A bare ASGI application, since every transaction passes here: no task, no routing table and no request object of its
own. It decides what a request asks for; the engine decides the outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from prometheus_client.core import Metric

from styx.errors import (
    EngineFailed,
    InTransactionError,
    NotSent,
    OutcomeUnknown,
    RequestRejected,
)
from styx.gateway import head, reads, status
from styx.gateway.auth.identity import IDENTITY
from styx.gateway.body import ArgumentReader, ClientGone, IncomingBody
from styx.gateway.bulk_load import answer_load
from styx.gateway.dead_calls import answer_dead, check_method
from styx.gateway.engine import Engine
from styx.gateway.head import DEAD_PREFIX, PREFIX, Address, DeadAddress
from styx.gateway.publishing import answer_publish
from styx.gateway.query import QueryReader
from styx.gateway.status import Answer, MethodNotAllowed
from styx.http.asgi import Receive, Scope, Send
from styx.metrics.exposition import Exposition, counter, counters, gauge, histogram
from styx.metrics.histogram import REQUEST_SECONDS, Histogram
from styx.model.freshness import Freshness
from styx.model.function_spec import READ_FUNCTION, READ_ROWS_FUNCTION
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT
from styx.model.operator import Operator
from styx.model.request import encode_arguments, request_ids
from styx.model.signature import NO_ARGUMENTS

CLIENT_GONE_STATUS: Final = 499
"""The status counted for a request whose client was gone before its answer; proxies use the same number."""

POST: Final = "POST"
_SAFE: Final = ("GET", "HEAD")

_log = logging.getLogger("styx.gateway")


class _Route(NamedTuple):
    """A function, and the methods by which it is called. Only a read-only function has a `query`."""

    operator: Operator
    function: str
    arguments: ArgumentReader
    query: QueryReader | None
    methods: tuple[str, ...]


class RequestEndpoint:
    """Serves the requests of one engine. `timeout_seconds` is the wait for a reply if the request names no other."""

    def __init__(self, engine: Engine, timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT) -> None:
        self.metrics = GatewayMetrics()
        self._engine = engine
        self._timeout_seconds = timeout_seconds
        self._app = engine.app
        self._routes: dict[tuple[str, str], _Route] = {}
        self._request_ids = request_ids()

    async def __call__(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request, whose `request_path` is `path`."""
        started = perf_counter()
        metrics = self.metrics
        request_id = next(self._request_ids)
        headers, method = dict(scope["headers"]), scope["method"]
        if method != POST:
            # Some programs send an Idempotency-Key with every request. It is ignored for a read: a call with the same
            # key must not find the read's reply.
            headers.pop(b"idempotency-key", None)
        body = IncomingBody(receive)
        metrics.in_flight += 1
        try:
            make = self._answer_dead if path.startswith(DEAD_PREFIX) else self._answer
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
        length, own = (b"content-length", b"%d" % len(answer.body)), (b"styx-request-id", request_id.encode("ascii"))
        sent = [*answer.headers, length, own]
        if method != POST:
            sent.append(status.NOT_CACHED)  # a cache may keep some answers to a GET, errors as well, if it is not told
        await send({"type": "http.response.start", "status": answer.status, "headers": sent})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})

    async def _answer(
        self, path: str, scope: Scope, headers: Mapping[bytes, bytes], body: IncomingBody, request_id: str
    ) -> Answer:
        """Makes the answer. Once the engine has the request, no answer claims that nothing was run."""
        submitted, seconds, engine = False, self._timeout_seconds, self._engine
        try:
            if len(headers) < len(scope["headers"]):
                head.check_once(scope["headers"])
            method = scope["method"]
            asked = _asked(path, method)
            if asked.function is None or asked.key is None:
                seconds = head.timeout_seconds(headers, seconds)
                submitted = True
                return await self._answer_other(asked, scope, headers, body, seconds, request_id)
            route = self._route(asked.operator, asked.function, method)
            key = head.key_of(asked.key, route.operator, headers)
            # A client may send its token with every request, and a call goes through the log all the same.
            asks = method != POST or reads.FRESHNESS in headers or reads.AT in headers
            outside = self._outside(route, headers) if asks else None
            idempotency_key = "" if outside is not None else head.idempotency_key(headers, scope.get(IDENTITY))
            seconds = head.timeout_seconds(headers, seconds)
            self._admit()
            async with asyncio.timeout(seconds):
                length = headers.get(b"content-length")
                sent = (
                    await body.read(engine.limits.request_bytes_max, length)
                    if method == POST
                    else self._queried(route, scope)
                )
                params = route.arguments.read(sent, engine.limits.value_bytes_max)
                make = engine.maker.make
                request = make(route.operator, key, route.function, params, idempotency_key, request_id)
                if outside is None:
                    submitted = True
                    return status.answer_of(await engine.submit_request(request))
            return await reads.answer_read(engine, request, outside, seconds)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a client must not be left without an answer
            return _ended(error, submitted, seconds, request_id)

    async def _answer_dead(
        self, path: str, scope: Scope, headers: Mapping[bytes, bytes], body: IncomingBody, request_id: str
    ) -> Answer:
        """As `_answer`, for a path of dead calls."""
        submitted, seconds = False, self._timeout_seconds
        try:
            head.check_once(scope["headers"])
            asked = _asked_dead(path, scope["method"])
            seconds = head.timeout_seconds(headers, seconds)
            self._admit()
            submitted = True
            async with asyncio.timeout(seconds):
                return await answer_dead(self._engine, asked, scope.get("query_string", b""), headers, request_id)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as above
            return _ended(error, submitted, seconds, request_id)

    async def _answer_other(
        self,
        asked: Address,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        body: IncomingBody,
        seconds: float,
        request_id: str,
    ) -> Answer:
        """Makes the answer to a read, to a bulk load, and to an event that is published. Raises what `_answer` catches;
        what is raised before the engine has the request says that nothing was run.
        """
        engine = self._engine
        if asked.key is None:
            operator = head.served(engine.app.operator(asked.operator))
            idempotency_key = head.idempotency_key(headers, scope.get(IDENTITY))
            self._admit()
            query = scope.get("query_string", b"")
            return await answer_load(engine, operator, query, headers, body, idempotency_key, seconds, request_id)
        if scope["method"] == POST:
            self._admit()
            async with asyncio.timeout(seconds):
                return await answer_publish(engine, asked.key, scope, headers, body, request_id)
        operator = engine.app.operator(asked.operator)
        key = head.key_of(asked.key, operator, headers)
        self._admit()
        function, arguments = _read(scope.get("query_string", b""))
        request = engine.maker.make(operator, key, function, arguments, "", request_id)
        outside = reads.freshness(headers)
        if outside is not None:
            return await reads.answer_read(engine, request, outside, seconds)
        async with asyncio.timeout(seconds):
            return status.answer_of_read(await engine.submit_request(request))

    def _outside(self, route: _Route, headers: Mapping[bytes, bytes]) -> Freshness | None:
        """What a call asks for that is a read outside the log; None for one that goes through it. Raises
        `RequestRejected`, `not_read_only` for a function that may write.
        """
        outside = reads.freshness(headers)
        if outside is not None and route.query is None:
            function = f"{route.operator.name}.{route.function}"
            raise RequestRejected("not_read_only", f"{function} may write: leave out Styx-Freshness and Styx-At")
        return outside

    def _queried(self, route: _Route, scope: Scope) -> bytes:
        """The JSON of the arguments in the query of a call by a safe method."""
        assert route.query is not None, "a function that may write is called with POST"
        return route.query.body(scope.get("query_string", b""))

    def _route(self, operator: str, function: str, method: str) -> _Route:
        """The way to a function. Raises `MethodNotAllowed`, `UnknownOperator` or `UnknownFunction`."""
        if self._engine.app is not self._app:
            # Another version has been deployed: its operators, functions and parameters may differ.
            self._app = self._engine.app
            self._routes.clear()
        route = self._routes.get((operator, function))
        if route is None:
            declared = head.served(self._app.operator(operator))
            spec = declared.function(function)
            query, methods = (QueryReader(spec.signature), _SAFE) if spec.read_only else (None, ())
            arguments = ArgumentReader(spec.signature)
            route = _Route(declared, spec.name, arguments, query, (*methods, POST))
            self._routes[operator, function] = route
        if method not in route.methods:
            raise MethodNotAllowed(method, route.methods)
        return route

    def _admit(self) -> None:
        """Refuses a request that cannot be served, before its body is read."""
        engine = self._engine
        reason = engine.unavailable_reason
        if reason is not None:
            raise RequestRejected("unavailable", reason)
        limit = engine.limits.in_flight_max
        if self.metrics.in_flight > limit or engine.in_flight >= limit:
            raise RequestRejected("overloaded", f"{limit} requests are in flight; try again soon")


def _asked(path: str, method: str) -> Address:
    """The address in a path. Raises `RequestRejected` if the method does not fit the address."""
    asked = head.parse(path)
    reads = asked is not None and asked.key is not None and asked.function is None
    if asked is None or (reads and method not in _SAFE and head.published(path, method) is None):
        raise RequestRejected(
            "not_found",
            f"requests go to {PREFIX}OPERATOR/KEY/FUNCTION with POST, and to {PREFIX}OPERATOR/KEY with GET; "
            f"an event is posted to {head.EVENTS_PREFIX}NAME; write a / inside a key as %2F",
        )
    if asked.key is None and method != POST:
        raise MethodNotAllowed(method, (POST,))
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


def _ended(error: BaseException, submitted: bool, seconds: float, request_id: str) -> Answer:
    """The answer to a request that ended in `error`; raises `ClientGone` again."""
    if isinstance(error, InTransactionError | RequestRejected):
        # The engine raises these only for requests that it has not taken, also when the reply is awaited.
        return status.refusal(error, error.code)
    if isinstance(error, TimeoutError):
        if submitted:
            late = TimeoutError(f"no reply within {seconds:g} s; the request may still commit")
            return status.no_reply(late, request_id)
        slow = RequestRejected("bad_request", f"the body did not arrive within {seconds:g} s; nothing was run")
        return status.refusal(slow, slow.code)
    if isinstance(error, ClientGone):
        raise error
    if isinstance(error, OutcomeUnknown | EngineFailed):
        return _cut_off(str(error), submitted, request_id)
    if isinstance(error, asyncio.CancelledError):
        # The server cancels tasks after its grace period. This task ends after the client has its answer.
        return _cut_off("the gateway is shutting down", submitted, request_id)
    _log.error("request %s failed in the gateway", request_id, exc_info=error)
    if submitted:
        return _cut_off("the gateway failed, and its log says why", submitted, request_id)
    return status.failure("internal", "GatewayFault", "the gateway failed; its log says why; nothing was run")


def _cut_off(why: str, submitted: bool, request_id: str) -> Answer:
    """The answer to a request that ended without a reply, through no fault of the request."""
    if submitted:
        return status.no_reply(OutcomeUnknown(why, request_id), request_id)
    return status.refusal(NotSent(f"{why}; nothing was run"), "unavailable")


class GatewayMetrics:
    """Requests by status, their latency, and how many are `in_flight`; requests refused at the door; and how many
    `streams` of events are open, and how many were sent; `change_readers` follow changes, and so many epochs were sent
    to them.

    The labels are the status and the code of a refusal, so their number is bounded whatever clients send.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.streams = 0
        self.events_sent = 0
        self.change_readers = 0
        self.changed_epochs_sent = 0
        self._by_status: dict[int, int] = {}
        self._refused: dict[str, int] = {}
        self._latency = Histogram(REQUEST_SECONDS)
        # Without the process's memory: the engine's metrics, which precede this text, have it.
        self._exposition = Exposition(self._collect, with_process=False)

    def observe(self, status: int, seconds: float) -> None:
        """Counts one request that was answered with `status` after `seconds`."""
        self._by_status[status] = self._by_status.get(status, 0) + 1
        self._latency.observe(seconds)

    def refused(self, code: str) -> None:
        """Counts one request that was refused at the door, for the reason `code`."""
        self._refused[code] = self._refused.get(code, 0) + 1

    def text(self) -> str:
        """All of them in Prometheus' text format."""
        return self._exposition.text()

    def _collect(self) -> Iterator[Metric]:
        by_status = {str(status): count for status, count in sorted(self._by_status.items())}
        yield counters("styx_gateway_requests_total", "Requests by HTTP status.", "status", by_status)
        yield counters("styx_gateway_refused_total", "Requests refused at the door.", "code", self._refused)
        yield histogram("styx_gateway_request_seconds", "From a request's headers to its answer.", self._latency)
        yield gauge("styx_gateway_in_flight", "Requests not answered yet.", self.in_flight)
        yield gauge("styx_gateway_event_streams", "Readers of events that are connected.", self.streams)
        yield counter("styx_gateway_events_sent_total", "Events sent to readers.", self.events_sent)
        yield gauge("styx_gateway_change_readers", "Readers of changes that are connected.", self.change_readers)
        epochs = "Epochs with changes sent to readers."
        yield counter("styx_gateway_changed_epochs_sent_total", epochs, self.changed_epochs_sent)


def _read(query: bytes) -> tuple[str, bytes]:
    """The function and the arguments of a read: of the entity's state, or of its rows in the table that `?rows=` names.

    Other parameters count for nothing.
    """
    if b"rows" in query:
        table = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)).get("rows")
        if table is not None:
            return READ_ROWS_FUNCTION, encode_arguments((table,))
    return READ_FUNCTION, NO_ARGUMENTS
