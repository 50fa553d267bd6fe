"""The direct way of calls: from a whole request to its answer without a task, in callbacks of connection and engine.

It takes POST of a path `/v1/OPERATOR/KEY/FUNCTION` that goes through the log. What it decides is in `calls.py`, which
it shares with the endpoint behind ASGI.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import cast

from styx.gateway import head, reads, status
from styx.gateway.auth.identity import Identity
from styx.gateway.body import check_announced, check_size
from styx.gateway.calls import POST, Calls, ended
from styx.gateway.engine import Engine
from styx.gateway.head import EVENTS_PREFIX, OWN_PREFIX, PREFIX
from styx.gateway.status import Answer
from styx.http.asgi import CLOSE
from styx.http.direct import DirectRequest
from styx.messages import ReplyRecord

_PREFIX = PREFIX.encode()
_OTHERS = (EVENTS_PREFIX.encode(), OWN_PREFIX.encode())
_SLASHES = 4
"""In a call's path: two around the version, and one before each name but the first."""


class DirectCalls:
    """The direct way to the calls of one engine."""

    def __init__(self, engine: Engine, calls: Calls) -> None:
        self._engine = engine
        self._calls = calls

    def takes(self, request: DirectRequest) -> bool:
        """As `Direct`. Not taken, and so left to ASGI: other paths and methods, queries, targets that a URL cannot
        have, reads outside the log, and requests with a repeated header.
        """
        target = request.target
        if (
            request.method != b"POST"
            or not target.startswith(_PREFIX)
            or target.count(b"/") != _SLASHES
            or b"?" in target
            or b"#" in target
            or target.startswith(_OTHERS)
            or not target.isascii()
        ):
            return False
        by_name = request.by_name = dict(request.headers)
        return len(by_name) == len(request.headers) and reads.FRESHNESS not in by_name and reads.AT not in by_name

    def serve(self, request: DirectRequest) -> None:
        """As `Direct`. Once the engine has the request, no answer claims that nothing was run."""
        calls, engine, headers = self._calls, self._engine, request.by_name
        under_way = _UnderWay(calls, request, next(calls.request_ids), calls.timeout_seconds)
        calls.metrics.in_flight += 1
        try:
            asked = head.parse(request.target.decode("ascii"))
            assert asked is not None, "it was taken"
            call = calls.call(asked, POST, headers, cast("Identity | None", request.client_is))
            under_way.seconds = call.seconds
            calls.admit()
            body = request.body
            check_announced(headers.get(b"content-length"), engine.limits.request_bytes_max)
            check_size(len(body), engine.limits.request_bytes_max)
            placed = calls.placed(call, body, under_way.request_id)
            under_way.submitted = True
            request.cancelled = under_way.cancelled
            engine.send_request(placed, call.seconds, under_way)
        except Exception as error:  # noqa: BLE001 - a client must not be left without an answer
            under_way.set_exception(error)


class _UnderWay:
    """A call that waits for its reply, as the engine's receiver of it. `seconds` is its wait."""

    __slots__ = ("_answered", "_calls", "_request", "_started", "request_id", "seconds", "submitted")

    def __init__(self, calls: Calls, request: DirectRequest, request_id: str, seconds: float) -> None:
        self.request_id = request_id
        self.seconds = seconds
        self.submitted = False
        self._calls = calls
        self._request = request
        self._started = perf_counter()
        self._answered = False

    def done(self) -> bool:
        """As `Receiver`."""
        return self._answered

    def set_result(self, record: ReplyRecord) -> None:
        """As `Receiver`: the reply has come."""
        try:
            answer = status.answer_of(record)
        except Exception as error:  # noqa: BLE001 - as behind ASGI; the engine is in the middle of its work
            self.set_exception(error)
        else:
            self._end(answer)

    def set_exception(self, error: BaseException) -> None:
        """As `Receiver`: no reply will come."""
        if not self._answered:
            self._end(ended(error, self.submitted, self.seconds, self.request_id))

    def cancelled(self) -> None:
        """The server's grace period is over."""
        self.set_exception(asyncio.CancelledError())

    def _end(self, answer: Answer) -> None:
        self._answered = True
        calls = self._calls
        calls.metrics.in_flight -= 1
        calls.metrics.observe(answer.status, perf_counter() - self._started)
        headers = status.headers_of(answer, self.request_id)
        if calls.draining:
            headers.append(CLOSE)
        self._request.answer(answer.status, headers, answer.body)
