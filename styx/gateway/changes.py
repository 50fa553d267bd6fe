"""The endpoint of the change feed: a stream of server-sent events, one or more for each epoch with changes.

    GET /v1/~changes/OPERATOR?from=EPOCH           of its entities and their rows
    GET /v1/~changes/OPERATOR/TABLE?from=EPOCH     of the rows of one table or view

The `id` of an event is an epoch: all changes up to its end have come. An epoch with many changes comes in several
events, and only the last one has the id; the others say `"more": true`. An id without an event says that the epochs up
to it have no further changes. A reader that takes nothing is waited for; meanwhile the changes stay where the engine
keeps them, and a reader that is too slow is told that they are gone. No operator's name begins with `~`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from time import monotonic, perf_counter
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from styx.errors import BadArguments, NotSent, RequestRejected, StyxError, UnknownOperator
from styx.gateway import head, server_sent, status
from styx.gateway.calls import GatewayMetrics
from styx.gateway.engine import Engine
from styx.gateway.status import MethodNotAllowed, ResultNotJson, result_json
from styx.http.asgi import Receive, Scope, Send
from styx.model.app import App
from styx.model.changes import FROM_NOW, EpochChanges, Given, checked_after, entries, followed_table, table_name
from styx.values.codec import shown
from styx.values.event_lines import HEARTBEAT, block

READERS_MAX: Final = 64
"""Readers of changes of one gateway that are connected at once."""
PROGRESS_SECONDS: Final = 1.0
"""How often a reader is told how far it is complete, if no changes tell it."""
HEARTBEAT_SECONDS: Final = 15.0
"""An idle stream gets a comment so often, so that proxies keep it, and a dead reader is found."""
BEGIN_SECONDS_MAX: Final = 30.0
"""A stream that has not begun by then is refused: some worker cannot be reached."""
BLOCK_BYTES: Final = 256 * 1024
"""An event has no further changes behind so many bytes."""

_SAFE: Final = ("GET", "HEAD")
_OTHER_VERSION: Final = "another version of the app runs than this gateway knows: read on soon"
_encode = msgspec.json.Encoder().encode


class ChangeEndpoint:
    """Serves the changes of one engine, and counts in `metrics`. When the gateway is `ending`, all streams end soon,
    and their readers are told to come again.
    """

    def __init__(self, engine: Engine, metrics: GatewayMetrics, ending: Callable[[], bool]) -> None:
        self._engine = engine
        self._metrics = metrics
        self._ending = ending

    async def __call__(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request. A stream counts as answered when it has begun."""
        started = perf_counter()
        try:
            operator, table, after = self._asked(path, scope)
        except (RequestRejected, BadArguments, UnknownOperator) as error:
            await self._refuse(error, started, scope, send)
            return
        self._metrics.change_readers += 1  # also while it waits for a worker: then it follows the others already
        source = self._engine.changes.follow(operator, table, after)
        try:
            await self._give(source, started, scope, receive, send)
        finally:
            self._metrics.change_readers -= 1
            await source.aclose()  # type: ignore[attr-defined]  # a generator

    async def _refuse(self, error: StyxError, started: float, scope: Scope, send: Send) -> None:
        answer = status.refusal(error, _code(error))
        self._metrics.observe(answer.status, perf_counter() - started)
        await server_sent.refuse(answer, scope["method"], send)

    async def _give(
        self, source: AsyncIterator[Given], started: float, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            # The first one says where it begins; until then the answer can still be a refusal.
            begun = await _first(source)
        except RequestRejected as error:
            await self._refuse(error, started, scope, send)
            return
        self._metrics.observe(200, perf_counter() - started)
        gone = asyncio.ensure_future(server_sent.until_gone(receive))
        try:
            await server_sent.begin(block(str(begun.through), None), send)
            if scope["method"] != "HEAD":
                await _Stream(self._engine, self._metrics, begun.through, send).run(source, gone, self._ending)
            await server_sent.end(send)
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone

    def _asked(self, path: str, scope: Scope) -> tuple[str, str | None, int]:
        """(operator, table, epoch behind which to begin) of a request that is served. Raises what is refused."""
        engine, method = self._engine, scope["method"]
        asked = head.parse_changes(path)
        if asked is None:
            told = f"the path is {head.CHANGES_PREFIX}OPERATOR or {head.CHANGES_PREFIX}OPERATOR/TABLE"
            raise RequestRejected("not_found", told)
        if method not in _SAFE:
            raise MethodNotAllowed(method, _SAFE)
        if engine.unavailable_reason is not None:
            raise RequestRejected("unavailable", engine.unavailable_reason)
        operator = head.served(engine.app.operator(asked.operator)).name
        table = followed_table(engine.app, operator, asked.table)
        after = _after(scope)
        if self._ending():
            raise RequestRejected("unavailable", server_sent.ENDING)
        if self._metrics.change_readers >= READERS_MAX:
            raise RequestRejected("overloaded", f"{READERS_MAX} readers of changes are connected; try again soon")
        return operator, table, after


async def _first(source: AsyncIterator[Given]) -> Given:
    try:
        async with asyncio.timeout(BEGIN_SECONDS_MAX):
            return await anext(source)
    except TimeoutError:
        raise NotSent(f"not all workers have answered within {BEGIN_SECONDS_MAX:g} s: try again soon") from None


class _Stream:
    """One reader's stream. It was told all up to the end of epoch `told`."""

    def __init__(self, engine: Engine, metrics: GatewayMetrics, begun: int, send: Send) -> None:
        self._engine = engine
        self._metrics = metrics
        self._send = send
        self._through = self._told = begun
        self._sent_s = monotonic()

    async def run(self, source: AsyncIterator[Given], gone: asyncio.Future[None], ending: Callable[[], bool]) -> None:
        try:
            if await server_sent.steps(source, gone, ending, self._take, self._look):
                raise NotSent(server_sent.ENDING)
        except RequestRejected as error:
            await server_sent.give(server_sent.failure(error, code=error.code), self._send)

    async def _take(self, given: Given) -> None:
        for epoch in given.epochs:
            for data, last in _blocks(self._engine.app, epoch):
                await self._give(block(str(epoch.epoch) if last else None, data))
            self._told = epoch.epoch
            self._metrics.changed_epochs_sent += 1
        self._through = given.through
        if monotonic() - self._sent_s >= PROGRESS_SECONDS:
            await self._tell()

    async def _look(self) -> None:
        if self._told < self._through:
            await self._tell()
        elif monotonic() - self._sent_s >= HEARTBEAT_SECONDS:
            await self._give(HEARTBEAT)

    async def _tell(self) -> None:
        """How far it is complete."""
        if self._told < self._through:
            self._told = self._through
            await self._give(block(str(self._told), None))

    async def _give(self, data: bytes) -> None:
        self._sent_s = monotonic()
        await server_sent.give(data, self._send)


def _blocks(app: App, epoch: EpochChanges) -> Iterator[tuple[bytes, bool]]:
    """The JSON of an epoch, in parts; and whether a part is the last one. Raises `RequestRejected`."""
    parts: list[bytes] = []
    n_bytes = 0
    for part in _parts(app, epoch):
        if n_bytes > BLOCK_BYTES:
            yield b'{"epoch":%d,"changes":[%b],"more":true}' % (epoch.epoch, b",".join(parts)), False
            parts, n_bytes = [], 0
        parts.append(part)
        n_bytes += len(part)
    yield b'{"epoch":%d,"changes":[%b]}' % (epoch.epoch, b",".join(parts)), True


def _parts(app: App, epoch: EpochChanges) -> Iterator[bytes]:
    name = ""
    try:
        for table in epoch.tables:
            name = table.name
            for entry in entries(app, table):
                place: dict[str, Any] = {"key": entry.key}
                if entry.table is not None:
                    place = {"table": table_name(entry.table), **place, "row_key": entry.row_key}
                if entry.value is None:
                    yield _encode({**place, "deleted": True})
                else:
                    yield b'%b,"value":%b}' % (_encode(place)[:-1], result_json(entry.value))
    except LookupError:
        raise NotSent(_OTHER_VERSION) from None
    except ResultNotJson as error:
        told = f"{name} has a value in epoch {epoch.epoch} that is no JSON: {error}; read on from the next one"
        raise RequestRejected("internal", told) from None


def _after(scope: Scope) -> int:
    query = _query(scope.get("query_string", b""))
    # A browser that connects again repeats the URL, and says in the header how far it has come.
    seen, first = server_sent.last_id(scope["headers"]), query.get("from")
    if seen is not None:
        return _number(seen, "Last-Event-ID")
    return FROM_NOW if first is None else checked_after(_number(first, "from"), "from")


def _number(text: str, what: str) -> int:
    if len(text) > 15 or not (text.isascii() and text.removeprefix("-").isdigit()) or int(text) < -1:
        raise RequestRejected("bad_request", f"{what} takes an epoch, such as 17: got {shown(text)}")
    return int(text)


def _query(query: bytes) -> Mapping[str, str]:
    found = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    for name, values in found.items():
        if name != "from" or len(values) > 1:
            raise RequestRejected("bad_request", f"a stream of changes takes from, once: got {shown(name)}")
    return {name: values[0] for name, values in found.items()}


def _code(error: StyxError) -> str:
    if isinstance(error, RequestRejected):
        return error.code
    return "bad_request" if isinstance(error, BadArguments) else "unknown_operator"
