"""The HTTP client: requests through a gateway, over kept-alive connections.

It never repeats a request by itself, because only the caller knows whether the request may run twice. A request with an
idempotency key is repeated, a few times, if the connection closes before the answer, as a kept-alive connection may
when its gateway ends. Results have JSON's types: bytes arrive as base64, times as ISO 8601, NaN and the infinities as
None.
"""

from __future__ import annotations

import asyncio
import io
import math
import os
from collections.abc import Awaitable, Mapping
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
import yarl

from styx.client.base import (
    EventLike,
    FunctionLike,
    KeyLike,
    OperatorLike,
    RemoteClient,
    TableLike,
    check_idempotency_key,
    check_key,
    check_timeout,
    function_name,
    not_open,
    operator_name,
    rejected,
)
from styx.client.changes import ChangeReader, TypedChanges, table_in
from styx.client.credential import Credential, trusting
from styx.client.events import EventReader, reader_of
from styx.client.home import Home
from styx.client.http_changes import HttpChanges
from styx.client.http_events import HttpEvents
from styx.client.http_load import ErrorBody, HttpLoadTarget, no_reply_in
from styx.client.listing import page_of_json
from styx.client.load import LoadTarget
from styx.client.loaded import RowsOf
from styx.errors import (
    BadArguments,
    ConfigurationError,
    InTransactionError,
    NotSent,
    OutcomeUnknown,
    RequestRejected,
    StyxError,
)
from styx.messages import REJECTION_CODES, Reply, ReplyError
from styx.model.changes import checked_after
from styx.model.dead_list import DEAD_CALLS_DEFAULT, DeadCallsPage, page_of, parts_of
from styx.model.entity_list import Listing, ListPage
from styx.model.entity_read import UNKNOWN_ENTITY
from styx.model.event import Event
from styx.model.freshness import EPOCH_MAX, SESSION, Freshness
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, Limits
from styx.model.table_names import own_name, owner_of
from styx.protocol.reads import READ_PHASE
from styx.values.codec import shown
from styx.values.custom_types import enc_hook

CONNECTIONS_MAX: Final = 256
"""Connections to the gateway at once; further requests wait for one of them."""
KEEP_ALIVE_SECONDS: Final = 30
"""How long an idle connection is kept: shorter than the gateway keeps its side."""
ANSWER_MARGIN_SECONDS: Final = 0.5
"""How much longer than the gateway the client waits, so that it hears of a timeout with the request's id."""
SENDS_MAX: Final = 3
"""How often a request with an idempotency key is sent before its caller hears of broken connections."""
_WRITTEN_AT_ONCE_BYTES_MAX: Final = 64 * 1024
_CODES_OF_REPLIES = REJECTION_CODES | {"aborted", UNKNOWN_ENTITY}
_SKIPPED_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")
_IDEMPOTENCY_KEY = "Idempotency-Key"
_FROM_THREADS: Final = "styx.connect_sync(url)"
_CLOSED: Final = "the client was closed before the reply came"
_KEY_TYPES = {str: "str", int: "int", tuple: "tuple"}

_NO_HEADERS: Final[Mapping[str, str]] = {}

_encode = msgspec.json.Encoder(enc_hook=enc_hook).encode


class _Place(msgspec.Struct, frozen=True):
    id: int = 0
    epoch: int = 0
    phase: int = 0


class _Read(msgspec.Struct, frozen=True):
    epoch: int = 0


class _Body(msgspec.Struct):
    result: Any = None
    result_error: str = ""
    error: ErrorBody | None = None
    transaction: _Place = _Place()
    read: _Read | None = None


_decode = msgspec.json.Decoder(_Body).decode


