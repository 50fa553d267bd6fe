"""The direct way of calls and reads: from a whole request to its answer without a task, in callbacks of connection and
engine.

It takes POST and GET of a path `/v1/OPERATOR/KEY/FUNCTION`, and GET of `/v1/OPERATOR/KEY`. What it decides is in
`calls.py`, which it shares with the endpoint behind ASGI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final, cast

from styx.gateway import head, reads, status
from styx.gateway.arguments import too_large
from styx.gateway.auth.identity import Identity
from styx.gateway.calls import POST, Calls, ended
from styx.gateway.engine import Engine
from styx.gateway.head import EVENTS_PREFIX, OWN_PREFIX, PREFIX, SQL_PATH
from styx.gateway.status import Answer
from styx.http.asgi import CLOSE
from styx.http.direct_request import DirectRequest
from styx.messages import ReplyRecord
from styx.model.freshness import Freshness
from styx.model.request import Placed

_PREFIX: Final = PREFIX.encode()
_OTHERS: Final = (EVENTS_PREFIX.encode(), OWN_PREFIX.encode(), SQL_PATH.encode() + b"/")
_GET: Final = "GET"
_METHODS: Final = {b"POST": POST, b"GET": _GET}
_SLASHES: Final = 4
"""In a call's path: two around the version, and one before each name but the first."""
_IDEMPOTENCY_KEY: Final = b"idempotency-key"


class DirectCalls:
    """The direct way to the calls and reads of one engine."""

    def __init__(self, engine: Engine, calls: Calls) -> None:
        self._engine = engine
        self._calls = calls

    def takes(self, request: DirectRequest) -> bool:
        """As `Direct`. Not taken, and so left to ASGI: other paths and methods, POST with a query, GET with a body,
        targets that a URL cannot have, and requests with a repeated header.
        """
        target, method = request.target, request.method
        if (
            method not in _METHODS
            or not target.startswith(_PREFIX)
            or b"#" in target
            or target.startswith(_OTHERS)
            or not target.isascii()
        ):
            return False
        if method == b"POST":
            if b"?" in target or target.count(b"/") != _SLASHES:
                return False
            by_name = request.by_name = dict(request.headers)
            return len(by_name) == len(request.headers)
        if target.partition(b"?")[0].count(b"/") not in (_SLASHES - 1, _SLASHES):
            return False
        by_name = request.by_name = dict(request.headers)
        bodiless = b"content-length" not in by_name and b"transfer-encoding" not in by_name
        return bodiless and len(by_name) == len(request.headers)

    def serve(self, request: DirectRequest) -> None:
        """As `Direct`. Once the engine has the request, no answer claims that nothing was run."""
        calls = self._calls
        under_way = _UnderWay(calls, request, next(calls.request_ids), calls.timeout_seconds)
        calls.metrics.in_flight += 1
        try:
            if request.method == b"POST":
                asked = head.parse(request.target.decode("ascii"))
                assert asked is not None, "it was taken"
                self._call(under_way, request, asked, POST, b"")
            else:
                # Ignored, as behind ASGI: a call with the same key must not find the read's reply.
                request.by_name.pop(_IDEMPOTENCY_KEY, None)
                path, _, query = request.target.partition(b"?")
                asked = head.parse(path.decode("ascii"))
                assert asked is not None, "it was taken"
                if asked.function is None:
                    self._read(under_way, request, asked, query)
                else:
                    self._call(under_way, request, asked, _GET, query)
        except Exception as error:  # noqa: BLE001 - a client must not be left without an answer
            under_way.set_exception(error)

    def _call(
        self, under_way: _UnderWay, request: DirectRequest, asked: head.Address, method: str, query: bytes
    ) -> None:
        calls, engine, headers = self._calls, self._engine, request.by_name
        call = calls.call(asked, method, headers, cast("Identity | None", request.client_is))
        under_way.seconds = call.seconds
        calls.admit()
        if method == POST:
            sent, limit = request.body, engine.limits.request_bytes_max
            if len(sent) > limit:  # it is whole, so no other length was announced
                raise too_large(limit)
        else:
            assert call.route.query is not None, "a function that may write is called with POST"
            sent = call.route.query.body(query)
        placed = calls.placed(call, sent, under_way.request_id)
        if call.outside is None:
            self._send(under_way, request, placed)
        else:
            self._read_outside(under_way, request, placed, call.outside)

    def _read(self, under_way: _UnderWay, request: DirectRequest, asked: head.Address, query: bytes) -> None:
        headers = request.by_name
        under_way.seconds = head.timeout_seconds(headers, under_way.seconds)
        under_way.submitted = True  # as behind ASGI: nothing is changed, whatever comes of it
        placed, outside = self._calls.read(asked, query, headers, under_way.request_id)
        if outside is None:
            under_way.answer_of = status.answer_of_read
            self._send(under_way, request, placed)
        else:
            self._read_outside(under_way, request, placed, outside)

    def _send(self, under_way: _UnderWay, request: DirectRequest, placed: Placed) -> None:
        under_way.submitted = True
        request.cancelled = under_way.cancelled
        self._engine.send_request(placed, under_way.seconds, under_way)

    def _read_outside(self, under_way: _UnderWay, request: DirectRequest, placed: Placed, wanted: Freshness) -> None:
        under_way.answer_of = reads.answer_of
        request.cancelled = under_way.cancelled
        under_way.wait(asyncio.ensure_future(self._engine.read(placed, wanted)), wanted)


