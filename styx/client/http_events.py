"""Events through a gateway: server-sent events, read on over as many connections as it takes.

A connection that breaks is opened again behind the last event that came, so no event is missed and none comes twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
import yarl

from styx.client.credential import Credential
from styx.errors import BadArguments, EventsCut, EventsReleased, NotSent, RequestRejected, StyxError
from styx.model.event_seen import EventMessage
from styx.values.codec import shown
from styx.values.event_lines import ERROR, Block, BlockReader

SILENCE_SECONDS_MAX: Final = 60.0
"""A gateway that sends nothing for so long, not even a comment, counts as gone."""
CONNECT_SECONDS_MAX: Final = 10.0
ATTEMPTS_MAX: Final = 8
"""Connections in a row that bring no event before a reader hears of it."""
PAUSE_SECONDS_MAX: Final = 5.0
"""Between two connections, at most."""
BODY_BYTES_MAX: Final = 64 * 1024
"""Of an answer that is no stream."""

_decode = msgspec.json.Decoder(EventMessage).decode

Sessions = Callable[[], aiohttp.ClientSession | None]
"""The client's session, None once it is closed."""


class _Error(msgspec.Struct):
    code: str = ""
    message: str = ""
    type: str = ""


class _Refusal(msgspec.Struct):
    error: _Error


class _Broken(Exception):
    """The connection ended before the stream did; the next one may be better."""


class HttpEvents:
    """An `EventSource` behind the gateway at `url`."""

    def __init__(self, url: str, credential: Credential, session: Sessions) -> None:
        self._url = url
        self._credential = credential
        self._session = session

    async def read(self, event: str, after: str | None, follow: bool) -> AsyncIterator[list[EventMessage]]:
        """As `EventSource.read`. Raises `NotSent` if nobody answers, and `RequestRejected`."""
        failures, place, began = 0, after, False
        yield []
        while True:
            try:
                async with aclosing(self._connection(event, place, follow)) as answer:
                    async for blocks in answer:
                        began = True
                        for each in blocks:
                            place = place if each.id is None else each.id
                        messages = [_decode(each.data) for each in blocks if each.data]
                        if messages:
                            failures = 0
                            yield messages
                if not follow:
                    return
                why = "the gateway has ended the stream"
            except _Broken as error:
                why = str(error)
            except (ValueError, msgspec.DecodeError) as error:
                raise EventsCut(f"{self._url} sends what is no event of a gateway: {error}") from None
            if not began:
                raise NotSent(f"{self._url}: {why}; is the gateway running there?")
            failures += 1
            if failures >= ATTEMPTS_MAX:
                at = "the beginning" if place is None else place
                raise EventsCut(f"events of {event!r} cannot be read from {self._url}: {why}; read on behind {at}")
            await asyncio.sleep(min(PAUSE_SECONDS_MAX, 0.05 * 2**failures))

    async def _connection(self, event: str, after: str | None, follow: bool) -> AsyncGenerator[list[Block]]:
        session = self._session()
        if session is None:
            raise EventsCut("the client was closed")
        query = {"follow": "true" if follow else "false"} | ({} if after is None else {"after": after})
        url = yarl.URL(f"{self._url}/v1/events/{quote(event, safe='')}?{urlencode(query)}", encoded=True)
        headers = {"Accept": "text/event-stream", **self._credential.headers()}
        times = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=SILENCE_SECONDS_MAX)
        try:
            async with session.get(url, headers=headers, timeout=times, allow_redirects=False) as response:
                if response.status != 200 or response.content_type != "text/event-stream":
                    raise _refused(self._url, response.status, await response.content.read(BODY_BYTES_MAX))
                blocks = BlockReader()
                yield []
                async for data in response.content.iter_any():
                    found = blocks.take(data)
                    usual = [each for each in found if each.name != ERROR]
                    if usual:
                        yield usual
                    for each in found:
                        if each.name == ERROR:
                            raise _ended(each)
        except StyxError:
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if self._session() is not session:
                raise EventsCut("the client was closed") from None
            raise _Broken(str(error) or type(error).__name__) from None


def _ended(block: Block) -> Exception:
    """What a gateway says in a stream that it ends."""
    told = msgspec.json.decode(block.data or b"{}", type=_Refusal).error
    return EventsReleased(told.message) if told.type == EventsReleased.__name__ else _Broken(told.message)


def _refused(url: str, status: int, body: bytes) -> Exception:
    """What an answer that is no stream means."""
    try:
        error = msgspec.json.decode(body, type=_Refusal).error
    except (msgspec.DecodeError, ValueError):
        return NotSent(f"{url}: status {status} without events: {shown(body)}; is there a gateway?")
    answer: StyxError
    if error.code == "released":
        answer = EventsReleased(error.message)
    elif error.type == BadArguments.__name__:
        answer = BadArguments(error.message)
    elif error.code in ("unavailable", "overloaded", "rate_limited"):
        return _Broken(f"{error.code}: {error.message}")
    else:
        answer = RequestRejected(error.code, error.message)
    return answer
