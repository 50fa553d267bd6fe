"""`POST /v1/{operator}/{key}/{function}`, `GET /v1/{operator}/{key}`: one request from its headers to its answer; and
bulk loads, passed on.

A bare ASGI application, since this is where every transaction passes: no task, no routing table and no request
object of its own. It decides what a request asks for; the engine decides what comes of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from time import perf_counter
from typing import NamedTuple

from styx.errors import (
    EngineFailed,
    InTransactionError,
    NotSent,
    OutcomeUnknown,
    RequestRejected,
    ValueTooLarge,
)
from styx.gateway import address, request_options, status
from styx.gateway.arguments import ArgumentReader
from styx.gateway.auth.identity import IDENTITY
from styx.gateway.body import ClientGone, IncomingBody, too_large
from styx.gateway.bulk_load import answer_load
from styx.gateway.metrics import CLIENT_GONE_STATUS, GatewayMetrics
from styx.gateway.service import Engine
from styx.gateway.status import Answer
from styx.http.asgi import Receive, Scope, Send
from styx.model.function_spec import READ_FUNCTION
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.request import request_ids
from styx.model.signature import NO_ARGUMENTS

_log = logging.getLogger("styx.gateway")


class _Route(NamedTuple):
    operator: Operator
    function: str
    arguments: ArgumentReader


class RequestEndpoint:
    """Serves transactions. `in_flight` counts the requests it has not answered yet."""

    def __init__(self, engine: Engine, timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT) -> None:
        self.in_flight = 0
        self.metrics = GatewayMetrics(lambda: self.in_flight)
        self._engine = engine
        self._timeout_seconds = timeout_seconds
        self._app = engine.app
        self._routes: dict[tuple[str, str], _Route] = {}
        self._request_ids = request_ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request."""
        started = perf_counter()
        request_id = next(self._request_ids)
        headers = dict(scope["headers"])
        body = IncomingBody(receive)
        self.in_flight += 1
        try:
            answer = await self._answer(scope, headers, body, request_id)
            if not body.complete and b"expect" not in headers:
                # The server cancels what outlives its grace period; the answer stands already.
                with contextlib.suppress(asyncio.CancelledError):
                    await body.discard()
        except ClientGone:
            self.metrics.observe(CLIENT_GONE_STATUS, perf_counter() - started)
            return
        finally:
            self.in_flight -= 1
        self.metrics.observe(answer.status, perf_counter() - started)
        await _send(send, answer, request_id)

    async def _answer(
        self, scope: Scope, headers: Mapping[bytes, bytes], body: IncomingBody, request_id: str
    ) -> Answer:
        """Whatever goes wrong once the request is with the engine, nobody is told that it was not run."""
        submitted, seconds = False, self._timeout_seconds
        try:
            if len(headers) < len(scope["headers"]):
                request_options.check_once(scope["headers"])
            path = address.raw_path(scope)
            load_into = address.parse_load(path)
            if load_into is not None:
                operator, seconds = self._resolve_load(load_into, scope, headers)
                name = request_options.idempotency_key(headers, scope.get(IDENTITY))
                submitted = True
                query = scope.get("query_string", b"")
                return await answer_load(self._engine, operator, query, headers, body, name, seconds, request_id)
            reads = address.parse_read(path) if scope["method"] == "GET" else None
            if reads is not None:
                seconds = request_options.timeout_seconds(headers, seconds)
                operator, key = self._resolve_read(reads, headers)
                self._admit()
                # A read changes nothing, so its Idempotency-Key, which some programs send with everything, counts for
                # nothing. It must not put a reply where a call with the same key would find it.
                request = self._engine.maker.make(operator, key, READ_FUNCTION, NO_ARGUMENTS, "", request_id)
                submitted = True
                async with asyncio.timeout(seconds):
                    return status.answer_of_read(await self._engine.submit_request(request))
            route, key = self._resolve(path, scope, headers)
            idempotency_key = request_options.idempotency_key(headers, scope.get(IDENTITY))
            seconds = request_options.timeout_seconds(headers, seconds)
            self._admit()
            self._check_length(headers)
            async with asyncio.timeout(seconds):
                params = route.arguments.read(await body.read(self._engine.limits.request_bytes_max))
                self._check_size(params, route)
                make = self._engine.maker.make
                request = make(route.operator, key, route.function, params, idempotency_key, request_id)
                submitted = True
                return status.answer_of(await self._engine.submit_request(request))
        except (InTransactionError, RequestRejected) as error:
            # Also when awaited: it was not taken. No outcome that is unknown is one of these.
            return status.refusal(error, error.code)
        except TimeoutError:
            if submitted:
                late = TimeoutError(f"no reply within {seconds:g} s; the request may still commit")
                return status.no_reply(late, request_id)
            slow = RequestRejected("bad_request", f"the body did not arrive within {seconds:g} s; nothing was run")
            return status.refusal(slow, slow.code)
        except ClientGone:
            raise
        except (OutcomeUnknown, EngineFailed) as error:
            return _cut_off(str(error), submitted, request_id)
        except asyncio.CancelledError:
            # The server cancels what outlives its grace period. Its task ends after the client has been told.
            return _cut_off("the gateway is shutting down", submitted, request_id)
        except Exception:  # noqa: BLE001 - logged and answered: a client must not be left without an answer
            _log.exception("request %s failed in the gateway", request_id)
            if submitted:
                return _cut_off("the gateway failed, and its log says why", submitted, request_id)
            return status.failure("internal", "GatewayFault", "the gateway failed; its log says why; nothing was run")

    def _resolve(self, path: str, scope: Scope, headers: Mapping[bytes, bytes]) -> tuple[_Route, Key]:
        """The function that a request names, and its checked key."""
        wanted = address.parse(path)
        if wanted is None:
            raise _Refused(
                "not_found",
                f"requests go to {address.PREFIX}OPERATOR/KEY/FUNCTION with POST, and to {address.PREFIX}OPERATOR/KEY "
                "with GET; write a / inside a key as %2F",
            )
        _check_method(scope)
        if self._engine.app is not self._app:
            # Another version has been deployed: operators, functions and parameters may be different ones.
            self._app = self._engine.app
            self._routes.clear()
        route = self._routes.get((wanted.operator, wanted.function)) or self._new_route(wanted)
        return route, address.key_of(wanted.key, route.operator, headers.get(b"styx-key-type"))

    def _new_route(self, wanted: address.Address) -> _Route:
        operator = self._engine.app.operator(wanted.operator)
        spec = operator.function(wanted.function)
        route = _Route(operator, spec.name, ArgumentReader(spec.signature))
        self._routes[wanted.operator, wanted.function] = route
        return route

    def _resolve_read(self, reads: tuple[str, str], headers: Mapping[bytes, bytes]) -> tuple[Operator, Key]:
        operator = self._engine.app.operator(reads[0])
        return operator, address.key_of(reads[1], operator, headers.get(b"styx-key-type"))

    def _resolve_load(self, into: str, scope: Scope, headers: Mapping[bytes, bytes]) -> tuple[Operator, float]:
        """The operator of a bulk load, and how many seconds each of its chunks may take."""
        _check_method(scope)
        operator = self._engine.app.operator(into)
        seconds = request_options.timeout_seconds(headers, self._timeout_seconds)
        self._admit()
        return operator, seconds

    def _admit(self) -> None:
        """Refuses what cannot be served, before its body is read."""
        engine = self._engine
        reason = engine.unavailable_reason
        if reason is not None or not engine.ready:
            raise RequestRejected("unavailable", reason or "the engine is starting; try again soon")
        limit = engine.limits.in_flight_max
        if self.in_flight > limit or engine.in_flight >= limit:
            raise RequestRejected("overloaded", f"{limit} requests are in flight; try again soon")

    def _check_length(self, headers: Mapping[bytes, bytes]) -> None:
        engine = self._engine
        length = headers.get(b"content-length")
        if length is None:
            return
        if not length.isdigit():
            raise RequestRejected("bad_request", "Content-Length is not a number")
        # Longer than any limit is compared as text: int() refuses thousands of digits.
        if len(length) > len(str(2**63)) or int(length) > engine.limits.request_bytes_max:
            raise too_large(engine.limits.request_bytes_max)

    def _check_size(self, params: bytes, route: _Route) -> None:
        limit = self._engine.limits.value_bytes_max
        if len(params) > limit:
            raise ValueTooLarge(
                f"the arguments of {route.operator.name}.{route.function} have {len(params)} bytes encoded; "
                f"the limit is {limit}: send less"
            )


def _check_method(scope: Scope) -> None:
    if scope["method"] != "POST":
        raise _Refused("method_not_allowed", f"requests are sent with POST, not {scope['method']}")


def _cut_off(why: str, submitted: bool, request_id: str) -> Answer:
    """The answer to a request that ended without a reply, for a reason that is not its own."""
    if submitted:
        return status.no_reply(OutcomeUnknown(why, request_id), request_id)
    return status.refusal(NotSent(f"{why}; nothing was run"), "unavailable")


class _Refused(RequestRejected):
    """A refusal with a code that only HTTP has."""


async def _send(send: Send, answer: Answer, request_id: str) -> None:
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length, (b"styx-request-id", request_id.encode("ascii"))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