class _UnderWay:
    """A call or a read that waits for its reply, as the engine's receiver of it. `seconds` is its wait, and `answer_of`
    makes the answer of the reply.
    """

    __slots__ = (
        "_answered",
        "_calls",
        "_outside",
        "_request",
        "_started",
        "_timer",
        "answer_of",
        "request_id",
        "seconds",
        "submitted",
    )

    def __init__(self, calls: Calls, request: DirectRequest, request_id: str, seconds: float) -> None:
        self.request_id = request_id
        self.seconds = seconds
        self.submitted = False
        self.answer_of: Callable[[ReplyRecord], Answer] = status.answer_of
        self._calls = calls
        self._request = request
        self._started = perf_counter()
        self._answered = False
        self._outside: asyncio.Future[ReplyRecord] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, reply: asyncio.Future[ReplyRecord], wanted: Freshness) -> None:
        """The reply is that of a read outside the log, which asks for `wanted`, and comes by itself."""
        self._outside = reply
        reply.add_done_callback(self._read_ended)
        self._timer = asyncio.get_running_loop().call_later(self.seconds, self._read_late, wanted)

    def _read_ended(self, reply: asyncio.Future[ReplyRecord]) -> None:
        if reply.cancelled():
            self.cancelled()
            return
        error = reply.exception()
        if error is not None:
            self.set_exception(error)
        elif not self._answered:
            self.set_result(reply.result())

    def _read_late(self, wanted: Freshness) -> None:
        if not self._answered:
            self._end(reads.late(self.seconds, wanted))

    def done(self) -> bool:
        """As `Receiver`."""
        return self._answered

    def set_result(self, record: ReplyRecord) -> None:
        """As `Receiver`: the reply has come."""
        try:
            answer = self.answer_of(record)
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
        if self._timer is not None and self._outside is not None:
            self._timer.cancel()
            self._outside.cancel()  # does nothing to one that has ended
        calls, request = self._calls, self._request
        calls.metrics.in_flight -= 1
        calls.metrics.observe(answer.status, perf_counter() - self._started)
        headers = status.headers_of(answer, self.request_id)
        if request.method != b"POST":
            headers.append(status.NOT_CACHED)
        if calls.draining:
            headers.append(CLOSE)
        request.answer(answer.status, headers, answer.body)
