"""Reads outside the log through a cluster's gateway: each goes to the worker that owns the slot of its entity, over one
authenticated connection to each worker.

A read changes nothing, so it can always be asked again. The gateway does so, until its caller has waited for long
enough, whenever a worker cannot be reached, is lost, or says that the read can be asked again: while slots move to
other workers, and behind a recovery. Who owns which slot is what the coordinator has said last; a worker that does not
own a slot refuses the read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from styx.cluster.gateway.worker_link import WorkerLink
from styx.cluster.wire import Owners
from styx.errors import RequestRejected
from styx.messages import ReplyRecord
from styx.model.freshness import LATEST, SESSION, STRICT, Freshness
from styx.model.limits import Limits, peer_silence_seconds
from styx.model.request import Placed
from styx.protocol.reads import READ_PHASE, PartReturned, ReadAnswered, ReadAsked
from styx.transport import Connection, Hello, Security, dial
from styx.worker.reads import UNAVAILABLE

DIAL_SECONDS_MAX: Final = 1.0
RETRY_SECONDS: Final = 0.05
"""The pause before a read is asked again, unless other owners are told of before."""


class ClusterReads:
    """The reads of one gateway. `limits` gives those of the deployment. A worker that is silent for longer than its
    peers wait (`peer_silence_seconds`) is lost. `known` is what the coordinator has said last about the owners of
    slots, and `changed` is set when it says something else.
    """

    def __init__(self, security: Security, hello: Hello, limits: Callable[[], Limits]) -> None:
        self._security = security
        self._hello = hello
        self._limits = limits
        self.known: Owners | None = None
        self.changed = asyncio.Event()
        self._links: dict[int, WorkerLink] = {}
        self._closed = False
        self.under_way = 0

    def owners(self, known: Owners) -> None:
        """The coordinator says who owns which slot. Connections to workers that own none end."""
        self.known = known
        for worker in self._links.keys() - known.addresses.keys():
            self._links.pop(worker).close()
        self.changed.set()
        self.changed = asyncio.Event()

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
                known, changed = self.known, self.changed
                answer = None if known is None else await self._ask(known, request, freshness)
                if answer is not None:
                    return _record(request.request_id, answer)
                await until(changed, None if known is None else RETRY_SECONDS)
        finally:
            self.under_way -= 1

    async def _ask(self, known: Owners, request: Placed, freshness: Freshness) -> ReadAnswered | None:
        """The answer of the slot's owner; None if the read is to be asked again."""
        link = self.link(known, known.owners[request.slot])
        if link is None:
            return None
        answer = await link.ask(lambda number: _message(number, known.generation, request.payload, freshness))
        end = None if answer is None else answer.end
        return answer if isinstance(end, PartReturned) or (end is not None and end.code != UNAVAILABLE) else None

    def bytes_received(self) -> dict[int, int]:
        """By worker, over the connections that there are; signs of life are among them."""
        return {worker: link.bytes_received for worker, link in self._links.items() if not link.lost}

    def link(self, known: Owners, worker: int) -> WorkerLink | None:
        """The connection to a worker, which may still be dialled; None once these are closed."""
        link = self._links.get(worker)
        if (link is None or link.lost) and not self._closed:
            silence_s = peer_silence_seconds(self._limits())
            link = self._links[worker] = WorkerLink(self._dial(known.addresses[worker]), silence_s)
        return link

    async def _dial(self, address: str) -> Connection:
        where, _, incarnation = address.rpartition("/")
        connection = await dial(where, self._security, self._hello, DIAL_SECONDS_MAX)
        if connection.peer.incarnation != incarnation:
            connection.abort("another process answers at this address")
            raise ConnectionError(f"another process answers at {where}")
        return connection


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


async def until(changed: asyncio.Event, seconds: float | None) -> None:
    """Waits for other owners, or for the pause before another attempt."""
    waiting = asyncio.ensure_future(changed.wait())
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        waiting.cancel()
