"""Reads outside the log through a cluster's gateway: each goes to the worker that owns the slot of its entity, over one
authenticated connection to each worker.

A read changes nothing, so it can always be asked again. The gateway does so, until its caller has waited for long
enough, whenever a worker cannot be reached, is lost, or says that the read can be asked again: while slots move to
other workers, and behind a recovery. Who owns which slot is what the coordinator has said last; a worker that does not
own a slot refuses the read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Final

from styx.cluster.wire import Owners, answers_hears, encode
from styx.errors import ConfigurationError, RequestRejected
from styx.messages import ReplyRecord
from styx.model.freshness import LATEST, SESSION, STRICT, Freshness
from styx.model.limits import Limits, peer_silence_seconds
from styx.model.request import Placed
from styx.protocol.reads import READ_PHASE, PartReturned, ReadAnswered, ReadAsked, ReadDropped
from styx.transport import Connection, Hello, Security, dial
from styx.worker.read_exchange import UNAVAILABLE

DIAL_SECONDS_MAX: Final = 1.0
RETRY_SECONDS: Final = 0.05
"""The pause before a read is asked again, unless other owners are told of before."""
PING_SECONDS: Final = 0.25

_log = logging.getLogger("styx.gateway")


class ClusterReads:
    """The reads of one gateway. `limits` gives those of the deployment. A worker that is silent for longer than its
    peers wait (`peer_silence_seconds`) is lost.
    """

    def __init__(self, security: Security, hello: Hello, limits: Callable[[], Limits]) -> None:
        self._security = security
        self._hello = hello
        self._limits = limits
        self._known: Owners | None = None
        self._changed = asyncio.Event()
        self._links: dict[int, _WorkerLink] = {}
        self._closed = False
        self.under_way = 0

    def owners(self, known: Owners) -> None:
        """The coordinator says who owns which slot. Connections to workers that own none end."""
        self._known = known
        for worker in self._links.keys() - known.addresses.keys():
            self._links.pop(worker).close()
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Ends all connections; reads under way end as if the workers were lost."""
        self._closed = True
        for link in self._links.values():
            link.close()
        self._links.clear()

    def read(self, request: Placed, freshness: Freshness) -> Coroutine[Any, Any, ReplyRecord]:
        """As `Engine.read`. It has no end as long as no worker can answer: the caller cancels it.

        Raises `RequestRejected` if too many are under way.
        """
        limit = self._limits().in_flight_max
        if self.under_way >= limit:
            raise RequestRejected("overloaded", f"{limit} reads are under way here; try again soon")
        return self._read(request, freshness)

    async def _read(self, request: Placed, freshness: Freshness) -> ReplyRecord:
        self.under_way += 1
        try:
            while True:
                known, changed = self._known, self._changed
                answer = None if known is None else await self._ask(known, request, freshness)
                if answer is not None:
                    return _record(request.request_id, answer)
                await _until(changed, None if known is None else RETRY_SECONDS)
        finally:
            self.under_way -= 1

    async def _ask(self, known: Owners, request: Placed, freshness: Freshness) -> ReadAnswered | None:
        """The answer of the slot's owner; None if the read is to be asked again."""
        worker = known.owners[request.slot]
        link = self._links.get(worker)
        if link is None or link.lost:
            if self._closed:
                return None
            silence_s = peer_silence_seconds(self._limits())
            link = self._links[worker] = _WorkerLink(self._dial(known.addresses[worker]), silence_s)
        return await link.ask(known.generation, request.payload, freshness)

    async def _dial(self, address: str) -> Connection:
        where, _, incarnation = address.rpartition("/")
        connection = await dial(where, self._security, self._hello, DIAL_SECONDS_MAX)
        if connection.peer.incarnation != incarnation:
            connection.abort("another process answers at this address")
            raise ConnectionError(f"another process answers at {where}")
        return connection


class _WorkerLink:
    """The connection to one worker, from the moment it is dialled. A lost one stays lost."""

    def __init__(self, dialling: Coroutine[Any, Any, Connection], silence_seconds: float) -> None:
        self.lost = False
        self._silence_seconds = silence_seconds
        self._connection: Connection | None = None
        self._waiting: dict[int, asyncio.Future[ReadAnswered | None]] = {}
        self._numbers = count()
        self._ready = asyncio.get_running_loop().create_task(self._open(dialling))

    async def _open(self, dialling: Coroutine[Any, Any, Connection]) -> None:
        try:
            connection = await dialling
        except (OSError, ConfigurationError) as error:  # certificates may be about to be replaced
            _log.debug("a worker cannot be reached for reads: %s", error)
            self.lost = True
            return
        self._connection = connection
        connection.start(
            self._hear, lambda *_: self._lost(), ping_seconds=PING_SECONDS, silence_seconds=self._silence_seconds
        )

    def close(self) -> None:
        """Ends the connection, and whoever waits for an answer asks again."""
        self._ready.cancel()
        if self._connection is not None:
            self._connection.abort("the gateway does not read there any more")
        self._lost()

    async def ask(self, generation: int, payload: bytes, freshness: Freshness) -> ReadAnswered | None:
        """The worker's answer, None if it is lost or says that the read can be asked again."""
        await asyncio.wait([self._ready])
        connection = self._connection
        if self.lost or connection is None:
            return None
        number = next(self._numbers)
        future: asyncio.Future[ReadAnswered | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        connection.send(encode(_message(number, generation, payload, freshness)))
        try:
            answer = await future
        except asyncio.CancelledError:
            connection.send(encode(ReadDropped(number)))
            raise
        finally:
            self._waiting.pop(number, None)
        end = None if answer is None else answer.end
        return answer if isinstance(end, PartReturned) or (end is not None and end.code != UNAVAILABLE) else None

    def _hear(self, _: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            answer = answers_hears.decode(payload)
            future = self._waiting.get(answer.id)
            if future is not None and not future.done():
                future.set_result(answer)

    def _lost(self) -> None:
        self.lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_result(None)


def _message(number: int, generation: int, payload: bytes, freshness: Freshness) -> ReadAsked:
    level = freshness.level
    at_least = freshness.token if level == SESSION else -1
    staleness_s = freshness.max_staleness_s if level in (LATEST, SESSION) else None
    return ReadAsked(number, generation, payload, at_least, freshness.at, level == STRICT, staleness_s)


def _record(request_id: str, answer: ReadAnswered) -> ReplyRecord:
    end = answer.end
    if isinstance(end, PartReturned):
        return ReplyRecord(request_id, 0, 0, answer.epoch, READ_PHASE, end.value or b"")
    return ReplyRecord(request_id, 0, 0, answer.epoch, READ_PHASE, b"", (end.code, end.kind, end.message))


async def _until(changed: asyncio.Event, seconds: float | None) -> None:
    """Waits for other owners, or for the pause before another attempt."""
    waiting = asyncio.ensure_future(changed.wait())
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        waiting.cancel()
