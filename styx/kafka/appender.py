"""The appender: appends to the log in Kafka, in the order of each partition, with a future for each append (§7).

It never blocks. A lone append leaves at once; appends that come while a partition's batch is under way gather for the
next batch. A batch that the broker refuses for good ends the appender, since the batch may be in the log all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress
from styx.kafka.appends import RECORD_BYTES_MAX, Append, Appends, NewRecord, fail, size_of
from styx.kafka.errors import AppendFailed, Fenced, RecordTooLarge, fences, name_of
from styx.kafka.producer import Lane, Producer
from styx.kafka.session import KafkaSession
from styx.kafka.transaction import ProducerIdentity, Transaction, initialize
from styx.log.base import LogClosed, LogOverloaded

QUEUED_BYTES_MAX: Final = 4096 * 1024 * 1024
"""Appended but not yet acknowledged; `append` beyond it raises. Workers hold back their input long before."""
BATCH_BYTES_MAX: Final = 256 * 1024
"""One batch, unless a single record is larger."""
EXCHANGE_BYTES_MAX: Final = 512 * 1024
"""An exchange with so many bytes takes no further batch, so that a worker's event loop builds one in milliseconds."""
APPEND_SECONDS_MAX: Final = 300.0
"""How long a partition may make no progress, Kafka being away say, before the appender gives up."""
COMMIT_SECONDS: Final = 30.0
"""How long a transaction stays open; far below what the broker allows it."""
STOP_SECONDS_MAX: Final = 5.0
"""How long `stop` waits for the end of the last transaction, when everything is durable."""
START_SECONDS_MAX: Final = 60.0
"""How long `start` waits for Kafka to be ready."""
WATCH_SECONDS: Final = 1.0
"""How often the appender looks for a stuck partition and a due commit."""

_log = logging.getLogger(__name__)


