"""A replica as one ASGI application: queries and watchers below `/v1/sql`, a page to type them in, health, metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from prometheus_client.core import Metric

from styx.gateway import head, status
from styx.gateway.app import SHUTTING_DOWN
from styx.gateway.status import Answer, MethodNotAllowed
from styx.http.asgi import CLOSE, Message, Receive, Scope, Send
from styx.metrics.exposition import CONTENT_TYPE, Exposition, counters, gauge, histogram
from styx.metrics.histogram import Histogram
from styx.query.service import Limits, QueryRefused
from styx.replica.service import ReplicaService
from styx.replica.sql_endpoint import Reach, SqlEndpoint, refusal_of, respond
from styx.replica.sql_page import CONTENT_SECURITY_POLICY, sql_page
from styx.replica.watch import Later, WatchEndpoint
from styx.values.codec import shown

_HTML: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
)


class SqlMetrics:
    """Requests by status, and those refused at the door; the queries of a service."""

    def __init__(self, service: ReplicaService, watch: WatchEndpoint, latency: Histogram) -> None:
        self._service = service
        self._watch = watch
        self._latency = latency
        self._refused: dict[str, int] = {}
        self._exposition = Exposition(self._collect, with_process=False)

    def refused(self, code: str) -> None:
        """Counts one request that was refused at the door, for the reason `code`."""
        self._refused[code] = self._refused.get(code, 0) + 1

    def text(self) -> str:
        """All of them in Prometheus' text format."""
        return self._exposition.text()

    def _collect(self) -> Iterator[Metric]:
        counts = self._service.counts
        outcomes = {
            "answered": counts.answered,
            "failed": counts.failed,
            "refused": counts.refused,
            "left": counts.left,
        }
        yield counters("styx_sql_queries_total", "Queries, by outcome.", "outcome", outcomes)
        yield histogram("styx_sql_request_seconds", "From a query's text to the end of its result.", self._latency)
        yield gauge("styx_sql_running", "Queries that run.", counts.running)
        yield gauge("styx_sql_waiting", "Queries in line.", counts.waiting)
        yield gauge("styx_sql_idle_processes", "Processes that wait for a query.", self._service.processes.idle)
        yield gauge("styx_sql_watchers", "Watchers that are connected.", self._watch.watchers)
        yield counters("styx_gateway_refused_total", "Requests refused at the door.", "code", self._refused)


class SqlApplication:
    """Serves a service. `note` and `status_of` describe whose state it is; `unready` says why there is none, `broken`
    why there will be none. `later` tells of epochs, `reach` waits for one, `metrics_of` gives the state's own metrics.
    """

    def __init__(
        self,
        service: ReplicaService,
        most: Limits,
        *,
        note: Callable[[], str],
        status_of: Callable[[], dict[str, object]],
        unready: Callable[[], str | None],
        broken: Callable[[], str | None],
        later: Later,
        reach: Reach,
        metrics_of: Callable[[], str],
    ) -> None:
        self.draining = False
        self.direct = None
        self._service = service
        self._most = most
        self._note = note
        self._status_of = status_of
        self._unready = unready
        self._broken = broken
        self._metrics_of = metrics_of
        self._sql = SqlEndpoint(service, most, reach=reach)
        self._watch = WatchEndpoint(service, most, later, lambda: self.draining, reach)
        self.metrics = SqlMetrics(service, self._watch, self._sql.latency)
        self._pages = {
            "/": self._page,
            "/sql": self._page,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/status": self._status,
            "/metrics": self._metrics,
        }

    def has_events(self) -> bool:
        """No events are served here."""
        return False

    def has_sql(self) -> bool:
        """Queries are."""
        return True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if self.draining:
            send = _closing(send)
        path = head.request_path(scope)
        if path == head.SQL_PATH:
            await self._sql(scope, receive, send)
        elif path == head.SQL_WATCH_PATH:
            await self._watch(scope, receive, send)
        else:
            await respond(self._answer(scope), scope, send)

    def page(self, path: str) -> Answer:
        """The page at a path that is one."""
        return self._pages[path]()

    def _answer(self, scope: Scope) -> Answer:
        path, method = head.path(scope), scope["method"]
        page = self._pages.get(path)
        if page is None:
            there = ", ".join((*self._pages, head.SQL_PATH, head.SQL_WATCH_PATH))
            return status.failure(
                "not_found", status.REJECTED, f"{shown(path)}: a replica answers in SQL; it has {there}"
            )
        if method not in ("GET", "HEAD"):
            return status.refusal(MethodNotAllowed(method, ("GET",)), "method_not_allowed")
        return page()

    def _page(self) -> Answer:
        try:
            tables = self._service.tables()
        except QueryRefused as error:
            return refusal_of(error)
        return Answer(200, sql_page(tables, self._note(), self._most.rows).encode(), _HTML)

    def _healthz(self) -> Answer:
        return _well(self._broken(), "ok")

    def _readyz(self) -> Answer:
        return _well(SHUTTING_DOWN if self.draining else self._unready(), "ready")

    def _status(self) -> Answer:
        return Answer(200, msgspec.json.encode({**self._status_of(), "time_s": time.time()}))

    def _metrics(self) -> Answer:
        text = self._metrics_of() + self.metrics.text()
        return Answer(200, text.encode(), ((b"content-type", CONTENT_TYPE.encode()),))


def _well(problem: str | None, word: str) -> Answer:
    if problem is not None:
        return status.failure("unavailable", "NotReady", problem)
    return Answer(200, msgspec.json.encode({"status": word}))


def _closing(send: Send) -> Send:
    """Each answer is the last one on its connection, so that clients go to another server."""

    async def send_last(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), CLOSE]
        await send(message)

    return send_last