class HttpClient(RemoteClient):
    """A client of the gateway at `url`, such as `http://127.0.0.1:8080`; use it as `async with`.

    Raises `ConfigurationError` for a URL that is none.
    """

    def __init__(
        self, url: str, credential: Credential | None = None, ca_file: str | os.PathLike[str] | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConfigurationError(f"{shown(url)} is no gateway's URL; one looks like http://127.0.0.1:8080")
        self._url = url.rstrip("/")
        self._credential = credential or Credential()
        self._tls = trusting(ca_file)
        self._session: aiohttp.ClientSession | None = None
        self._home: Home | None = None
        self._in_flight = 0
        self._in_flight_max = Limits().in_flight_max
        self._submitted: set[asyncio.Task[Reply]] = set()

    async def __aenter__(self) -> Self:
        self._home = Home()
        connector = aiohttp.TCPConnector(
            limit=CONNECTIONS_MAX, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=self._tls or True
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=_SKIPPED_HEADERS,
        )
        return self

    async def close(self) -> None:
        """Closes the connections. Requests under way end in `OutcomeUnknown`: they may still commit."""
        if self._home is not None:
            self._home.check(_FROM_THREADS)
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await asyncio.gather(*self._submitted, return_exceptions=True)

    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Awaitable[Reply]:
        """As `Client.submit`."""
        check_timeout(timeout)
        self._check_open()
        task = asyncio.ensure_future(
            self._request(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key)
        )
        self._submitted.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Reply]) -> None:
        self._submitted.discard(task)
        if not task.cancelled():
            # Looked at here, so that asyncio does not report a caller who sends and forgets.
            task.exception()

    async def request(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `Client.request`
        idempotency_key: str | None = None,
    ) -> Reply:
        """As `Client.request`."""
        check_timeout(timeout)
        self._check_open()
        return await self._request(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key)

    async def _request(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike | None,
        *args: Any,
        timeout: float,  # noqa: ASYNC109 - as in `Client.request`
        idempotency_key: str | None,
        query: str = "",
        asked: Mapping[str, str] = _NO_HEADERS,
    ) -> Reply:
        """Without a `function` it reads the entity, or what `query` says of it; `asked` are further headers."""
        try:
            path, key_type = _path(operator, key, function)
            headers = {"Styx-Key-Type": key_type, **asked}
            if function is not None:
                headers["Content-Type"] = "application/json"
            if idempotency_key is not None:
                headers[_IDEMPOTENCY_KEY] = check_idempotency_key(idempotency_key)
            body = None if function is None else _arguments(args)
            if self._in_flight >= self._in_flight_max:
                raise RequestRejected("overloaded", f"{self._in_flight_max} requests of this client are in flight")
        except (InTransactionError, RequestRejected) as error:
            return rejected(error)
        self._in_flight += 1
        try:
            return _reply(*await self._post(path + query, headers, body, timeout))
        finally:
            self._in_flight -= 1

    async def _read_entity(self, operator: Any, key: Any, seconds: float, idempotency_key: str | None) -> Reply:
        check_timeout(seconds)
        self._check_open()
        return await self._request(operator, key, None, timeout=seconds, idempotency_key=idempotency_key)

    async def _read_outside(
        self, operator: Any, key: Any, function: Any, args: tuple[Any, ...], wanted: Freshness, seconds: float
    ) -> Reply:
        check_timeout(seconds)
        self._check_open()
        asked = _freshness_headers(wanted)
        return await self._request(operator, key, function, *args, timeout=seconds, idempotency_key=None, asked=asked)

    async def _list_page(self, wanted: Listing, freshness: Freshness, seconds: float) -> ListPage:
        check_timeout(seconds)
        self._check_open()
        given = {"limit": str(wanted.limit), "values": str(wanted.values).lower(), "prefix": wanted.prefix}
        given |= {"rows": wanted.table} if wanted.table else {}
        given |= {} if wanted.after is None else {"after": wanted.after}
        try:
            query = "&".join(f"{name}={quote(text, safe='')}" for name, text in given.items())
            path = f"/v1/{quote(wanted.operator, safe='')}?{query}"
        except UnicodeEncodeError as error:
            raise BadArguments(f"an operator, prefix or key is not valid Unicode: {error}") from None
        reply = _reply(*await self._post(path, _freshness_headers(freshness), None, seconds))
        return page_of_json(reply.unwrap(), reply.epoch)

    async def read_rows(
        self,
        table: TableLike,
        key: KeyLike,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `Client.request`
    ) -> Reply:
        """As `Client.read_rows`."""
        check_timeout(timeout)
        self._check_open()
        rows = RowsOf(table)
        query = f"?rows={quote(own_name(rows.name), safe='')}"
        return await self._request(owner_of(rows.name), key, None, query=query, timeout=timeout, idempotency_key=None)

    async def _publish(self, event: EventLike, value: Any, seconds: float, idempotency_key: str | None) -> Reply:
        check_timeout(seconds)
        self._check_open()
        if isinstance(event, Event):
            name, body = event.name, event.to_json(event.encode(value))
        else:
            name, body = event, _encode(value)
        headers = {"Content-Type": "application/json"}
        if idempotency_key is not None:
            headers[_IDEMPOTENCY_KEY] = check_idempotency_key(idempotency_key)
        return _reply(*await self._post(f"/v1/events/{quote(name, safe='')}", headers, body, seconds))

    async def dead_calls(
        self,
        operator: OperatorLike,
        *,
        key: KeyLike | None = None,
        after: str | None = None,
        first: int = DEAD_CALLS_DEFAULT,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `Client.request`
    ) -> DeadCallsPage:
        """As `Client.dead_calls`; `timeout` is that of the whole page."""
        headers: dict[str, str] = {}
        query = f"first={quote(str(first), safe='')}"
        if after is not None:
            query += f"&after={quote(after, safe='')}"
        if key is not None:
            text, kind = _key_text(operator, key)
            query, headers = f"{query}&key={quote(text, safe='')}", {"Styx-Key-Type": kind}
        reply = await self._of_dead(f"{_dead_path(operator)}?{query}", headers, None, timeout)
        return page_of(reply.unwrap())

    async def replay_dead_call(
        self,
        operator: OperatorLike,
        call_id: str,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `Client.request`
    ) -> bool:
        """As `Client.replay_dead_call`."""
        return await self._change_dead(operator, call_id, "replay", timeout)

    async def drop_dead_call(
        self,
        operator: OperatorLike,
        call_id: str,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `Client.request`
    ) -> bool:
        """As `Client.drop_dead_call`."""
        return await self._change_dead(operator, call_id, "drop", timeout)

    async def _change_dead(self, operator: OperatorLike, call_id: str, act: str, timeout: float) -> bool:  # noqa: ASYNC109 - as in `Client.request`
        parts_of(call_id)
        reply = await self._of_dead(f"{_dead_path(operator)}/{call_id}/{act}", {}, b"", timeout)
        return bool(reply.unwrap())

    async def _of_dead(self, path: str, headers: dict[str, str], body: bytes | None, timeout: float) -> Reply:  # noqa: ASYNC109 - as in `Client.request`
        check_timeout(timeout)
        self._check_open()
        return _reply(*await self._post(path, headers, body, timeout))

    def load_target(self, operator: OperatorLike | RowsOf, replace: bool, timeout: float) -> LoadTarget:
        """As `Client.load_target`; the gateway sorts the pairs by slot.

        Of an operator or table given by name, the values must be what a state without a type may be.
        """
        self._check_open()
        return HttpLoadTarget(self._post, operator, replace, timeout)

    def events(self, event: Event[Any] | str, *, after: str | None = None, follow: bool = True) -> EventReader:
        """As `Client.events`; an event that the app does not have is found when it is read (`RequestRejected`)."""
        self._check_open()
        return reader_of(self.event_source, None, event, after, follow)

    def changes(
        self, operator: OperatorLike, table: TableLike | None = None, *, from_epoch: int | None = None
    ) -> ChangeReader:
        """As `Client.changes`; what the app does not have is found when it is read (`RequestRejected`)."""
        self._check_open()
        name, after = operator_name(operator), checked_after(from_epoch)
        wanted, typed = table_in(name, table), TypedChanges(operator, table)
        source = HttpChanges(self._url, self._credential, lambda: self._session)
        return ChangeReader(lambda behind: source.steps(name, wanted, behind, typed), after)

    @property
    def event_source(self) -> HttpEvents:
        """Where it reads events."""
        return HttpEvents(self._url, self._credential, lambda: self._session)

    def _answered(self, epoch: str) -> None:
        # Whatever stands between may have changed it: a token that no gateway takes would end the session.
        if len(epoch) < len(str(EPOCH_MAX)) and epoch.isascii() and epoch.isdigit():
            self._epoch = max(self._epoch, int(epoch))

    def _check_open(self) -> None:
        if self._session is None or self._home is None:
            raise not_open("async with")
        self._home.check(_FROM_THREADS)

    async def _post(
        self,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        timeout: float,  # noqa: ASYNC109 - as in `request`
    ) -> tuple[int, bytes, str]:
        """(status, body, request id) of the answer to a POST, or to a GET if there is no `body`.

        Raises `TimeoutError`, `NotSent` or `OutcomeUnknown`.
        """
        if self._session is None:
            raise NotSent("the client was closed before the request was sent")
        headers |= self._credential.headers()
        headers["Styx-Timeout"] = f"{max(timeout, 0.001):.3f}"
        try:
            async with asyncio.timeout(timeout + ANSWER_MARGIN_SECONDS):
                return await self._exchange(self._session, yarl.URL(self._url + path, encoded=True), headers, body)
        except TimeoutError as error:
            raise TimeoutError(str(error) or f"no answer within {timeout:g} s; the request may still commit") from None

    async def _exchange(
        self, session: aiohttp.ClientSession, url: yarl.URL, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, bytes, str]:
        broke: aiohttp.ClientError | None = None
        for _ in range(SENDS_MAX if _IDEMPOTENCY_KEY in headers else 1):
            # As a stream, a large body is written in pieces and other requests have their turns in between.
            data_out = body if body is None or len(body) <= _WRITTEN_AT_ONCE_BYTES_MAX else io.BytesIO(body)
            method = "GET" if body is None else "POST"
            try:
                async with session.request(
                    method, url, data=data_out, headers=headers, allow_redirects=False
                ) as response:
                    data = await response.read()
                    self._answered(response.headers.get("Styx-Epoch", ""))
                return response.status, data, response.headers.get("Styx-Request-Id", "")
            except aiohttp.ClientConnectorError as error:
                if broke is None:
                    why = error.strerror or error
                    raise NotSent(f"{self._url}: {why}; is the gateway running there?") from None
                break
            except aiohttp.ClientConnectionError as error:
                broke = error
                if self._session is not session:
                    raise OutcomeUnknown(_CLOSED) from None
            except asyncio.CancelledError:
                # Also what aiohttp tells those that wait for a connection when it is closed.
                task = asyncio.current_task()
                if self._session is session or task is None or task.cancelling():
                    raise
                raise OutcomeUnknown(_CLOSED) from None
            except aiohttp.ClientError as error:
                broke = error
                break
        raise OutcomeUnknown(f"the connection to {self._url} broke before the reply came ({broke})")


