"""One HTTP connection within limits: uvicorn's, with a deadline for headers, bodies and unread answers, a size for
headers, refusals that say why and come in their turn, and a direct way for common requests.

Bytes that a client sends behind a pending request never change the answer to that request: a refusal of these bytes is
sent after the answer, and then the connection ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from styx.http.direct import Direct
from styx.http.direct_request import DirectRequest
from styx.http.one_write import OneWrite
from styx.http.room import BODY_BYTES_PER_SECOND_MIN, FRAMING_BYTES_MAX, HEADER_BYTES_MAX, LINGER_SECONDS_MAX, Room

_NOTHING, _HEADER, _BODY = range(3)
"""The part of a request to which the next byte belongs: none yet, its headers, its body."""

_OF_UPGRADES: Final = (b"upgrade", b"http2-settings")
_NOT_SERVED: Final = (b"CONNECT", b"PRI")
_ORIGIN_FORM: Final = (b"/", b"*")
"""The beginnings of a request's target that names no host."""
_VERSIONS: Final = ("1.0", "1.1")
_FRAMING_TIMES: Final = 8
"""A chunk of one byte has five bytes of framing."""
_NOT_RUN: Final = "nothing was run; of a bulk load, what came before may be loaded"


class HttpConnection(HttpToolsProtocol):
    """One connection. uvicorn makes it for each accepted socket."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        room: Room,
        direct: Direct | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.served = False
        self._room = room
        self._direct = direct
        self._arriving: DirectRequest | None = None  # taken for the direct way, while its body may come in this read
        self._parts: list[bytes] = []  # of its body
        self._latest: DirectRequest | None = None  # the last request, if it went the direct way
        self._reading = _NOTHING
        self._since = 0.0  # when the present part of a request, or the wait for it, began
        self._received = 0  # bytes of that part
        self._content = 0  # bytes of the body that the application got
        self._read_bytes = 0  # bytes of the read that is being parsed
        self._in_flight = 0  # requests with complete headers and without a complete answer
        self._upgrades = False  # the request asks for another protocol
        self._refusal: _Refusal | None = None  # why the parser was stopped
        self._last_words: bytes | None = None  # an encoded refusal that waits for the answers before it
        self._ended = False  # bytes of the client are ignored from now on
        self._unread: tuple[float, int] | None = None  # since when the client has read none of the waiting bytes

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._answers: Any = OneWrite(transport)
        self._since = self.loop.time()
        if not self._room.enter(self):
            most = self._room.connections_max
            self._refuse(
                _Refusal(503, "connections", f"{most} connections are open, each with a request: try again soon")
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._room.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._ended or self._last_words is not None:
            return
        self._read_bytes = len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self._arrives_later()
            self._refuse(self._refusal or _malformed(error))
            return
        if self._reading == _NOTHING:
            return
        self._arrives_later()
        self._received += len(data)
        if self._reading == _HEADER and self._received > HEADER_BYTES_MAX:
            self._refuse(_LONG_HEADER)
        elif self._received - _FRAMING_TIMES * self._content > FRAMING_BYTES_MAX and self._reading == _BODY:
            self._refuse(_MUCH_FRAMING)

    def _parse(self, data: bytes) -> None:
        """Feeds the parser. If a request asks for a protocol other than HTTP/1, it is parsed again without that header,
        because the parser would take the body for the other protocol's.
        """
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_upgrade() + data[upgrade.args[0] :]
            self._upgrades = False
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _without_upgrade(self) -> bytes:
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                lines.append(b"connection: close" if b"close" in value.lower() else b"connection: keep-alive")
            elif name not in _OF_UPGRADES:
                lines.append(b"%b: %b" % (name, value))
        return b"\r\n".join([*lines, b"\r\n"])

    # What the parser calls. It ends with an error if one of these raises any.

    def on_message_begin(self) -> None:
        if self.served:
            self._since = self.loop.time()
        self._reading = _HEADER
        self._received = 0
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        if self._received + self._read_bytes > HEADER_BYTES_MAX and _size(self.url, self.headers) > HEADER_BYTES_MAX:
            self._refusal = _LONG_HEADER
            raise ValueError
        method, version = self.parser.get_method(), self.parser.get_http_version()
        if method in _NOT_SERVED or version not in _VERSIONS:
            self._refusal = _NOT_HERE
            raise ValueError
        if self.parser.should_upgrade():
            self._upgrades = True
            return
        before = self._in_flight
        try:
            if self.url[:1] not in _ORIGIN_FORM:
                self._take_host_of_url()
            self._in_flight += 1
            if version != "1.1" or not self._goes_directly(method):
                self._start_cycle()
        except Exception:
            self._in_flight = before
            self._refusal = _BAD_ADDRESS
            raise
        self._room.busy(self)
        self._reading = _BODY
        self._since = self.loop.time()
        self._received = self._content = 0

    def _goes_directly(self, method: bytes) -> bool:
        """Whether the request is taken for the direct way. A client that waits for `100 Continue`, or does not read its
        answers, has none.
        """
        if self._direct is None or self.expect_100_continue or self.flow.write_paused:
            return False
        request = DirectRequest(self, method, self.url, self.headers, self.parser.should_keep_alive())
        if not self._direct.takes(request):
            return False
        self._arriving, self._parts = request, []
        return True

    def _arrives_later(self) -> None:
        """The rest of the body has not come with its headers: from here on the request goes the way of ASGI."""
        request, self._arriving = self._arriving, None
        if request is not None:
            self._start_cycle()
            for part in self._parts:
                super().on_body(part)

    def _start_cycle(self) -> None:
        """Begins the way of ASGI."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()  # makes the scope
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"] = headers
        self._latest = None
        super().on_headers_complete()
        self.cycle.transport = self._answers

    def _take_host_of_url(self) -> None:
        """A request for `http://HOST/PATH` is for that host, whatever its `Host` says (RFC 9112, 3.2.2)."""
        url = httptools.parse_url(self.url)
        if url.host is None or url.userinfo is not None:
            raise ValueError
        host = b"[%b]" % url.host if b":" in url.host else url.host
        host = host if url.port is None else b"%b:%d" % (host, url.port)
        # Replaced in place, so that a second or a missing `Host` header is still refused.
        self.headers[:] = [(name, host if name == b"host" else value) for name, value in self.headers]

    def on_body(self, body: bytes) -> None:
        self._content += len(body)
        if self._arriving is None:
            super().on_body(body)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._upgrades:
            return
        request, self._arriving = self._arriving, None
        self._reading = _NOTHING
        self.served = True
        if request is None:
            super().on_message_complete()
            return
        self._latest = request
        request.body = b"".join(self._parts)
        if self._in_flight > 1:
            self.flow.pause_reading()
            self.pipeline.appendleft((request, self.app))  # type: ignore[arg-type]
        else:
            self._serve(request)

    def _serve(self, request: DirectRequest) -> None:
        assert self._direct is not None, "it has taken the request"
        self.tasks.add(request)  # type: ignore[arg-type]
        self._direct.serve(request)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """As uvicorn's, which knows nothing of requests on their direct way: behind those the request waits."""
        if self._in_flight > 1:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, app))
        else:
            super()._start_asgi_task(cycle, app)

    def _start_next(self) -> None:
        request, app = self.pipeline.pop()
        if isinstance(request, DirectRequest):
            # In a later callback: the answer before may have come in the middle of an engine's work.
            self.loop.call_soon(self._serve, request)
        else:
            super()._start_asgi_task(request, app)

    # What the answer calls when it is complete.

    def on_response_complete(self) -> None:
        self._answers.complete()
        self._in_flight -= 1
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_next()
        if self._in_flight or self._ended:
            return
        if self._last_words is not None:
            self._say(self._last_words)
        elif self._reading == _BODY:
            # The body has not arrived, and is not needed any more.
            self._ended = True
            self.transport.close()
        else:
            self._since = self.loop.time()
            self._room.waits(self)

    # What the server calls.

    def shutdown(self) -> None:
        """As uvicorn's: closes the connection, after the answers to what is under way."""
        if self._in_flight and self._latest is not None:
            self._latest.keep_alive = False
        else:
            super().shutdown()

    # What the room calls.

    def look(self, now: float) -> None:
        """Ends the connection if the client was too slow in the present part of its request or answer."""
        limits = self._room.limits
        if self._takes_nothing(now):
            self._room.refused("unread", f"it took nothing of its answer for {limits.unread_seconds_max:g} s")
            self.transport.abort()
        elif self._ended or self.transport.is_closing():
            return
        elif self.flow.read_paused or (self._in_flight and self._reading == _NOTHING):
            self._since = now  # the next step is the server's
        elif self._reading == _BODY:
            if now - self._since > limits.body_seconds_max + self._received / BODY_BYTES_PER_SECOND_MIN:
                text = f"the body did not arrive within {limits.body_seconds_max:g} s, and a second for each KiB of it"
                self._refuse(_Refusal(408, "slow_body", f"{text}; {_NOT_RUN}"))
        elif self._reading == _HEADER:
            if now - self._since > limits.header_seconds_max:
                text = f"the request's headers did not arrive within {limits.header_seconds_max:g} s"
                self._refuse(_Refusal(408, "slow_header", f"{text}; it was not run"))
        elif now - self._since > (limits.keep_alive_seconds if self.served else limits.header_seconds_max):
            if not self.served:
                self._room.refused("silent", f"it sent nothing for {limits.header_seconds_max:g} s")
            self._ended = True
            self.transport.close()

    def make_room(self) -> None:
        """Closes the connection to make room for another one. It has no request under way."""
        if self._ended:
            self.transport.abort()
            return
        most = self._room.connections_max
        self._room.refused("crowded_out", f"{most} connections are open, and it has waited longest")
        self._ended = True
        self.transport.close()

    def _takes_nothing(self, now: float) -> bool:
        closing = self.transport.is_closing()
        waiting = self.transport.get_write_buffer_size() if closing or self.flow.write_paused else 0
        if not waiting:
            self._unread = None
        elif self._unread is None or self._unread[1] != waiting:
            self._unread = (now, waiting)
        return self._unread is not None and now - self._unread[0] > self._room.limits.unread_seconds_max

    # Refusals.

    def _refuse(self, refusal: _Refusal) -> None:
        """Ends the connection with this answer, after the answers to the requests before."""
        self._room.refused(refusal.reason, refusal.message)
        started = False
        if self._reading == _BODY and not self.cycle.response_complete:
            # The body will never be complete, so the application gets a disconnect.
            broken = self.cycle
            self._in_flight -= 1
            started = broken.response_started
            broken.disconnected = True
            broken.message_event.set()
            self.pipeline = deque(each for each in self.pipeline if each[0] is not broken)
        if self._in_flight:
            self._last_words = refusal.answer()
            self.flow.pause_reading()
        elif started:
            self._ended = True
            self.transport.close()
        else:
            self._say(refusal.answer())

    def _say(self, words: bytes) -> None:
        """Sends the last bytes of this connection. Bytes that the client still sends are read for a while and dropped:
        closing a connection with unread bytes would reset it, and the client would lose the answer.
        """
        self._ended = True
        self.served = False
        self._room.waits(self)
        if self.transport.is_closing():
            return
        self.transport.write(words)
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.flow.resume_reading()
            self.loop.call_later(LINGER_SECONDS_MAX, self.transport.abort)
        else:
            self.transport.close()


