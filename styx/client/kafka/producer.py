"""Request records on their way into Kafka: queued by slot, sent in batches, acknowledged by all replicas.

It never waits for replies and never sends a record twice, with one exception: a request with an idempotency key, whose
batch failed. A batch is repeated for as long as Kafka is away, under the same sequence numbers, so that the broker
recognises it. It fails only when the broker refuses it for good. It may have been written all the same, and it leaves a
gap in the sequence numbers, which makes the broker refuse all later ones. Therefore what follows has a new identity;
what the failed batch carried stays unanswered, and ends at its own timeout.

All requests of one turn of the event loop leave together, in one exchange with each broker; what comes while that is
under way, or within its pause, gathers for the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from styx.client.kafka.pacing import Pacing
from styx.client.kafka.slot_lane import SlotLane
from styx.client.kafka.waiters import Waiter
from styx.errors import EngineFailed
from styx.kafka.errors import NO_ERROR, name_of, passes
from styx.kafka.session import REQUEST_SECONDS, RETRY_SECONDS, KafkaSession
from styx.kafka.transaction import ProducerIdentity, initialize
from styx.kafka.wire import Produce

AWAY_SECONDS: Final = 2.0
"""How long Kafka may be silent before new requests are refused."""
PROBE_SECONDS: Final = 1.0
"""How often Kafka is asked for a sign of life."""
CLOSE_SECONDS: Final = 2.0
"""How long closing waits for what is being sent."""
EXCHANGE_BYTES_MAX: Final = 1024 * 1024
"""No more batches go into an exchange that has this much."""

_ALL_REPLICAS: Final = -1
_DUPLICATE: Final = 46
_NO_TRANSACTION: Final[str | None] = None

_log = logging.getLogger("styx.client.kafka")


class RequestProducer:
    """Appends requests to `topic`, which has a partition for each slot; `session` is open.

    `on_end` is told when one of its tasks ends, which without `close` is a fault. `pacing` hears of replies from its
    owner.
    """

    def __init__(self, session: KafkaSession, topic: str, on_end: Callable[[asyncio.Task[None]], None]) -> None:
        self.pacing = Pacing()
        self._session = session
        self._topic = topic
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._identity: ProducerIdentity | None = None
        self._lanes: dict[int, SlotLane] = {}
        self._ready: dict[int, SlotLane] = {}
        self._under_way: dict[int, SlotLane] = {}
        self._exchanges: dict[int | None, asyncio.Task[None]] = {}
        self._dispatching: asyncio.Handle | None = None
        self._away_since_s: float | None = None
        self._probing: asyncio.Task[None] | None = None
        self._closed = False
        self._troubles: set[str] = set()

    async def start(self) -> None:
        """Gets an identity, which takes as long as Kafka does. Raises `AppendFailed`."""
        self._identity = await initialize(self._session, None)
        self._probing = asyncio.create_task(self._probe())
        self._probing.add_done_callback(self._on_end)

    def send(self, waiter: Waiter) -> None:
        """Queues a request; all those of one turn of the event loop leave together."""
        lane = self._lanes.get(waiter.slot)
        if lane is None:
            lane = self._lanes[waiter.slot] = SlotLane(waiter.slot)
        lane.waiting.append(waiter)
        if not lane.engaged:
            lane.engaged = True
            self._ready[lane.slot] = lane
            if self._dispatching is None:
                self._dispatching = self._loop.call_soon(self._dispatch)

    @property
    def away_reason(self) -> str | None:
        """Why requests cannot be sent now, None if they can."""
        since_s = self._away_since_s
        if self._under_way:
            # The oldest comes first: a slot's entry is made anew with each batch.
            oldest_s = next(iter(self._under_way.values())).since_s
            since_s = oldest_s if since_s is None else min(oldest_s, since_s)
        if since_s is None:
            return None
        seconds = self._loop.time() - since_s
        return f"{self._session} has not answered for {seconds:.0f} s" if seconds > AWAY_SECONDS else None

    async def close(self) -> None:
        """Waits for what is being sent, but no longer than `CLOSE_SECONDS`; what is queued is not sent any more."""
        self._closed = True
        if self._exchanges:
            await asyncio.wait(self._exchanges.values(), timeout=CLOSE_SECONDS)
        tasks = [*self._exchanges.values()] if self._probing is None else [self._probing, *self._exchanges.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _dispatch(self) -> None:
        """Starts an exchange with each broker that leads a slot with requests, and has none."""
        self._dispatching = None
        if self._closed:
            return
        for node in {self._session.leader(self._topic, slot) for slot in self._ready}:
            if node not in self._exchanges:
                self._exchanges[node] = exchange = self._loop.create_task(self._exchange(node))
                exchange.add_done_callback(partial(self._exchanged, node))

    def _exchanged(self, node: int | None, exchange: asyncio.Task[None]) -> None:
        del self._exchanges[node]
        if exchange.cancelled() or exchange.exception() is not None:
            self._on_end(exchange)
        elif self._ready:
            self._dispatch()

    async def _exchange(self, node: int | None) -> None:
        """Sends to one broker for as long as there is anything and it takes it; else ends after a pause."""
        try:
            while not self._closed:
                if self._identity is None:
                    self._identity = await initialize(self._session, None)
                wait_s = self.pacing.wait_s(node, self._loop.time())
                if wait_s > 0 and self._ready:
                    await asyncio.sleep(wait_s)
                    continue
                lanes = self._load(node, self._identity)
                if not lanes:
                    return
                if not await self._produce(node, lanes):
                    break
        except (ConnectionError, EngineFailed) as error:
            self._trouble(str(error))
        if not self._closed:
            await asyncio.sleep(RETRY_SECONDS)
            await self._session.refresh()

    def _load(self, node: int | None, identity: ProducerIdentity) -> list[SlotLane]:
        """Those whose batches go into the next exchange. Others stay ready, and come first the next time."""
        leader, topic, now_s = self._session.leader, self._topic, self._loop.time()
        taken, n_bytes = [], 0
        for slot, lane in [*self._ready.items()]:
            if n_bytes >= EXCHANGE_BYTES_MAX:
                break
            if leader(topic, slot) != node:
                continue
            del self._ready[slot]
            if lane.batch is None:
                lane.build(identity, now_s)
                if lane.batch is None:
                    lane.engaged = False
                    continue
                self._under_way[slot] = lane
            n_bytes += len(lane.batch)
            taken.append(lane)
        if taken:
            self.pacing.exchanged(node, now_s, n_bytes)
        return taken

    async def _produce(self, node: int | None, lanes: list[SlotLane]) -> bool:
        """False if the next exchange had better wait a little. Raises `ConnectionError`."""
        try:
            if node is None:
                raise ConnectionError(f"{self._session}: {self._topic} has partitions without a leader")
            batches = [(lane.slot, lane.batch) for lane in lanes]
            timeout_ms = int(REQUEST_SECONDS * 1000)
            request = Produce(_NO_TRANSACTION, _ALL_REPLICAS, timeout_ms, [(self._topic, batches)])
            answer = await self._session.send(node, request)
            codes = {partition: code for _, partitions in answer.topics for partition, code, *_ in partitions}
            outcomes = [self._answered(lane, codes.get(lane.slot)) for lane in lanes]
            return all(outcomes)
        finally:
            for lane in lanes:
                if lane.batch is not None or lane.waiting:
                    self._ready[lane.slot] = lane
                else:
                    lane.engaged = False

    def _answered(self, lane: SlotLane, code: int | None) -> bool:
        """Whether Kafka has the batch."""
        if code in (NO_ERROR, _DUPLICATE):
            lane.acknowledged()
            self._troubles.clear()
            del self._under_way[lane.slot]
            return True
        problem = f"{self._topic}, partition {lane.slot}: {'no answer' if code is None else name_of(code)}"
        if code is None or passes(code):
            self._trouble(problem)
            return False
        self._trouble(f"{self._session} refuses {problem}", logging.WARNING, "only those with an idempotency key are")
        lane.lost()
        self._identity = None
        del self._under_way[lane.slot]
        # What the next batch repeats may be refused as this was, over and over.
        return False

    def _trouble(self, text: str, level: int = logging.INFO, what: str = "requests are") -> None:
        """Tells of it once until Kafka takes requests again."""
        if text not in self._troubles:
            self._troubles.add(text)
            _log.log(level, "%s; %s sent again", text, what)

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
        if self._identity is None:
            return False
        try:
            async with asyncio.timeout(AWAY_SECONDS):
                return await self._session.refresh()
        except TimeoutError:
            return False
