"""Events through a gateway: server-sent events, read on over as many connections as it takes.

A connection that breaks is opened again behind the last event that came, so no event is missed and none comes twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
import yarl

from styx.client.credential import Credential
from styx.client.event_connection import AGAIN, Broken, Meanings, Sessions, Told, connection
from styx.errors import BadArguments, EventsCut, EventsReleased, NotSent, RequestRejected
from styx.model.event_seen import EventMessage
from styx.values.codec import shown
from styx.values.event_lines import Block

ATTEMPTS_MAX: Final = 8
"""Connections in a row that bring no event before a reader hears of it."""
PAUSE_SECONDS_MAX: Final = 5.0
"""Between two connections, at most."""
_decode = msgspec.json.Decoder(EventMessage).decode


class HttpEvents:
    """An `EventSource` behind the gateway at `url`."""

    def __init__(self, url: str, credential: Credential, session: Sessions) -> None:
        self._url = url
        self._credential = credential
        self._session = session

        def no_stream(status: int, body: bytes) -> Exception:
            return NotSent(f"{url}: status {status} without events: {shown(body)}; is there a gateway?")

        self._meanings = Meanings(_ended, _refused, no_stream, EventsCut)

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
            except Broken as error:
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

    def _connection(self, event: str, after: str | None, follow: bool) -> AsyncGenerator[list[Block]]:
        query = {"follow": "true" if follow else "false"} | ({} if after is None else {"after": after})
        url = yarl.URL(f"{self._url}/v1/events/{quote(event, safe='')}?{urlencode(query)}", encoded=True)
        return connection(self._session, url, {}, self._credential, self._meanings)


def _ended(told: Told) -> Exception:
    """What a gateway says in a stream that it ends."""
    return EventsReleased(told.message) if told.type == EventsReleased.__name__ else Broken(told.message)


def _refused(told: Told) -> Exception:
    if told.code == "released":
        return EventsReleased(told.message)
    if told.type == BadArguments.__name__:
        return BadArguments(told.message)
    if told.code in AGAIN:
        return Broken(f"{told.code}: {told.message}")
    return RequestRejected(told.code, told.message)
