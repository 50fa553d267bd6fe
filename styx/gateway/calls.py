"""What a gateway decides about a call of a function and about a read of an entity, from its head, its body and its end,
and what it counts; nothing here waits.

Both ways of a request share it: the one behind ASGI (`endpoint.py`) and the direct one (`direct_calls.py`). It decides
what a request asks for; the engine decides the outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from prometheus_client.core import Metric

from styx.errors import EngineFailed, InTransactionError, NotSent, OutcomeUnknown, RequestRejected
from styx.gateway import head, reads, status
from styx.gateway.arguments import ArgumentReader
from styx.gateway.auth.identity import Identity
from styx.gateway.body import ClientGone
from styx.gateway.engine import Engine
from styx.gateway.head import Address
from styx.gateway.query import QueryReader
from styx.gateway.status import Answer, MethodNotAllowed
from styx.metrics.exposition import Exposition, counter, counters, gauge, histogram
from styx.metrics.histogram import REQUEST_SECONDS, Histogram
from styx.model.freshness import Freshness
from styx.model.function_spec import READ_FUNCTION, READ_ROWS_FUNCTION
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.request import Placed, encode_arguments, request_ids
from styx.model.signature import NO_ARGUMENTS

POST: Final = "POST"
SAFE: Final = ("GET", "HEAD")

_log = logging.getLogger("styx.gateway")


class Route(NamedTuple):
    """A function, and the methods by which it is called. Only a read-only function has a `query`."""

    operator: Operator
    function: str
    arguments: ArgumentReader
    query: QueryReader | None
    methods: tuple[str, ...]


class Call(NamedTuple):
    """A call by its head. `outside` is what it asks for if it is a read outside the log."""

    route: Route
    key: Key
    idempotency_key: str
    seconds: float
    outside: Freshness | None


class GatewayMetrics:
    """Requests by status, their latency, and how many are `in_flight`; requests refused at the door; and how many
    `streams` of events are open, and how many were sent; `change_readers` follow changes, and so many epochs were sent
    to them.
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


class Calls:
    """The calls of one engine, and the `metrics` of all its requests. `timeout_seconds` is the wait for a reply if the
    request names no other. While `draining`, each answer is the last one on its connection.
    """

    def __init__(self, engine: Engine, timeout_seconds: float) -> None:
        self.metrics = GatewayMetrics()
        self.draining = False
        self.timeout_seconds = timeout_seconds
        self.request_ids = request_ids()
        self._engine = engine
        self._app = engine.app
        self._routes: dict[tuple[str, str], Route] = {}

    def call(self, asked: Address, method: str, headers: Mapping[bytes, bytes], identity: Identity | None) -> Call:
        """What a call asks for, by its head alone; `asked` has all three names. Raises what refuses it."""
        operator, key, function = asked
        assert key is not None
        assert function is not None
        route = self._route(operator, function, method)
        checked = head.key_of(key, route.operator, headers)
        # A client may send its token with every request, and a call goes through the log all the same.
        asks = method != POST or reads.FRESHNESS in headers or reads.AT in headers
        outside = self._outside(route, headers) if asks else None
        idempotency_key = "" if outside is not None else head.idempotency_key(headers, identity)
        seconds = head.timeout_seconds(headers, self.timeout_seconds)
        return Call(route, checked, idempotency_key, seconds, outside)

    def read(
        self, asked: Address, query: bytes, headers: Mapping[bytes, bytes], request_id: str
    ) -> tuple[Placed, Freshness | None]:
        """The engine's request of the read of an entity or of its rows, and what it asks for if it is a read outside
        the log; `asked` has no function. Raises what refuses it.
        """
        engine = self._engine
        operator = engine.app.operator(asked.operator)
        assert asked.key is not None
        key = head.key_of(asked.key, operator, headers)
        self.admit()
        function, arguments = _read_by(query)
        return engine.maker.make(operator, key, function, arguments, "", request_id), reads.freshness(headers)

    def placed(self, call: Call, sent: bytes, request_id: str) -> Placed:
        """The engine's request of a call, with the arguments in the JSON `sent`. Raises what refuses it."""
        engine, route = self._engine, call.route
        params = route.arguments.read(sent, engine.limits.value_bytes_max)
        return engine.maker.make(route.operator, call.key, route.function, params, call.idempotency_key, request_id)

    def _outside(self, route: Route, headers: Mapping[bytes, bytes]) -> Freshness | None:
        """What a call asks for that is a read outside the log; None for one that goes through it. Raises
        `RequestRejected`, `not_read_only` for a function that may write.
        """
        outside = reads.freshness(headers)
        if outside is not None and route.query is None:
            function = f"{route.operator.name}.{route.function}"
            raise RequestRejected("not_read_only", f"{function} may write: leave out Styx-Freshness and Styx-At")
        return outside

    def _route(self, operator: str, function: str, method: str) -> Route:
        """The way to a function. Raises `MethodNotAllowed`, `UnknownOperator` or `UnknownFunction`."""
        if self._engine.app is not self._app:
            # Another version has been deployed: its operators, functions and parameters may differ.
            self._app = self._engine.app
            self._routes.clear()
        route = self._routes.get((operator, function))
        if route is None:
            declared = head.served(self._app.operator(operator))
            spec = declared.function(function)
            query, methods = (QueryReader(spec.signature), SAFE) if spec.read_only else (None, ())
            arguments = ArgumentReader(spec.signature)
            route = Route(declared, spec.name, arguments, query, (*methods, POST))
            self._routes[operator, function] = route
        if method not in route.methods:
            raise MethodNotAllowed(method, route.methods)
        return route

    def admit(self) -> None:
        """Refuses a request that cannot be served, before its body is read."""
        engine = self._engine
        reason = engine.unavailable_reason
        if reason is not None:
            raise RequestRejected("unavailable", reason)
        limit = engine.limits.in_flight_max
        if self.metrics.in_flight > limit or engine.in_flight >= limit:
            raise RequestRejected("overloaded", f"{limit} requests are in flight; try again soon")


def _read_by(query: bytes) -> tuple[str, bytes]:
    """The function and the arguments of a read: of the entity's state, or of its rows in the table that `?rows=` names.

    Other parameters count for nothing.
    """
    if b"rows" in query:
        table = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)).get("rows")
        if table is not None:
            return READ_ROWS_FUNCTION, encode_arguments((table,))
    return READ_FUNCTION, NO_ARGUMENTS


def ended(error: BaseException, submitted: bool, seconds: float, request_id: str) -> Answer:
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
