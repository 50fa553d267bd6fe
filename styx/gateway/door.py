"""The door of a gateway, as an ASGI application around it: it refuses requests of strangers' pages, and tells browsers
which pages may use the gateway (CORS). `origin.py` decides which requests are refused; they never reach the
application. `direct_door.py` is the same before the direct way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from styx.gateway import head, status
from styx.gateway.body import IncomingBody
from styx.gateway.direct_door import cors
from styx.gateway.origin import OriginRules, Refusal
from styx.http.asgi import CLOSE, Application, Message, Receive, Scope, Send

OnRefusal = Callable[[Scope, Refusal], None]

PREFLIGHT_SECONDS: Final = 600
"""How long a browser may remember the answer to a preflight."""
_METHODS: Final = b"GET, POST"
_REQUEST_HEADERS: Final = (
    b"authorization, content-type, idempotency-key, styx-at, styx-epoch, styx-freshness, styx-key-type, "
    b"styx-max-staleness, styx-timeout"
)
_VARY_PREFLIGHT: Final = (b"vary", b"origin, access-control-request-method, access-control-request-headers")


class Door:
    """Serves `application` behind `rules`. `on_refusal` is called for each refused request."""

    def __init__(self, application: Application, rules: OriginRules, on_refusal: OnRefusal) -> None:
        self._application = application
        self._rules = rules
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        path = head.path(scope)
        verdict = self._rules.judge(
            scope["method"], path, scope.get("http_version", "1.1"), scope.get("scheme", "http"), scope["headers"]
        )
        if self._rules.shared:
            send = _naming(send, verdict.cors_origin)
        if verdict.refusal is not None:
            self._on_refusal(scope, verdict.refusal)
            await refuse(verdict.refusal, receive, send, scope)
        elif verdict.preflight:
            await _answer_preflight(send)
        else:
            await self._application(scope, receive, send)


async def refuse(
    refusal: Refusal, receive: Receive, send: Send, scope: Scope, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Answers a request that is not served, and closes the connection."""
    # A client that waits for `100 Continue` does not send its body yet, and must not get that answer.
    if not any(name == b"expect" for name, _ in scope["headers"]):
        await IncomingBody(receive).discard()
    code, sent, body = refused(refusal, headers)
    await send({"type": "http.response.start", "status": code, "headers": sent})
    await send({"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""})


def refused(
    refusal: Refusal, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """The status, the headers and the body of that answer, the last one on its connection."""
    answer = status.failure(refusal.code, status.REJECTED, refusal.message)
    length, own = (b"content-length", b"%d" % len(answer.body)), {name for name, _ in headers}
    sent = [*(header for header in answer.headers if header[0] not in own), *headers, length, CLOSE]
    return answer.status, sent, answer.body


def _naming(send: Send, origin: bytes | None) -> Send:
    """Wraps `send`: adds those headers."""
    also = cors(origin)

    def send_named(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *also]
        return send(message)

    return send_named


async def _answer_preflight(send: Send) -> None:
    headers = [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _REQUEST_HEADERS),
        (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
        _VARY_PREFLIGHT,
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
