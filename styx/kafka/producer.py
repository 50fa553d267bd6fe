"""The producer: sends records that are queued by partition into Kafka, acknowledged by all replicas.

Each partition has a lane, and each lane has one batch under way at once. The batch keeps its bytes and its sequence
numbers until its outcome is known, so that the broker recognises a repetition; then the lane builds the next one. So
records are neither doubled, nor lost, nor reordered. A batch is repeated for as long as Kafka is away. If the broker
refuses a batch for good, the producer's owner decides: the batch may have been written all the same. It leaves a gap in
the sequence numbers, and the broker refuses all later batches of the same identity.

A broker gets one exchange at a time. Records that were queued in one turn of the event loop leave together; records
that come while an exchange is under way, or within the pause after it, gather for the next exchange.

aiokafka's own producer is not used, since it cannot be stopped while Kafka is away.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sized
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx.kafka.errors import NO_ERROR, AppendFailed, name_of, passes
from styx.kafka.session import REQUEST_SECONDS, RETRY_SECONDS, KafkaSession
from styx.kafka.transaction import ProducerIdentity, Transaction, initialize
from styx.kafka.wire import Produce

PAUSE_SHARE: Final = 1 / 4
"""The time between two exchanges, as a share of the time that the fastest of the last replies took."""
PAUSE_SECONDS_MAX: Final = 0.05
"""Between two exchanges."""
EXCHANGE_BYTES_PAUSED: Final = 256 * 1024
"""An exchange of more bytes is followed by the next one at once: it is large enough already."""

Add: TypeAlias = Callable[[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]], Any]
"""Adds a record to a batch. Takes its number in the batch, its time in ms, key, value and headers; gives None if the
batch is full.
"""

_ALL_REPLICAS: Final = -1
_FORMAT: Final = 2
_NOT_COMPRESSED: Final = 0
_SEQUENCES: Final = 2**31
_NO_ANSWER: Final[tuple[int | None, int]] = (None, -1)

_log = logging.getLogger(__name__)


class Pacing:
    """When the next exchange with a broker may begin: at once, unless replies take long anyway.

    The costs of an exchange for client, broker and workers hardly depend on its number of records. Under load replies
    take long, since requests queue. Then requests gather during a small part of that time, in a pause between two
    exchanges. All of them get cheaper, and a lone request never waits.

    Times are the event loop's, in seconds. `pause_s` is the present time between two exchanges.
    """

    def __init__(self) -> None:
        self.pause_s = 0.0
        self._next_s: dict[int | None, float] = {}

    def replied_after(self, seconds: float) -> None:
        """Takes the time from a request to its reply, of the fastest of the last replies."""
        self.pause_s = min(seconds * PAUSE_SHARE, PAUSE_SECONDS_MAX)

    def exchanged(self, node: int | None, now_s: float, n_bytes: int) -> None:
        """An exchange of `n_bytes` with a broker begins."""
        self._next_s[node] = now_s if n_bytes > EXCHANGE_BYTES_PAUSED else now_s + self.pause_s

    def wait_s(self, node: int | None, now_s: float) -> float:
        """The time until the next exchange with this broker may begin; 0 or less for at once."""
        return self._next_s.get(node, now_s) - now_s


class Queue(Protocol):
    """A lane's records, with their owner's bookkeeping: those that wait, and those in the batch under way."""

    @property
    def waiting(self) -> Sized:
        """Records that are in no batch yet."""

    def fill(self, add: Add, now_ms: int, /) -> int:
        """Moves records that wait into a batch, in order, until it is full; returns the number of records."""


Q = TypeVar("Q", bound=Queue)


class Lane(Generic[Q]):
    """One partition's queue and the batch that is under way, None without one.

    `engaged` is the producer's mark for a lane with something to send. `since_s` is the time of the last progress: a
    batch was built or acknowledged, or the first record was queued.
    """

    __slots__ = ("_identity", "_sequence", "batch", "engaged", "partition", "queue", "since_s", "topic")

    def __init__(self, topic: str, partition: int, queue: Q) -> None:
        self.topic = topic
        self.partition = partition
        self.queue = queue
        self.batch: bytearray | None = None
        self.engaged = False
        self.since_s = 0.0
        self._identity: ProducerIdentity | None = None
        self._sequence = 0

    def build(self, identity: ProducerIdentity, transactional: bool, bytes_max: int) -> bytearray | None:
        """Makes `batch` of the records that wait, up to `bytes_max`; None if none does.

        Sequence numbers begin anew with each identity.
        """
        if identity is not self._identity:
            self._identity, self._sequence = identity, 0
        builder = DefaultRecordBatchBuilder(
            _FORMAT, _NOT_COMPRESSED, int(transactional), *identity, self._sequence, bytes_max
        )
        count = self.queue.fill(builder.append, int(time.time() * 1000))
        if count:
            self._sequence = (self._sequence + count) % _SEQUENCES
            self.batch = builder.build()
        return self.batch


class Producer(Generic[Q]):
    """For one event loop. The owner opens `session`, and sets `identity`, before the first record is queued.

    `acknowledged` gets a lane whose batch Kafka has, and the offset of its first record. `refused` gets a lane whose
    batch the broker refuses for good, and the broker's code; it returns whether Kafka has the batch all the same, and
    may raise. `failed` gets an error that ends an exchange for good; the owner then stops the producer. `repeated` is
    the part of log messages about records that are sent again.

    A batch has at most `batch_bytes_max`, unless a single record is larger. An exchange that has `exchange_bytes_max`
    takes no further batch.

    With a `transaction`, all records belong to it. If the owner sets `identity` to None, the producer gets a new one.
    """

    def __init__(
        self,
        session: KafkaSession,
        *,
        acknowledged: Callable[[Lane[Q], int], None],
        refused: Callable[[Lane[Q], int], bool],
        failed: Callable[[BaseException], None],
        repeated: str,
        batch_bytes_max: int,
        exchange_bytes_max: int,
    ) -> None:
        self.pacing = Pacing()
        self.identity: ProducerIdentity | None = None
        self.transaction: Transaction | None = None
        self._when_committed: list[Callable[[], None]] = []
        self._session = session
        self._acknowledged = acknowledged
        self._refused = refused
        self._failed = failed
        self._repeated = repeated
        self._batch_bytes_max = batch_bytes_max
        self._exchange_bytes_max = exchange_bytes_max
        self._loop = asyncio.get_running_loop()
        self._ready: dict[Lane[Q], None] = {}
        self._under_way: dict[Lane[Q], None] = {}
        self._exchanges: dict[int | None, asyncio.Task[None]] = {}
        self._committing: asyncio.Task[None] | None = None
        self._commit_due = False
        self._dispatching: asyncio.Handle | None = None
        self._stopped = False
        self._troubles: set[str] = set()

    def engage(self, lane: Lane[Q]) -> None:
        """Sends from a lane that was not engaged, and has records now."""
        lane.engaged = True
        self._ready[lane] = None
        # An exchange that is under way looks for more at its end.
        exchanges = self._exchanges
        if self._dispatching is None and (
            not exchanges or self._session.leader(lane.topic, lane.partition) not in exchanges
        ):
            self._dispatch_soon()

    @property
    def oldest(self) -> Lane[Q] | None:
        """The lane whose batch has been under way for longest, None without one."""
        return next(iter(self._under_way), None)

    def stuck(self) -> Lane[Q] | None:
        """The lane without progress for longest, None if nothing is queued."""
        return min([*self._under_way, *self._ready], key=lambda lane: lane.since_s, default=None)

    def stood_still(self, seconds: float) -> None:
        """Leaves out a time in which the loop stood still, and could not hear Kafka's answers."""
        now_s = self._loop.time()
        for lane in {*self._under_way, *self._ready}:
            lane.since_s = min(now_s, lane.since_s + seconds)

    def commit(self, then: Callable[[], None] | None = None) -> None:
        """Commits the transaction as soon as no batch is under way; then what was acknowledged before is committed."""
        self._commit_due = True
        if then is not None:
            self._when_committed.append(then)
        self._dispatch_soon()

    def trouble(self, text: str, level: int = logging.INFO, repeated: str = "") -> None:
        """Logs a text once until Kafka takes a batch again: there may be ten attempts a second for hours."""
        if text not in self._troubles:
            self._troubles.add(text)
            _log.log(level, "%s; %s", text, repeated or self._repeated)

    def stop(self) -> None:
        """Sends nothing more, and ignores later answers."""
        self._stopped = True

    async def close(self, patience_s: float = 0.0) -> None:
        """Stops; waits up to `patience_s` for exchanges under way, and then gives them up."""
        self.stop()
        tasks = [*self._exchanges.values()] if self._committing is None else [self._committing]
        if tasks and patience_s:
            await asyncio.wait(tasks, timeout=patience_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _dispatch_soon(self) -> None:
        if self._dispatching is None:
            self._dispatching = self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        """Starts an exchange with each broker that leads a ready lane, and has none; or the commit that is due."""
        self._dispatching = None
        if self._stopped or self._committing is not None:
            return
        if self._commit_due:
            if self._exchanges:
                return
            # Batches that failed are repeated first, and newer ones leave with them.
            if not self._under_way:
                self._committing = self._start(self._commit(), self._committed)
                return
        for node in {self._session.leader(lane.topic, lane.partition) for lane in self._ready}:
            if node not in self._exchanges:
                self._exchanges[node] = self._start(self._exchange(node), partial(self._exchanged, node))

    def _start(
        self, work: Coroutine[Any, Any, None], ended: Callable[[asyncio.Task[None]], None]
    ) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        task.add_done_callback(ended)
        return task

    def _exchanged(self, node: int | None, exchange: asyncio.Task[None]) -> None:
        del self._exchanges[node]
        self._go_on(exchange)

    def _committed(self, committing: asyncio.Task[None]) -> None:
        self._committing = None
        self._go_on(committing)

    def _go_on(self, ended: asyncio.Task[None]) -> None:
        error = None if ended.cancelled() else ended.exception()
        if error is not None:
            self._failed(error)
        elif self._ready or self._commit_due:
            self._dispatch()

    async def _commit(self) -> None:
        assert self.transaction is not None
        told, self._when_committed = self._when_committed, []
        await self.transaction.commit()
        self._commit_due = False
        for then in told:
            then()

    async def _exchange(self, node: int | None) -> None:
        """Sends to one broker until nothing is left; ends after a pause if the broker does not take a batch."""
        try:
            while not self._stopped:
                identity = self.identity or await self._identified()
                if identity is None:
                    break
                wait_s = self.pacing.wait_s(node, self._loop.time())
                if wait_s > 0 and self._ready:
                    await asyncio.sleep(wait_s)
                    continue
                lanes = self._load(node, identity)
                if not lanes:
                    return
                if not await self._produce(node, lanes):
                    break
                if self._commit_due:
                    return
        except ConnectionError as error:
            self.trouble(str(error))
        if not self._stopped:
            await asyncio.sleep(RETRY_SECONDS)
            await self._session.refresh()

    async def _identified(self) -> ProducerIdentity | None:
        try:
            self.identity = await initialize(self._session, None)
        except AppendFailed as error:
            self.trouble(str(error))
        return self.identity

    def _load(self, node: int | None, identity: ProducerIdentity) -> list[Lane[Q]]:
        """The lanes of the next exchange. The others stay ready, and come first the next time."""
        leader, transactional, now_s = self._session.leader, self.transaction is not None, self._loop.time()
        taken, n_bytes = [], 0
        for lane in [*self._ready]:
            if n_bytes >= self._exchange_bytes_max:
                break
            leading = leader(lane.topic, lane.partition)
            if leading != node:
                if leading not in self._exchanges:
                    self._dispatch_soon()
                continue
            del self._ready[lane]
            batch = lane.batch
            if batch is None:
                batch = lane.build(identity, transactional, self._batch_bytes_max)
                if batch is None:
                    lane.engaged = False
                    continue
                lane.since_s = now_s
                # At the end of the dictionary, which is in the order of `since_s`.
                self._under_way[lane] = None
            n_bytes += len(batch)
            taken.append(lane)
        if taken:
            self.pacing.exchanged(node, now_s, n_bytes)
        return taken

    async def _produce(self, node: int | None, lanes: list[Lane[Q]]) -> bool:
        """One exchange; False if the next one should follow a pause. Raises `ConnectionError`, and as `refused`."""
        try:
            if node is None:
                raise ConnectionError(f"{self._session}: {lanes[0].topic} has partitions without a leader")
            topics: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)
            for lane in lanes:
                topics[lane.topic].append((lane.partition, lane.batch))
            transactional_id = None
            if self.transaction is not None:
                transactional_id = self.transaction.transactional_id
                await self.transaction.add((lane.topic, lane.partition) for lane in lanes)
            timeout_ms = int(REQUEST_SECONDS * 1000)
            request = Produce(transactional_id, _ALL_REPLICAS, timeout_ms, list(topics.items()))
            answer = await self._session.send(node, request)
            if self._stopped:
                return False
            answers = {
                (topic, partition): (code, offset)
                for topic, partitions in answer.topics
                for partition, code, offset, *_ in partitions
            }
            now_s, complete = self._loop.time(), True
            for lane in lanes:
                code, offset = answers.get((lane.topic, lane.partition), _NO_ANSWER)
                complete &= self._answered(lane, code, offset, now_s)
            return complete
        finally:
            for lane in lanes:
                if lane.batch is not None or lane.queue.waiting:
                    self._ready[lane] = None
                else:
                    lane.engaged = False

    def _answered(self, lane: Lane[Q], code: int | None, first_offset: int, now_s: float) -> bool:
        """Whether Kafka has the batch."""
        if code == NO_ERROR:
            taken = True
            self._acknowledged(lane, first_offset)
        elif code is None or passes(code):
            problem = "no answer" if code is None else name_of(code)
            self.trouble(f"{self._session}, {lane.topic}, partition {lane.partition}: {problem}")
            return False
        else:
            taken = self._refused(lane, code)
        if taken and self._troubles:
            self._troubles.clear()
        lane.batch = None
        lane.since_s = now_s
        del self._under_way[lane]
        return taken