def _freshness_headers(wanted: Freshness) -> dict[str, str]:
    if wanted.at is not None:
        return {"Styx-At": str(wanted.at)}
    headers = {"Styx-Freshness": wanted.level}
    if wanted.level == SESSION and wanted.token >= 0:
        headers["Styx-Epoch"] = str(wanted.token)
    if wanted.max_staleness_s is not None:
        headers["Styx-Max-Staleness"] = f"{wanted.max_staleness_s:.9f}"
    return headers


def _key_text(operator: OperatorLike, key: Any) -> tuple[str, str]:
    """The text form of a key, and its kind; raises `BadKey`."""
    checked = check_key(operator, key)
    return checked if isinstance(checked, str) else _encode(checked).decode(), _KEY_TYPES[type(checked)]


def _dead_path(operator: OperatorLike) -> str:
    try:
        return f"/v1/~dead/{quote(operator_name(operator), safe='')}"
    except UnicodeEncodeError as error:
        raise BadArguments(f"the operator's name is not valid Unicode: {error}") from None


def _path(operator: OperatorLike, key: Any, function: FunctionLike | None) -> tuple[str, str]:
    text, kind = _key_text(operator, key)
    try:
        names = [operator_name(operator), text, *([] if function is None else [function_name(function)])]
        segments = [quote(part, safe="") for part in names]
    except UnicodeEncodeError as error:
        raise BadArguments(f"an operator, key or function is not valid Unicode: {error}") from None
    return "/v1/" + "/".join(segments), kind


