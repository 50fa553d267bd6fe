"""Sends what is queued in lanes: one exchange at a time with each broker, acknowledged by all replicas.

All that is queued in one turn of the event loop leaves together; what comes while an exchange is under way, or within
its pause, gathers for the next one. A batch is repeated for as long as Kafka is away. One that the broker refuses for
good is its owner's to judge: it may have been written all the same, and leaves a gap in the sequence numbers, which
makes the broker refuse all later ones of the same identity.

Built on aiokafka's client and not on its producer, which cannot be stopped while Kafka is away.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Generic, TypeVar

from styx.kafka.errors import NO_ERROR, AppendFailed, name_of, passes
from styx.kafka.lane import Lane, Queue
from styx.kafka.pacing import Pacing
from styx.kafka.session import REQUEST_SECONDS, RETRY_SECONDS, KafkaSession
from styx.kafka.transaction import ProducerIdentity, Transaction, initialize
from styx.kafka.wire import Produce

EXCHANGE_BYTES_MAX: Final = 512 * 1024
"""No more batches are built for an exchange that has this much, so that building one takes milliseconds."""

_ALL_REPLICAS: Final = -1
_NO_ANSWER: Final[tuple[int | None, int]] = (None, -1)

_log = logging.getLogger(__name__)

Q = TypeVar("Q", bound=Queue)


class Producer(Generic[Q]):
    """For one event loop; `session` is opened, and `identity` set, before anything is queued.

    `acknowledged` gets a lane whose batch Kafka has, and the offset of its first record. `refused` gets one whose batch
    is refused for good, with the broker's code; it says whether Kafka has the batch all the same, and may raise.
    `failed` is told of an error that ends an exchange for good; then, the producer is to be stopped. `repeated` says in
    the log what is sent again.

    With a `transaction`, all records stand in it. An `identity` that its owner sets to None is replaced by a new one.
    """

    def __init__(
        self,
        session: KafkaSession,
        *,
        acknowledged: Callable[[Lane[Q], int], None],
        refused: Callable[[Lane[Q], int], bool],
        failed: Callable[[BaseException], None],
        repeated: str,
    ) -> None:
        self.pacing = Pacing()
        self.identity: ProducerIdentity | None = None
        self.transaction: Transaction | None = None
        self._session = session
        self._acknowledged = acknowledged
        self._refused = refused
        self._failed = failed
        self._repeated = repeated
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
        """Something was queued in a lane that was not engaged."""
        lane.engaged = True
        self._ready[lane] = None
        # An exchange that is under way looks for more when it has ended.
        exchanges = self._exchanges
        if self._dispatching is None and (
            not exchanges or self._session.leader(lane.topic, lane.partition) not in exchanges
        ):
            self._dispatch_soon()

    @property
    def oldest(self) -> Lane[Q] | None:
        """The lane whose batch is under way longest, None if none is."""
        return next(iter(self._under_way), None)

    def stuck(self) -> Lane[Q] | None:
        """The lane that has got no further for longest, None if nothing is queued."""
        return min([*self._under_way, *self._ready], key=lambda lane: lane.since_s, default=None)

    def stood_still(self, seconds: float) -> None:
        """The loop has not heard meanwhile what Kafka answered: nobody has waited for that."""
        now_s = self._loop.time()
        for lane in {*self._under_way, *self._ready}:
            lane.since_s = min(now_s, lane.since_s + seconds)

    def commit(self) -> None:
        """Commits the transaction as soon as no batch is under way."""
        self._commit_due = True
        self._dispatch_soon()

    def trouble(self, text: str, level: int = logging.INFO, repeated: str = "") -> None:
        """Tells of it once until Kafka takes something again: there are ten attempts a second, and no end of them."""
        if text not in self._troubles:
            self._troubles.add(text)
            _log.log(level, "%s; %s", text, repeated or self._repeated)

    def stop(self) -> None:
        """Sends nothing more, and takes no notice of what is still answered."""
        self._stopped = True

    async def close(self, patience_s: float = 0.0) -> None:
        """Stops; waits so long for what is under way, and gives it up then."""
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
            # What failed is repeated first, and newer batches with it.
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
        await self.transaction.commit()
        self._commit_due = False

    async def _exchange(self, node: int | None) -> None:
        """Sends to one broker for as long as there is anything and it takes it; else ends after a pause."""
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
        """Those whose batches go into the next exchange. Others stay ready, and come first the next time."""
        leader, transactional, now_s = self._session.leader, self.transaction is not None, self._loop.time()
        taken, n_bytes = [], 0
        for lane in [*self._ready]:
            if n_bytes >= EXCHANGE_BYTES_MAX:
                break
            leading = leader(lane.topic, lane.partition)
            if leading != node:
                if leading not in self._exchanges:
                    self._dispatch_soon()
                continue
            del self._ready[lane]
            batch = lane.batch
            if batch is None:
                batch = lane.build(identity, transactional)
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
        """False if the next exchange had better wait a little. Raises `ConnectionError`, and what `refused` raises."""
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
