"""A small HTTP server in each process of a cluster: health, metrics and status. It only reads.

For supervisors, scrapers and `styx status`. It listens on this machine only, unless it is told otherwise, and then asks
for a token (`facts_access.py`). It never shows a request, a key or state.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import msgspec

from styx.cluster.facts_access import FactsAccess
from styx.gateway.auth.audit import Audit
from styx.http.asgi import Scope, Send
from styx.http.room import HttpLimits, Room
from styx.http.server import HttpServer, listen_on, url_of

JSON: Final = b"application/json"
METRICS: Final = b"text/plain; version=0.0.4; charset=utf-8"
CONNECTIONS_MAX: Final = 256
"""Open at once; one more takes the place of the one that has waited longest."""
KEEP_ALIVE_SECONDS: Final = 75
"""As the gateway's: longer than scrapers' usual interval."""
BACKLOG_MAX: Final = 64
"""Connections that wait to be accepted."""
END_SECONDS_MAX: Final = 1
"""How long an answer under way may take at the end."""


class FactsAddress(NamedTuple):
    """Where to listen; port 0 takes a free one, None: nowhere. `tokens`: one of them is asked for, if there are any."""

    host: str
    port: int | None
    tokens: tuple[str, ...] = ()


class Page(NamedTuple):
    """An answer."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON
    retry_s: int | None = None


def well(problem: str | None) -> Page:
    """The answer to a probe: 200, or 503 with what is wrong."""
    if problem is None:
        return Page(b'{"status":"ok"}')
    return Page(msgspec.json.encode({"status": "unavailable", "reason": problem}), 503)


def metrics_page(text: str) -> Page:
    """Prometheus' text format."""
    return Page(text.encode(), 200, METRICS)


@asynccontextmanager
async def facts_server(address: FactsAddress, pages: Mapping[str, Callable[[], Page]]) -> AsyncIterator[str | None]:
    """Serves `pages` by path meanwhile; gives the URL, None if it is to listen nowhere.

    Raises `ConfigurationError` if it cannot listen there.
    """
    if address.port is None:
        yield None
        return
    instead = "--http-port, 0 for any free one, or none"
    listening = listen_on(address.host, address.port, BACKLOG_MAX, " for facts", instead)
    application = _Application(pages, FactsAccess(address.host, address.tokens))
    room = Room(HttpLimits(CONNECTIONS_MAX, KEEP_ALIVE_SECONDS))
    server = HttpServer(application, room, KEEP_ALIVE_SECONDS, BACKLOG_MAX, END_SECONDS_MAX)
    serving = asyncio.create_task(server.run_on(listening), name="styx-facts")
    try:
        yield url_of(listening)
    finally:
        server.should_exit = True
        await asyncio.wait([serving])
        listening.close()


class _Application:
    def __init__(self, pages: Mapping[str, Callable[[], Page]], access: FactsAccess) -> None:
        self._pages = pages
        self._access = access
        self._audit = Audit()

    async def __call__(self, scope: Scope, _: object, send: Send) -> None:
        page = self._page(scope)
        headers = [(b"content-type", page.content_type), (b"content-length", b"%d" % len(page.body))]
        if page.status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="styx"'))
        if page.retry_s is not None:
            headers.append((b"retry-after", b"%d" % page.retry_s))
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": page.body})

    def _page(self, scope: Scope) -> Page:
        version = scope.get("http_version", "1.1")
        client, now_s = (scope.get("client") or ("",))[0], time.monotonic()
        refused = self._access.refusal(scope["method"], scope["path"], version, scope["headers"], client, now_s)
        if refused is not None:
            self._audit.refused(
                now_s, refused.status, refused.code, refused.words, client=client, method=scope["method"]
            )
            return Page(msgspec.json.encode({"error": refused.words}), refused.status, retry_s=refused.retry_s)
        self._audit.flush(now_s)  # probes come all the time, so that nobody else has to look
        make = self._pages.get(scope["path"])
        if make is None:
            return Page(msgspec.json.encode({"error": "not found", "there is": sorted(self._pages)}), 404)
        if scope["method"] not in ("GET", "HEAD"):
            return Page(b'{"error":"only GET"}', 405)
        return make()
