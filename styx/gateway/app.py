"""The gateway as one ASGI application: requests below `/v1/` go to their endpoint, and pages have small routes.

The pages are for operators and developers, and never touch the engine's state.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cached_property
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from styx.gateway import head, status
from styx.gateway.asyncapi import asyncapi
from styx.gateway.calls import Calls
from styx.gateway.changes import ChangeEndpoint
from styx.gateway.direct_calls import DirectCalls
from styx.gateway.docs_page import CONTENT_SECURITY_POLICY, docs_page
from styx.gateway.endpoint import RequestEndpoint
from styx.gateway.engine import Engine
from styx.gateway.events import EventEndpoint
from styx.gateway.head import CHANGES_PREFIX, EVENTS_PREFIX, SQL_PATH
from styx.gateway.openapi import openapi
from styx.http.asgi import CLOSE, Application, Message, Receive, Scope, Send
from styx.metrics.exposition import CONTENT_TYPE as METRICS_CONTENT_TYPE
from styx.model.app import App
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT
from styx.values.codec import shown

SHUTTING_DOWN: Final = "the gateway is shutting down: send new requests to another one"
WORKERS_HAVE_ERRORS: Final = "each worker of a cluster has its own errors: ask /errors at a worker's --http-port"
_SQL_OPERATOR: Final = "sql"
_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


class Gateway:
    """Serves one engine over HTTP.

    `timeout_seconds` is how long a request waits for its reply unless it says otherwise. While `draining`, `/readyz`
    says that no new requests should be sent here, and each answer is the last one on its connection. `direct` is the
    direct way of calls. `sql` serves `/v1/sql`, unless the app has an operator of that name.
    """

    def __init__(
        self, engine: Engine, timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT, sql: Application | None = None
    ) -> None:
        self._engine = engine
        self._sql = sql
        self._description: _Description | None = None
        calls = self._calls = Calls(engine, timeout_seconds)
        self.metrics = calls.metrics
        self._requests = RequestEndpoint(engine, calls)
        self.direct = DirectCalls(engine, calls)
        self.events = EventEndpoint(engine, calls.metrics, lambda: self.draining)
        self.changes = ChangeEndpoint(engine, calls.metrics, lambda: self.draining)
        get = {
            "/": self._root,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/openapi.json": self._openapi,
            "/asyncapi.json": self._asyncapi,
            "/docs": self._docs,
            "/errors": self._errors,
        }
        self._others = Starlette(
            routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in get.items()],
            exception_handlers={HTTPException: _http_error, Exception: _fault},
        )
        self._others.router.redirect_slashes = False

    @property
    def draining(self) -> bool:
        """Whether this process is about to end."""
        return self._calls.draining

    @draining.setter
    def draining(self, begins: bool) -> None:
        self._calls.draining = begins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        send = self._closing(send)
        path = head.request_path(scope) if scope["type"] == "http" else None
        if path is None:
            await self._others(scope, receive, send)
        elif path == SQL_PATH and self._sql is not None and self.has_sql():
            await self._sql(scope, receive, send)
        elif path.startswith(EVENTS_PREFIX) and self.events.serves(path, scope["method"]):
            await self.events(path, scope, receive, send)
        elif path.startswith(CHANGES_PREFIX):
            await self.changes(path, scope, receive, send)
        else:
            await self._requests(path, scope, receive, send)

    def has_events(self) -> bool:
        """Whether the app that is served declares events."""
        return bool(self._engine.app.events)

    def has_sql(self) -> bool:
        """Whether queries in SQL are served."""
        return self._sql is not None and _SQL_OPERATOR not in self._engine.app.operators

    def _closing(self, send: Send) -> Send:
        """Wraps `send`: while `draining`, every answer gets `Connection: close`, and the server then closes the
        connection.

        A client that gets this header opens another connection for its next request, which reaches another server. If
        the server closed an idle connection without it, a request might be under way on that connection.
        """

        def send_last(message: Message) -> Awaitable[None]:
            if self.draining and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), CLOSE]
            return send(message)

        return send_last

    async def _root(self, request: Request) -> Response:
        return RedirectResponse("docs")

    async def _healthz(self, request: Request) -> Response:
        reason = self._engine.broken_reason
        if reason is None:
            return _json({"status": "ok"})
        return _respond(status.failure("unavailable", "Broken", reason))

    async def _readyz(self, request: Request) -> Response:
        reason = SHUTTING_DOWN if self.draining else self._engine.unavailable_reason
        if reason is None:
            return _json({"status": "ready"})
        return _respond(status.failure("unavailable", "NotReady", reason))

    async def _metrics(self, request: Request) -> Response:
        text = self._engine.metrics() + self.metrics.text()
        return Response(text, headers={"content-type": METRICS_CONTENT_TYPE})

    async def _errors(self, request: Request) -> Response:
        reports = getattr(self._engine, "reports", None)
        if reports is None:
            return _respond(status.failure("not_found", status.REJECTED, WORKERS_HAVE_ERRORS))
        return Response(reports.mistakes.page(), media_type="application/json")

    async def _openapi(self, request: Request) -> Response:
        content = self._described.openapi_json
        prefix = request.scope.get("root_path", "")
        if prefix:
            servers = msgspec.json.encode([{"url": quote(prefix)}])
            content = b'{"servers":%b,%b' % (servers, content[1:])
        return Response(content, media_type="application/json")

    async def _asyncapi(self, request: Request) -> Response:
        content = self._described.asyncapi_json
        if content is None:
            detail = f"app {self._engine.app.name!r} declares no events"
            return _respond(status.failure("not_found", status.REJECTED, detail))
        return Response(content, media_type="application/json")

    async def _docs(self, request: Request) -> Response:
        return HTMLResponse(self._described.docs_html, headers={"content-security-policy": CONTENT_SECURITY_POLICY})

    @property
    def _described(self) -> _Description:
        if self._description is None or self._description.app is not self._engine.app:
            self._description = _Description(self._engine.app)
        return self._description


class _Description:
    """The descriptions of one version of an app, each made on its first request."""

    def __init__(self, app: App) -> None:
        self.app = app

    @cached_property
    def openapi_json(self) -> bytes:
        return msgspec.json.encode(openapi(self.app))

    @cached_property
    def asyncapi_json(self) -> bytes | None:
        return msgspec.json.encode(asyncapi(self.app)) if self.app.events else None

    @cached_property
    def docs_html(self) -> str:
        return docs_page(self.app)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "bad_request")
    what = f"{request.method} {shown(request.url.path)}"
    response = _respond(status.failure(code, status.REJECTED, f"{what}: {error.detail}"))
    response.headers.update(error.headers or {})
    return response


async def _fault(request: Request, error: Exception) -> Response:
    return _respond(status.failure("internal", "GatewayFault", "the gateway failed; its log says why"))


def _respond(answer: status.Answer) -> Response:
    headers = {name.decode(): value.decode() for name, value in answer.headers}
    return Response(answer.body, answer.status, headers)


def _json(content: dict[str, str]) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")