class _Refusal(NamedTuple):
    """An answer to a request that the server refuses. `reason` is one word, for counting."""

    status: int
    reason: str
    message: str

    def answer(self) -> bytes:
        """The bytes of the whole answer."""
        code = {431: "too_large", 503: "unavailable"}.get(self.status, "bad_request")
        body = msgspec.json.encode({"error": {"code": code, "type": "RequestRejected", "message": self.message}})
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
            *(["retry-after: 1"] if self.status == 503 else []),
        ]
        return "\r\n".join([*lines, "\r\n"]).encode() + body


_LONG_HEADER: Final = _Refusal(
    431, "long_header", f"the request's line and headers have more than {HEADER_BYTES_MAX} bytes; it was not run"
)
_BAD_ADDRESS: Final = _Refusal(
    400, "malformed", "the request's target is no path in ASCII: encode every byte but letters, digits and -._~/"
)
_NOT_HERE: Final = _Refusal(
    400, "malformed", "this is HTTP/1.0 and HTTP/1.1, and no proxy: neither other versions nor CONNECT are served"
)
_MUCH_FRAMING: Final = _Refusal(
    400, "framing", f"there is over {FRAMING_BYTES_MAX} bytes more between the body's parts than in them; {_NOT_RUN}"
)


def _malformed(error: Exception) -> _Refusal:
    return _Refusal(400, "malformed", f"this is not valid HTTP: {str(error)[:200]}; {_NOT_RUN}")


def _size(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)
