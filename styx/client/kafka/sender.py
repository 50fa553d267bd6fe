"""The sender: appends requests to the topic of their slots, and watches whether Kafka takes them.

It sends no request twice, with one exception: a request with an idempotency key, whose batch the broker refused for
good. The other requests of such a batch stay unanswered until their timeouts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from styx.host.waiters import Waiter
from styx.kafka.errors import name_of
from styx.kafka.producer import Add, Lane, Producer
from styx.kafka.session import KafkaSession
from styx.kafka.transaction import initialize

BATCH_BYTES_MAX: Final = 512 * 1024
"""One batch, unless a single request is larger: half of a broker's default limit."""
EXCHANGE_BYTES_MAX: Final = 1024 * 1024
"""An exchange with so many bytes takes no further batch. A load has up to 2 MiB under way, and each exchange waits for
the one before.
"""
AWAY_SECONDS: Final = 2.0
"""How long Kafka may be silent before new requests are refused."""
PROBE_SECONDS: Final = 1.0
"""Between two questions to Kafka for a sign of life."""
CLOSE_SECONDS: Final = 2.0
"""How long closing waits for batches under way."""

_DUPLICATE: Final = 46
_NO_HEADERS: Final[list[tuple[str, bytes | None]]] = []

_log = logging.getLogger("styx.client.kafka")


class Requests:
    """Requests to one slot: those that wait, and those in the batch under way. A `Queue` of a lane."""

    __slots__ = ("sent", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Waiter[bytes]] = []
        self.sent: list[Waiter[bytes]] = []

    def fill(self, add: Add, now_ms: int) -> int:
        """As `Queue.fill`. Drops requests whose callers no longer wait, since nobody would learn their outcome."""
        waiting, self.waiting = self.waiting, []
        count, sent = 0, self.sent
        for index, waiter in enumerate(waiting):
            if waiter.receiver.done():
                continue
            if add(count, now_ms, None, waiter.payload, _NO_HEADERS) is None:
                self.waiting = waiting[index:]
                break
            count += 1
            sent.append(waiter)
        return count

    def lost(self) -> None:
        """The fate of the batch is unknown: its repeatable requests wait again, before all others."""
        self.waiting[:0] = [waiter for waiter in self.sent if waiter.repeatable]
        self.sent = []


class RequestSender:
    """Appends requests to `topic`, which has a partition for each slot; `session` is open.

    `failed` gets an unforeseen error. `producer.pacing` is told how long replies take.
    """

    def __init__(self, session: KafkaSession, topic: str, failed: Callable[[BaseException], None]) -> None:
        self._session = session
        self._topic = topic
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self.producer: Producer[Requests] = Producer(
            session,
            acknowledged=self._acknowledged,
            refused=self._refused,
            failed=failed,
            repeated="requests are sent again",
            batch_bytes_max=BATCH_BYTES_MAX,
            exchange_bytes_max=EXCHANGE_BYTES_MAX,
        )
        self._lanes: dict[int, Lane[Requests]] = {}
        self._away_since_s: float | None = None
        self._probing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Gets an identity, which takes as long as Kafka does. Raises `AppendFailed`."""
        self.producer.identity = await initialize(self._session, None)
        self._probing = asyncio.create_task(self._probe())
        self._probing.add_done_callback(self._probing_ended)

    def send(self, waiter: Waiter[bytes]) -> None:
        """Queues a request; all those of one turn of the event loop leave together."""
        lane = self._lanes.get(waiter.slot)
        if lane is None:
            lane = self._lanes[waiter.slot] = Lane(self._topic, waiter.slot, Requests())
        lane.queue.waiting.append(waiter)
        if not lane.engaged:
            self.producer.engage(lane)

    @property
    def away_reason(self) -> str | None:
        """Why requests cannot be sent now, None if they can."""
        since_s, oldest = self._away_since_s, self.producer.oldest
        if oldest is not None:
            since_s = oldest.since_s if since_s is None else min(oldest.since_s, since_s)
        if since_s is None:
            return None
        seconds = self._loop.time() - since_s
        return f"{self._session} has not answered for {seconds:.0f} s" if seconds > AWAY_SECONDS else None

    async def close(self) -> None:
        """Waits up to `CLOSE_SECONDS` for batches under way; requests that are only queued are not sent."""
        await self.producer.close(CLOSE_SECONDS)
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    def _acknowledged(self, lane: Lane[Requests], _: int) -> None:
        lane.queue.sent = []

    def _refused(self, lane: Lane[Requests], code: int) -> bool:
        if code == _DUPLICATE:
            lane.queue.sent = []
            return True
        problem = f"{self._session} refuses {self._topic}, partition {lane.partition}: {name_of(code)}"
        self.producer.trouble(problem, logging.WARNING, "only those with an idempotency key are sent again")
        lane.queue.lost()
        # The batch leaves a gap in the sequence numbers. False, since the next batch may be refused like this one.
        self.producer.identity = None
        return False

    def _probing_ended(self, probing: asyncio.Task[None]) -> None:
        error = None if probing.cancelled() else probing.exception()
        if error is not None:
            self._failed(error)

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            asked_s = self._loop.time()
            alive = await self._answers()
            if alive and self._away_since_s is not None:
                _log.warning("%s answers again", self._session)
                self._away_since_s = None
            elif not alive and self._away_since_s is None:
                _log.warning("%s does not answer; requests wait", self._session)
                self._away_since_s = asked_s

    async def _answers(self) -> bool:
        if self.producer.identity is None:
            return False
        try:
            async with asyncio.timeout(AWAY_SECONDS):
                return await self._session.refresh()
        except TimeoutError:
            return False