def _arguments(args: tuple[Any, ...]) -> bytes:
    try:
        body = _encode(args)
        # The encoder writes NaN and the infinities as null, which would arrive as None.
        if b"null" in body and not _finite(msgspec.to_builtins(args, enc_hook=enc_hook)):
            raise BadArguments("NaN and the infinities cannot be sent as JSON: send them as text")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadArguments(f"the arguments cannot be sent as JSON: {error}") from None
    return body


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_finite, value))
    return True


def _reply(status: int, data: bytes, request_id: str) -> Reply:
    """The reply in an answer; raises `TimeoutError`, `OutcomeUnknown` or `NotSent` if it holds none."""
    try:
        body = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise no_reply_in(status, shown(data), request_id) from None
    place, error = body.transaction, body.error
    if body.read is not None:
        place = _Place(0, body.read.epoch, READ_PHASE)
    if error is None:
        if body.result_error:
            raise StyxError(body.result_error)
        return Reply(body.result, None, place.id, place.epoch, place.phase, request_id)
    if error.code == "timeout":
        raise TimeoutError(f"{error.message} (request {request_id})")
    if error.code == "unknown":
        raise OutcomeUnknown(error.message, request_id)
    if error.code not in _CODES_OF_REPLIES:
        raise no_reply_in(status, f"{error.code}: {error.message}", request_id)
    reason = ReplyError(error.type or error.code, error.message, error.code)
    return Reply(None, reason, place.id, place.epoch, place.phase, request_id)
