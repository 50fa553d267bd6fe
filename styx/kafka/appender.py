"""Appends to the log in Kafka: never blocks, keeps the order of each partition, and says what is durable (§7).

Whatever was queued for a partition leaves as one batch as soon as the last one is acknowledged by all replicas; a lone
append leaves at once. Built on aiokafka's client and not on its producer, which cannot be stopped while Kafka is away.
Never goes on after a batch whose fate is unknown.

With a transactional id, records stand in a transaction that is committed now and then. Its only purpose is fencing:
readers see records at once, but nobody can append any more once somebody else has initialised the same id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress
from styx.kafka.batch import RECORD_BYTES_MAX, Append, Lane, NewRecord, fail, size_of
from styx.kafka.errors import NO_ERROR, AppendFailed, Fenced, RecordTooLarge, fences, name_of, passes
from styx.kafka.session import REQUEST_SECONDS, RETRY_SECONDS, KafkaSession
from styx.kafka.transaction import ProducerIdentity, Transaction, initialize
from styx.kafka.wire import Produce
from styx.log.base import LogClosed, LogOverloaded

QUEUED_BYTES_MAX: Final = 4096 * 1024 * 1024
"""Appended but not yet acknowledged; `append` beyond it raises. Who appends holds back its input long before."""
REQUEST_BYTES_MAX: Final = 512 * 1024
"""No more batches are built for a request that has this much, so that building one takes milliseconds."""
APPEND_SECONDS_MAX: Final = 300.0
"""How long a partition may make no progress, Kafka being away say, before the appender gives up."""
COMMIT_SECONDS: Final = 30.0
"""How long a transaction stays open; far below what the broker allows it."""
STOP_SECONDS_MAX: Final = 5.0
"""How long `stop` waits for the end of the last transaction, when everything is durable."""
START_SECONDS_MAX: Final = 60.0
"""How long `start` waits for Kafka to be ready."""
WATCH_SECONDS: Final = 1.0
"""How often age is looked at."""

_ALL_REPLICAS: Final = -1

_log = logging.getLogger(__name__)


class Appender:
    """For one event loop. `on_failure` is called at most once, on the loop; afterwards the appender is of no use.

    With an `identity`, which a fence of its transactional id gave, it fences nobody and is fenced by the next fence.
    """

    def __init__(
        self,
        address: KafkaAddress | str,
        *,
        transactional_id: str | None = None,
        identity: ProducerIdentity | None = None,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = KafkaSession(address)
        self._transactional_id = transactional_id
        self._on_failure = on_failure
        self._given = identity
        self._identity = ProducerIdentity(-1, -1)
        self._transaction: Transaction | None = None
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._ready: dict[tuple[str, int], Lane] = {}
        self._wake = asyncio.Event()
        self._exchanges: dict[int | None, asyncio.Task[None]] = {}
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._commit_at = 0.0
        self._commit_due = False
        self._ended: BaseException | None = LogClosed("The appender is not started.")
        self._closing: asyncio.Task[None] | None = None
        self._troubles: set[str] = set()
        self.queued_bytes = 0
        """Appended but not yet acknowledged, for back-pressure."""

    async def start(self, topics: Sequence[str] = ()) -> None:
        """Connects; with a transactional id alone it fences its former owner. Appending to `topics` takes no look-up.

        Raises `ConnectionError`, `TimeoutError`, `ConfigurationError` and `AppendFailed`.
        """
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                await self._session.open(topics)
                self._identity = self._given or await initialize(self._session, self._transactional_id)
        except TimeoutError:
            await self._session.close()
            raise TimeoutError(f"{self._session} was not ready for transactions within {START_SECONDS_MAX} s") from None
        except BaseException:
            await self._session.close()
            raise
        if self._transactional_id is not None:
            self._transaction = Transaction(self._session, self._transactional_id, self._identity)
        self._ended = None
        self._commit_at = self._loop.time() + COMMIT_SECONDS
        self._runner = asyncio.create_task(self._run())
        self._watched_at = self._loop.time()
        self._timer = self._loop.call_later(WATCH_SECONDS, self._watch)

    def append(self, topic: str, partition: int, records: Sequence[NewRecord]) -> asyncio.Future[int]:
        """Queues records, which are not to be changed any more; the future gives the offset behind the last of them,
        once they are durable.

        It fails with `RecordTooLarge`, or with what ended the appender. Raises `LogOverloaded`, and `ValueError`
        without records.
        """
        future: asyncio.Future[int] = self._loop.create_future()
        if not records:
            raise ValueError("There is nothing to append, so no offset to wait for")
        if self._ended is not None:
            fail(future, self._ended)
            return future
        sizes = [size_of(record) for record in records]
        if max(sizes) > RECORD_BYTES_MAX:
            fail(future, RecordTooLarge(f"A record for {topic} has {max(sizes)} bytes; {RECORD_BYTES_MAX} are allowed"))
            return future
        n_bytes = sum(sizes)
        if self.queued_bytes + n_bytes > QUEUED_BYTES_MAX:
            raise LogOverloaded(
                f"{self.queued_bytes} bytes wait for {self._session}; {n_bytes} more are over {QUEUED_BYTES_MAX}"
            )
        key = topic, partition
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(topic, partition)
            self._session.track(topic)
        if not lane.waiting and lane.batch is None:
            lane.since = self._loop.time()
        lane.waiting.append(Append(records, future))
        self.queued_bytes += n_bytes
        self._idle.clear()
        if not lane.busy:
            self._ready[key] = lane
            self._wake.set()
        return future

    async def stop(self) -> None:
        """Waits until everything queued is durable, or the appender has failed, and disconnects."""
        if self.queued_bytes:
            await self._idle.wait()
        if self._ended is None and self._transaction is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
            # Not for the records, which count already, but for the id's next owner: no open transaction to wait for.
            try:
                async with asyncio.timeout(STOP_SECONDS_MAX):
                    await self._transaction.commit()
            except (TimeoutError, EngineFailed) as error:
                _log.info("%s: the last transaction stays open: %s", self._session, error)
        self.abort()
        if self._closing is not None:
            await self._closing

    def abort(self) -> None:
        """Drops everything queued, whose futures fail, and disconnects. What is on its way may still be appended."""
        self._end(LogClosed("The appender was closed."))

    def _end(self, error: BaseException) -> bool:
        if self._ended is not None:
            return False
        self._ended = error
        if self._timer is not None:
            self._timer.cancel()
        for lane in self._lanes.values():
            lane.fail(error)
        self._ready.clear()
        self.queued_bytes = 0
        self._idle.set()
        self._closing = self._loop.create_task(self._disconnect())
        return True

    async def _disconnect(self) -> None:
        tasks = [self._runner, *self._exchanges.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    def _fail(self, error: BaseException) -> None:
        if self._end(error):
            self._on_failure(error)

    def _watch(self) -> None:
        now = self._loop.time()
        # A loop that stood still, for a function say, has not heard what Kafka answered meanwhile.
        still_s, self._watched_at = now - self._watched_at - WATCH_SECONDS, now
        if still_s > WATCH_SECONDS:
            for lane in self._lanes.values():
                lane.since = min(now, lane.since + still_s)
        since, stuck = min(
            ((lane.since, lane) for lane in self._lanes.values() if lane.batch is not None or lane.waiting),
            key=lambda entry: entry[0],
            default=(now, None),
        )
        if stuck is not None and now - since > APPEND_SECONDS_MAX:
            self._fail(
                AppendFailed(
                    f"{self._session} took nothing for {stuck.topic}, partition {stuck.partition}, for "
                    f"{now - since:.0f} s; whether it has the records is unknown."
                )
            )
            return
        if self._transaction is not None and self._transaction.partitions and now >= self._commit_at:
            self._commit_due = True
            self._wake.set()
        self._timer = self._loop.call_later(WATCH_SECONDS, self._watch)

    async def _run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._commit_due:
                    await self._commit()
                await self._send_ready()
        except EngineFailed as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody else would learn of it
            self._fail(_unexpected(error))

    async def _commit(self) -> None:
        """If everything sent is acknowledged; else what failed is repeated first, and newer batches with it."""
        assert self._transaction is not None
        while self._exchanges:
            await asyncio.wait(self._exchanges.values())
        if any(lane.batch is not None for lane in self._lanes.values()):
            return
        await self._transaction.commit()
        self._commit_due = False
        self._commit_at = self._loop.time() + COMMIT_SECONDS

    async def _send_ready(self) -> None:
        ready = dict(self._ready)
        if self._transaction is not None:
            await self._transaction.add(ready)
        by_node: defaultdict[int | None, list[Lane]] = defaultdict(list)
        for key, lane in ready.items():
            node = self._session.leader(*key)
            if node not in self._exchanges:
                by_node[node].append(lane)
        for node, lanes in by_node.items():
            self._exchanges[node] = asyncio.create_task(self._exchange(node, self._load(lanes)))

    def _load(self, lanes: list[Lane]) -> list[Lane]:
        """Those whose batches go into the next request. Others stay ready, and come first the next time."""
        taken, n_bytes = [], 0
        for lane in lanes:
            if n_bytes >= REQUEST_BYTES_MAX:
                break
            if lane.batch is None:
                lane.build(self._identity, self._transaction is not None)
            assert lane.batch is not None
            n_bytes += len(lane.batch.data)
            del self._ready[lane.key]
            lane.busy = True
            taken.append(lane)
        return taken

    async def _exchange(self, node: int | None, lanes: list[Lane]) -> None:
        """Sends one batch of each lane. What is not acknowledged and can be repeated is ready again, after a pause."""
        try:
            failed = True
            try:
                failed = node is None or not await self._produce(node, lanes)
            except ConnectionError as error:
                self._trouble(str(error))
            if failed:
                await asyncio.sleep(RETRY_SECONDS)
                await self._session.refresh()
        except EngineFailed as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody else would learn of it
            self._fail(_unexpected(error))
        finally:
            del self._exchanges[node]
            for lane in lanes:
                lane.busy = False
                if lane.batch is not None or lane.waiting:
                    self._ready[lane.key] = lane
            self._wake.set()

    async def _produce(self, node: int, lanes: list[Lane]) -> bool:
        """True if everything was acknowledged. Raises `ConnectionError`, `Fenced` and `AppendFailed`."""
        topics: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)
        for lane in lanes:
            assert lane.batch is not None
            topics[lane.topic].append((lane.partition, lane.batch.data))
        request = Produce(self._transactional_id, _ALL_REPLICAS, int(REQUEST_SECONDS * 1000), list(topics.items()))
        answer = await self._session.send(node, request)
        if self._ended is not None:
            return True
        complete = True
        for topic, partitions in answer.topics:
            for partition, code, offset, *_ in partitions:
                complete &= self._answered(self._lanes[topic, partition], code, offset)
        return complete

    def _answered(self, lane: Lane, code: int, offset: int) -> bool:
        if code == NO_ERROR and offset >= 0:
            self.queued_bytes -= lane.acknowledged(offset)
            lane.since = self._loop.time()
            self._troubles.clear()
            if not self.queued_bytes:
                self._idle.set()
            return True
        if fences(code):
            raise Fenced(f"{self._transactional_id!r} was taken over: Kafka refuses its records: {name_of(code)}")
        if not passes(code):
            raise AppendFailed(
                f"{self._session} refuses records for {lane.topic}, partition {lane.partition}: {name_of(code)}"
            )
        self._trouble(f"{self._session}, {lane.topic}, partition {lane.partition}: {name_of(code)}")
        return False

    def _trouble(self, text: str) -> None:
        """Tells of it once until an append succeeds again: there are ten attempts a second, for as long as it takes."""
        if text not in self._troubles:
            self._troubles.add(text)
            _log.info("%s; appends are repeated", text)


def _unexpected(error: Exception) -> AppendFailed:
    failure = AppendFailed(f"Appending failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