class Appender:
    """For one event loop. `on_failure` is called at most once, on the loop, and ends the appender.

    With a transactional id, records belong to a transaction. An `identity`, from a fence of the id, makes the appender
    the id's owner without fencing anybody, until the next fence.
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
        self._identity = identity
        self._on_failure = on_failure
        self._producer: Producer[Appends] = Producer(
            self._session,
            acknowledged=self._acknowledged,
            refused=self._refused,
            failed=self._fail,
            repeated="appends are repeated",
            batch_bytes_max=BATCH_BYTES_MAX,
            exchange_bytes_max=EXCHANGE_BYTES_MAX,
        )
        self._lanes: dict[tuple[str, int], Lane[Appends]] = {}
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._commit_at = 0.0
        self._ended: BaseException | None = LogClosed("The appender is not started.")
        self._closing: asyncio.Task[None] | None = None
        self.queued_bytes = 0
        """Appended but not yet acknowledged, for back-pressure."""

    async def start(self, topics: Sequence[str] = ()) -> None:
        """Connects; with a transactional id alone it fences the id's former owner. `topics` need no look-up later.

        Raises `ConnectionError`, `TimeoutError`, `ConfigurationError` and `AppendFailed`.
        """
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                await self._session.open(topics)
                identity = self._identity or await initialize(self._session, self._transactional_id)
        except TimeoutError:
            await self._session.close()
            raise TimeoutError(f"{self._session} was not ready for transactions within {START_SECONDS_MAX} s") from None
        except BaseException:
            await self._session.close()
            raise
        self._producer.identity = identity
        if self._transactional_id is not None:
            self._producer.transaction = Transaction(self._session, self._transactional_id, identity)
        self._ended = None
        self._commit_at = self._loop.time() + COMMIT_SECONDS
        self._watched_at = self._loop.time()
        self._timer = self._loop.call_later(WATCH_SECONDS, self._watch)

    def append(self, topic: str, partition: int, records: Sequence[NewRecord]) -> asyncio.Future[int]:
        """Queues records, which must not change any more. The future gives the offset behind the last record, once all
        are durable.

        It fails with `RecordTooLarge`, or with the error that ended the appender. Raises `LogOverloaded`, and
        `ValueError` without records.
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
            lane = self._lanes[key] = Lane(topic, partition, Appends())
            self._session.track(topic)
        lane.queue.waiting.append(Append(records, n_bytes, future))
        self.queued_bytes += n_bytes
        self._idle.clear()
        if not lane.engaged:
            lane.since_s = self._loop.time()
            self._producer.engage(lane)
        return future

    def commit(self, then: Callable[[], None]) -> None:
        """Commits the transaction soon; calls `then` when all that was acknowledged before this call is committed.

        It is never called if the appender ends before.
        """
        if self._ended is None:
            self._commit_at = self._loop.time() + COMMIT_SECONDS
            self._producer.commit(then)

    async def stop(self) -> None:
        """Waits until everything queued is durable, or the appender has failed, and disconnects."""
        if self.queued_bytes:
            await self._idle.wait()
        if self._ended is None and self._producer.transaction is not None:
            await self._producer.close()
            # Not for the records, which count already, but for the id's next owner: no open transaction to wait for.
            try:
                async with asyncio.timeout(STOP_SECONDS_MAX):
                    await self._producer.transaction.commit()
            except (TimeoutError, EngineFailed) as error:
                _log.info("%s: the last transaction stays open: %s", self._session, error)
        self.abort()
        if self._closing is not None:
            await self._closing

    def abort(self) -> None:
        """Drops the queue, whose futures fail, and disconnects. A batch under way may still be appended."""
        self._end(LogClosed("The appender was closed."))

    def _end(self, error: BaseException) -> bool:
        if self._ended is not None:
            return False
        self._ended = error
        if self._timer is not None:
            self._timer.cancel()
        self._producer.stop()
        for lane in self._lanes.values():
            lane.queue.fail(error)
        self.queued_bytes = 0
        self._idle.set()
        self._closing = self._loop.create_task(self._disconnect())
        return True

    async def _disconnect(self) -> None:
        await self._producer.close()
        await self._session.close()

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, EngineFailed):
            # An unforeseen error ends a task, and is reported here only.
            failure = AppendFailed(f"Appending failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            error = failure
        if self._end(error):
            self._on_failure(error)

    def _watch(self) -> None:
        producer, now = self._producer, self._loop.time()
        # A loop that stood still, for a function say, has not heard what Kafka answered meanwhile.
        still_s, self._watched_at = now - self._watched_at - WATCH_SECONDS, now
        if still_s > WATCH_SECONDS:
            producer.stood_still(still_s)
        stuck = producer.stuck()
        if stuck is not None and now - stuck.since_s > APPEND_SECONDS_MAX:
            self._fail(
                AppendFailed(
                    f"{self._session} took nothing for {stuck.topic}, partition {stuck.partition}, for "
                    f"{now - stuck.since_s:.0f} s; whether it has the records is unknown."
                )
            )
            return
        if producer.transaction is not None and producer.transaction.partitions and now >= self._commit_at:
            self._commit_at = now + COMMIT_SECONDS
            producer.commit()
        self._timer = self._loop.call_later(WATCH_SECONDS, self._watch)

    def _acknowledged(self, lane: Lane[Appends], first_offset: int) -> None:
        if first_offset < 0:
            raise AppendFailed(f"{self._session} does not say where in {lane.topic}, partition {lane.partition}")
        self.queued_bytes -= lane.queue.acknowledged(first_offset)
        if not self.queued_bytes:
            self._idle.set()

    def _refused(self, lane: Lane[Appends], code: int) -> bool:
        if fences(code):
            raise Fenced(f"{self._transactional_id!r} was taken over: Kafka refuses its records: {name_of(code)}")
        raise AppendFailed(
            f"{self._session} refuses records for {lane.topic}, partition {lane.partition}: {name_of(code)}"
        )
