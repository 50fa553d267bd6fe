"""The change feed through a gateway: server-sent events, read on over as many connections as it takes.

A connection that breaks is opened again behind the last epoch that came whole, so no epoch is missed, and none comes
twice. If its changes are not kept any more by then, the reader is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import quote

import msgspec
import yarl

from styx.client.changes import ChangedEpoch, Steps, TypedChanges
from styx.client.credential import Credential
from styx.client.event_connection import AGAIN, Broken, Meanings, Sessions, Told, connection
from styx.errors import NotSent, RequestRejected
from styx.model.changes import FROM_NOW, follow_error
from styx.values.codec import shown
from styx.values.event_lines import Block

ATTEMPTS_MAX: Final = 12
"""Connections in a row that bring nothing before a reader hears of it."""
PAUSE_SECONDS_MAX: Final = 2.0
"""Between two connections, at most: what is missed meanwhile is kept for a while only."""
CHANGES_BYTES_MAX: Final = 64 * 1024 * 1024
"""One event: it ends behind the first change that makes it large, which may be a state as large as any."""


class _Changes(msgspec.Struct):
    epoch: int
    changes: list[dict[str, Any]]
    more: bool = False


_decode = msgspec.json.Decoder(_Changes).decode


class HttpChanges:
    """Follows changes behind the gateway at `url`."""

    def __init__(self, url: str, credential: Credential, session: Sessions) -> None:
        self._url = url
        self._credential = credential
        self._session = session

        def no_stream(status: int, body: bytes) -> Exception:
            return NotSent(f"{url}: status {status} without changes: {shown(body)}; is there a gateway?")

        self._meanings = Meanings(_error, _error, no_stream, NotSent)

    async def steps(self, operator: str, table: str | None, after: int, typed: TypedChanges) -> Steps:
        """As `ChangeReader` takes them. Raises `NotSent` if nobody answers, `SnapshotTooOld`, and
        `RequestRejected`.
        """
        failures, place, began = 0, after, False
        while True:
            try:
                async with aclosing(self._connection(operator, table, place)) as answer:
                    parts: list[dict[str, Any]] = []
                    async for blocks in answer:
                        for each in blocks:
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
            except Broken as error:
                why = str(error)
            except (ValueError, msgspec.DecodeError) as error:
                raise RequestRejected("internal", f"{self._url} sends what is no change: {error}") from None
            failures += 1
            if not began or failures >= ATTEMPTS_MAX:
                raise NotSent(f"changes of {operator!r} cannot be read from {self._url}: {why}")
            await asyncio.sleep(min(PAUSE_SECONDS_MAX, 0.05 * 2**failures))

    def _connection(self, operator: str, table: str | None, after: int) -> AsyncGenerator[list[Block]]:
        path = "/".join(quote(name, safe="") for name in (operator, table) if name is not None)
        url = yarl.URL(f"{self._url}/v1/~changes/{path}", encoded=True)
        headers = {} if after == FROM_NOW else {"Last-Event-ID": str(after)}
        return connection(self._session, url, headers, self._credential, self._meanings, CHANGES_BYTES_MAX)


def _error(told: Told) -> Exception:
    return Broken(told.message) if told.code in AGAIN else follow_error(told.code, told.message)
