"""The appending of events to their topics, and the knowledge of which of them count.

Its appender has a transactional producer of its own, which the coordinator takes over with each new generation: so a
worker of an older one can append no more. What is in a transaction that was never committed is not there for whoever
reads committed records, nor for a recovery, which emits it again. So an event counts, and a snapshot may be complete,
when it is committed. Paper section 7.4, as for replies.

Nobody can read a record before its transaction is committed. So records gather until that is due, and then leave
together: each partition gets one batch for a transaction instead of one for each epoch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

from styx.cluster.event_record import mark_of, record_of_event
from styx.cluster.worker.under_way import UnderWay
from styx.kafka.appender import Appender
from styx.kafka.appends import NewRecord, size_of
from styx.messages import EventRecord
from styx.model.event import Event

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""While more bytes of events than this wait in the appender, further ones are held back in memory."""
GATHERED_BYTES_MAX: Final = 512 * 1024
"""Records of so many bytes leave before the commit is due, since one exchange takes no more."""
COMMIT_SECONDS: Final = 0.1
"""From a record to the commit of its transaction, while Kafka answers, and from one commit to the next."""


class _Batch:
    """Records that gather for one partition, and their bytes."""

    __slots__ = ("event", "records", "size", "slot")

    def __init__(self, event: str, slot: int) -> None:
        self.event = event
        self.slot = slot
        self.records: list[NewRecord] = []
        self.size = 0


class EventLog:
    """The events of one generation. `ends` are, by (event, slot), the ends of the partitions: first those that were
    read behind the generation's fence, then those of committed records. `topics` are by event.

    `lost` is called for an event that could not be appended although the log can be reached. `emitted` counts events by
    name over the life of the process, `n_bytes` their bytes.
    """

    def __init__(
        self,
        appender: Appender,
        events: Mapping[str, Event[Any]],
        lost: Callable[[BaseException], None],
        emitted: dict[str, int],
        n_bytes: dict[str, int],
    ) -> None:
        self.ends: dict[tuple[str, int], int] = {}
        self.topics: Mapping[str, str] = {}
        self.waiting_bytes = 0
        """Bytes of events that are not committed yet, for back-pressure."""
        self._appender = appender
        self._events = events
        self._lost = lost
        self._emitted = emitted
        self._bytes = n_bytes
        self._loop = asyncio.get_running_loop()
        self._under_way = UnderWay()
        self._gathered: dict[tuple[str, int], _Batch] = {}
        self._gathered_bytes = 0
        self._leaving: deque[_Batch] = deque()
        self._queued_bytes = 0
        self._sent = 0  # batches that the appender has, and are not in the log
        self._appended: list[tuple[_Batch, int]] = []
        # Done when its transaction is committed: of the records that gather, and of those that are being committed.
        self._open: asyncio.Future[None] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    async def start(self) -> None:
        """Connects, once `topics` are known. Raises as `Appender.start`."""
        await self._appender.start([*self.topics.values()])

    def ends_of(self, slot: int) -> dict[str, int]:
        """By event, where the slot's partition ends behind what is committed."""
        return {name: self.ends.get((name, slot), 0) for name in self._events}

    def emit(self, slot: int, records: Collection[EventRecord]) -> None:
        """Appends a slot's events, in order within each topic."""
        by_event: dict[str, list[NewRecord]] = {}
        for record in records:
            made = record_of_event(record, self._events[record.event])
            by_event.setdefault(record.event, []).append(made)
        for name, made_records in by_event.items():
            self._emitted[name] = self._emitted.get(name, 0) + len(made_records)
            size = self._append(name, slot, made_records)
            self._bytes[name] = self._bytes.get(name, 0) + size

    def mark(self, slots: Collection[int], epoch: int) -> None:
        """Appends a mark to each partition of these slots in each topic."""
        for name in self._events:
            for slot in slots:
                self._append(name, slot, [mark_of(epoch)])

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once all that was appended so far is committed. Never calls it if something cannot be."""
        self._under_way.when_durable(then)

    def end(self) -> None:
        """Ends the generation. Callbacks for what is not committed are dropped, with all that they refer to."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._appended = []
        self._gathered.clear()
        self._leaving.clear()
        self._under_way.end()
        self._appender.abort()

    def _append(self, name: str, slot: int, records: list[NewRecord]) -> int:
        place, size = (name, slot), sum(map(size_of, records))
        batch = self._gathered.get(place)
        if batch is None:
            batch = self._gathered[place] = _Batch(name, slot)
        batch.records += records
        batch.size += size
        self.waiting_bytes += size
        self._gathered_bytes += size
        if self._open is None:
            self._open = self._under_way.begin()
        if self._closing is None:
            self._begin()
            if self._gathered_bytes >= GATHERED_BYTES_MAX:
                self._leave()
        return size

    def _begin(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(COMMIT_SECONDS, self._end_transaction)

    def _end_transaction(self) -> None:
        """What has gathered leaves, and is committed once it is in the log. What comes meanwhile has to wait."""
        self._timer = None
        self._closing, self._open = self._open, None
        self._leave()

    def _leave(self) -> None:
        self._leaving.extend(self._gathered.values())
        self._gathered, self._gathered_bytes = {}, 0
        self._go_on()

    def _go_on(self) -> None:
        """Sends what may leave, and commits it if that is due."""
        while self._leaving and self._queued_bytes <= QUEUED_BYTES_MAX:
            batch = self._leaving.popleft()
            self._queued_bytes += batch.size
            self._sent += 1
            future = self._appender.append(self.topics[batch.event], batch.slot, batch.records)
            future.add_done_callback(partial(self._has_appended, batch))
        if self._closing is not None and not self._sent:
            self._commit(self._closing)

    def _has_appended(self, batch: _Batch, future: asyncio.Future[int]) -> None:
        self._queued_bytes -= batch.size
        self._sent -= 1
        if future.cancelled() or self._ended:
            return
        error = future.exception()
        if error is not None:
            self._lost(error)
            return
        self._appended.append((batch, future.result()))
        self._go_on()

    def _commit(self, durable: asyncio.Future[None]) -> None:
        """Commits what is in the log. The next commit begins no sooner than `COMMIT_SECONDS` after this one's end."""
        committing, self._appended = self._appended, []

        def committed() -> None:
            if self._ended:
                return
            for batch, end in committing:
                place = batch.event, batch.slot
                self.ends[place] = max(end, self.ends.get(place, 0))
                self.waiting_bytes -= batch.size
            self._closing = None
            durable.set_result(None)
            if self._open is not None:
                self._begin()

        self._appender.commit(committed)
