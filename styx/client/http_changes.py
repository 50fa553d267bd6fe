"""The change feed through a gateway: server-sent events, read on over as many connections as it takes.

A connection that breaks is opened again behind the last epoch that came whole, so no epoch is missed, and none comes
twice. If its changes are not kept any more by then, the reader is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec
import yarl

from styx.client.changes import ChangedEpoch, Steps, TypedChanges
from styx.client.credential import Credential
from styx.errors import NotSent, RequestRejected, StyxError
from styx.model.changes import FROM_NOW, follow_error
from styx.values.codec import shown
from styx.values.event_lines import ERROR, Block, BlockReader

SILENCE_SECONDS_MAX: Final = 60.0
"""A gateway that sends nothing for so long, not even a comment, counts as gone."""
CONNECT_SECONDS_MAX: Final = 10.0
ATTEMPTS_MAX: Final = 12
"""Connections in a row that bring nothing before a reader hears of it."""
PAUSE_SECONDS_MAX: Final = 2.0
"""Between two connections, at most: what is missed meanwhile is kept for a while only."""
BODY_BYTES_MAX: Final = 64 * 1024
"""Of an answer that is no stream."""
CHANGES_BYTES_MAX: Final = 64 * 1024 * 1024
"""One event: it ends behind the first change that makes it large, which may be a state as large as any."""
_AGAIN: Final = ("unavailable", "overloaded", "rate_limited")

Sessions = Callable[[], aiohttp.ClientSession | None]
"""The client's session, None once it is closed."""


class _Error(msgspec.Struct):
    code: str = ""
    message: str = ""
    type: str = ""


class _Refusal(msgspec.Struct):
    error: _Error


class _Told(msgspec.Struct):
    epoch: int
    changes: list[dict[str, Any]]
    more: bool = False


class _Broken(Exception):
    """The connection ended before the stream did; the next one may be better."""


_decode = msgspec.json.Decoder(_Told).decode


class HttpChanges:
    """Follows changes behind the gateway at `url`."""

    def __init__(self, url: str, credential: Credential, session: Sessions) -> None:
        self._url = url
        self._credential = credential
        self._session = session

    async def steps(self, operator: str, table: str | None, after: int, typed: TypedChanges) -> Steps:
        """As `ChangeReader` takes them. Raises `NotSent` if nobody answers, `SnapshotTooOld`, and
        `RequestRejected`.
        """
        failures, place, began = 0, after, False
        while True:
            try:
                async with aclosing(self._connection(operator, table, place)) as answer:
                    parts: list[dict[str, Any]] = []
                    async for each in answer:
                        through = place if each.id is None else int(each.id)
                        found: list[ChangedEpoch] = []
                        if each.data:
                            told = _decode(each.data)
                            parts += told.changes
                            if told.more:
                                continue
                            found.append(ChangedEpoch(told.epoch, [typed.change(part) for part in parts]))
                            parts = []
                        failures, place, began = 0, through, True
                        yield place, found
                why = "the gateway has ended the stream"
            except _Broken as error:
                why = str(error)
            except (ValueError, msgspec.DecodeError) as error:
                raise RequestRejected("internal", f"{self._url} sends what is no change: {error}") from None
            failures += 1
            if not began or failures >= ATTEMPTS_MAX:
                raise NotSent(f"changes of {operator!r} cannot be read from {self._url}: {why}")
            await asyncio.sleep(min(PAUSE_SECONDS_MAX, 0.05 * 2**failures))

    async def _connection(self, operator: str, table: str | None, after: int) -> AsyncGenerator[Block, None]:
        session = self._session()
        if session is None:
            raise NotSent("the client was closed")
        path = "/".join(quote(name, safe="") for name in (operator, table) if name is not None)
        url = yarl.URL(f"{self._url}/v1/~changes/{path}", encoded=True)
        headers = {"Accept": "text/event-stream", **self._credential.headers()}
        if after != FROM_NOW:
            headers["Last-Event-ID"] = str(after)
        times = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=SILENCE_SECONDS_MAX)
        try:
            async with session.get(url, headers=headers, timeout=times, allow_redirects=False) as response:
                if response.status != 200 or response.content_type != "text/event-stream":
                    raise _refused(self._url, response.status, await response.content.read(BODY_BYTES_MAX))
                blocks = BlockReader(CHANGES_BYTES_MAX)
                async for data in response.content.iter_any():
                    for each in blocks.take(data):
                        if each.name == ERROR:
                            raise _error(msgspec.json.decode(each.data or b"{}", type=_Refusal).error)
                        yield each
        except StyxError:
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if self._session() is not session:
                raise NotSent("the client was closed") from None
            raise _Broken(str(error) or type(error).__name__) from None


def _error(error: _Error) -> Exception:
    return _Broken(error.message) if error.code in _AGAIN else follow_error(error.code, error.message)


def _refused(url: str, status: int, body: bytes) -> Exception:
    """What an answer that is no stream means."""
    try:
        return _error(msgspec.json.decode(body, type=_Refusal).error)
    except (msgspec.DecodeError, ValueError):
        return NotSent(f"{url}: status {status} without changes: {shown(body)}; is there a gateway?")
