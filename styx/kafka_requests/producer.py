"""Request records on their way into Kafka: queued by slot, sent in batches, acknowledged by all replicas.

It never waits for replies and never sends a record twice, with one exception: a request with an idempotency key, whose
batch failed. aiokafka repeats a batch for as long as Kafka is away, under the same sequence number, so that the broker
recognises it. A batch fails when the broker refuses it, or when its partition has had no leader for
`REQUEST_TIMEOUT_SECONDS`. It may have been written all the same, and it leaves a gap in the sequence numbers, which
makes the broker refuse all later ones. Therefore one failure ends the whole producer, and another one takes its place;
what the failed batch carried stays unanswered, and ends at its own timeout.

One batch a slot is under way at once. What comes meanwhile gathers here, where a request that nobody waits for any more
is dropped without being sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from styx.kafka_requests.errors import KafkaUnreachable
from styx.kafka_requests.waiters import Waiter
from styx.log.kafka.address import KafkaAddress
from styx.log.kafka.client_log import calm
from styx.log.kafka.closed_connections import drop_closed_connections

AWAY_SECONDS: Final = 2.0
"""How long Kafka may be silent before new requests are refused."""
PROBE_SECONDS: Final = 1.0
"""How often Kafka is asked for a sign of life."""
REQUEST_TIMEOUT_SECONDS: Final = 30
"""How long one exchange with a broker may take before its connection is given up."""
RETRY_SECONDS: Final = 0.25
"""Between two attempts to reach a broker."""
CONNECT_SECONDS: Final = 10.0
"""How long one attempt to start a producer may take."""
STUCK_SECONDS: Final = 45.0
"""How long a batch may be under way while Kafka does answer; its producer is given up then."""
CLOSE_SECONDS: Final = 2.0
"""How long closing waits for what is being sent."""
BATCH_BYTES_MAX: Final = 512 * 1024
"""One batch, unless a single request is larger: half of what brokers take by default."""

OnEnd = Callable[[asyncio.Task[None]], None]

_log = logging.getLogger("styx.kafka_requests")


class _Batch:
    """What is under way for one slot; `outcome` is None until aiokafka has taken it."""

    def __init__(self, producer: AIOKafkaProducer, since_s: float) -> None:
        self.producer = producer
        self.since_s = since_s
        self.waiters: list[Waiter] = []
        self.outcome: asyncio.Future[Any] | None = None


class RequestProducer:
    """Appends requests to `topic`, which has a partition for each slot.

    `on_end` is told when one of its tasks ends, which without `close` is a fault.
    """

    def __init__(self, address: KafkaAddress, topic: str, on_end: OnEnd) -> None:
        self._address = address
        self._topic = topic
        self._producer: AIOKafkaProducer | None = None
        self._queued: defaultdict[int, deque[Waiter]] = defaultdict(deque)
        self._under_way: dict[int, _Batch] = {}
        self._idle_slots: dict[int, None] = {}
        self._wake = asyncio.Event()
        self._broken: str | None = None
        self._away_since_s: float | None = None
        self._back_since_s = 0.0
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._retired: dict[AIOKafkaProducer, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Connects; raises `KafkaUnreachable`."""
        self._producer = await self._connect()
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._probe())]
        for task in self._tasks:
            task.add_done_callback(self._on_end)

    async def partition_counts(self, *topics: str) -> list[int]:
        """How many partitions each topic has, 0 if there is no such topic; raises `KafkaUnreachable`."""
        assert self._producer is not None
        try:
            cluster = await self._producer.client.fetch_all_metadata()
        except KafkaError as error:
            raise KafkaUnreachable(f"{self} does not answer: {error}") from None
        return [len(cluster.partitions_for_topic(topic) or ()) for topic in topics]

    def send(self, waiter: Waiter) -> None:
        """Queues a request; all those of one turn of the event loop leave together."""
        slot = waiter.slot
        self._queued[slot].append(waiter)
        if slot not in self._under_way:
            self._idle_slots[slot] = None
            self._wake.set()

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
        return f"{self} has not answered for {seconds:.0f} s" if seconds > AWAY_SECONDS else None

    async def close(self) -> None:
        """Waits for what is being sent, but no longer than `CLOSE_SECONDS`; what is queued is not sent any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        outcomes = [batch.outcome for batch in self._under_way.values() if batch.outcome is not None]
        if outcomes:
            await asyncio.wait(outcomes, timeout=CLOSE_SECONDS)
        for stopping in self._retired.values():
            stopping.cancel()
        await asyncio.gather(*self._retired.values(), return_exceptions=True)
        producers = [*self._retired, *([] if self._producer is None else [self._producer])]
        self._producer = None
        self._retired.clear()
        for producer in producers:
            await _stop(producer)

    def __str__(self) -> str:
        return f"Kafka at {self._address.bootstrap}"

    async def _connect(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            **self._address.options(),
            acks="all",
            enable_idempotence=True,
            max_batch_size=BATCH_BYTES_MAX,
            request_timeout_ms=REQUEST_TIMEOUT_SECONDS * 1000,
            retry_backoff_ms=int(RETRY_SECONDS * 1000),
        )
        calm()
        drop_closed_connections(producer.client)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await producer.start()
                await producer.client.add_topic(self._topic)
        except BaseException as error:
            await _stop(producer)
            if not isinstance(error, KafkaError | OSError):
                raise
            raise KafkaUnreachable(f"{self} cannot be reached: {error or 'no answer'}") from None
        return producer

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._broken is not None:
                await self._replace_producer()
            assert self._producer is not None
            while self._idle_slots and self._broken is None:
                slot = next(iter(self._idle_slots))
                del self._idle_slots[slot]
                if slot not in self._under_way:
                    await self._send_slot(self._producer, slot)

    async def _send_slot(self, producer: AIOKafkaProducer, slot: int) -> None:
        records = producer.create_batch()
        queue = self._queued[slot]
        batch = _Batch(producer, self._loop.time())
        while queue:
            waiter = queue[0]
            # Not sent if nobody would learn what came of it.
            if not waiter.future.done():
                if records.append(key=None, value=waiter.payload, timestamp=None) is None:
                    break
                batch.waiters.append(waiter)
            queue.popleft()
        if not batch.waiters:
            return
        records.close()
        self._under_way[slot] = batch
        try:
            batch.outcome = await producer.send_batch(records, self._topic, partition=slot)
        except (KafkaError, AssertionError) as error:
            # Not taken, so not sent: aiokafka's sender has ended, or does not know the partition any more.
            del self._under_way[slot]
            queue.extendleft(reversed(batch.waiters))
            self._idle_slots[slot] = None
            self._break(error)
        else:
            batch.outcome.add_done_callback(lambda outcome: self._acknowledged(slot, batch, outcome))

    def _acknowledged(self, slot: int, batch: _Batch, outcome: asyncio.Future[Any]) -> None:
        error = outcome.exception() if not outcome.cancelled() else asyncio.CancelledError()
        if self._under_way.get(slot) is not batch:
            return
        if error is None:
            del self._under_way[slot]
        else:
            self._lose(slot)
            if batch.producer is self._producer:
                self._break(error)
        if self._queued[slot]:
            self._idle_slots[slot] = None
            self._wake.set()

    def _lose(self, slot: int) -> None:
        """Nobody knows what came of a slot's batch."""
        batch = self._under_way.pop(slot)
        self._queued[slot].extendleft(waiter for waiter in reversed(batch.waiters) if waiter.repeatable)

    def _lose_stuck(self, now_s: float) -> None:
        """Gives up on batches that aiokafka has lost sight of, should that happen."""
        stuck = [
            slot
            for slot, batch in self._under_way.items()
            if now_s - max(batch.since_s, self._back_since_s) > STUCK_SECONDS
        ]
        for slot in stuck:
            self._lose(slot)
            self._idle_slots[slot] = None
            self._break(KafkaError(f"no outcome for {STUCK_SECONDS:g} s, though Kafka answers"))

    def _break(self, error: BaseException) -> None:
        self._broken = f"{type(error).__name__}: {error}"
        self._wake.set()

    async def _replace_producer(self) -> None:
        _log.warning("%s: a batch of requests failed (%s); connecting anew", self, self._broken)
        assert self._producer is not None
        # The old one goes on with what it has under way for other slots; what is new goes to the next one.
        self._retire(self._producer)
        while True:
            try:
                self._producer = await self._connect()
                break
            except KafkaUnreachable:
                await asyncio.sleep(RETRY_SECONDS)
        self._broken = None

    def _retire(self, producer: AIOKafkaProducer) -> None:
        outcomes = [
            batch.outcome
            for batch in self._under_way.values()
            if batch.producer is producer and batch.outcome is not None
        ]
        self._retired[producer] = asyncio.create_task(self._stop_after(producer, outcomes))

    async def _stop_after(self, producer: AIOKafkaProducer, outcomes: list[asyncio.Future[Any]]) -> None:
        if outcomes:
            await asyncio.wait(outcomes)
        await _stop(producer)
        del self._retired[producer]

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            asked_s = self._loop.time()
            alive = await self._answers()
            if alive and self._away_since_s is not None:
                _log.warning("%s answers again", self)
                self._away_since_s = None
                self._back_since_s = self._loop.time()
            elif not alive and self._away_since_s is None:
                _log.warning("%s does not answer; requests wait", self)
                self._away_since_s = asked_s
            if alive:
                self._lose_stuck(self._loop.time())

    async def _answers(self) -> bool:
        if self._producer is None or self._broken is not None:
            return False
        try:
            async with asyncio.timeout(AWAY_SECONDS):
                return bool(await self._producer.client.force_metadata_update())
        except TimeoutError:
            return False


async def _stop(producer: AIOKafkaProducer) -> None:
    """Ends a producer without what it has under way."""
    # `producer.stop()` would first wait for its batches, which it repeats for as long as Kafka is away.
    producer._closed = True
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await producer._sender.close()
    except TimeoutError:
        _log.warning("a producer did not stop within %g s", CLOSE_SECONDS)
    await producer.client.close()
