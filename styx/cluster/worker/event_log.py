"""The appending of events to their topics, and the knowledge of which of them count.

Its appender has a transactional producer of its own, which the coordinator takes over with each new generation: so a
worker of an older one can append no more. A transaction is committed soon after its first record. What is in a
transaction that never was is not there for whoever reads committed records, nor for a recovery, which emits it again.
So an event counts, and a snapshot may be complete, when it is committed. Paper section 7.4, as for replies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from styx.cluster.event_record import mark_of, record_of_event
from styx.cluster.worker.under_way import UnderWay
from styx.kafka.appender import Appender
from styx.kafka.appends import NewRecord, size_of
from styx.messages import EventRecord
from styx.model.event import Event

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""While more bytes of events than this wait in the appender, further ones are held back in memory."""
COMMIT_SECONDS: Final = 0.1
"""How long a record waits for the commit of its transaction at most, while Kafka answers."""


class _Append(NamedTuple):
    event: str
    slot: int
    records: list[NewRecord]
    size: int
    committed: asyncio.Future[None]


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
        self._held: deque[_Append] = deque()
        self._queued_bytes = 0
        self._appended: list[tuple[_Append, int]] = []
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
        self._held.clear()
        self._under_way.end()
        self._appender.abort()

    def _append(self, name: str, slot: int, records: list[NewRecord]) -> int:
        size = sum(map(size_of, records))
        self.waiting_bytes += size
        self._held.append(_Append(name, slot, records, size, self._under_way.begin()))
        self._append_held()
        return size

    def _append_held(self) -> None:
        while self._held and self._queued_bytes <= QUEUED_BYTES_MAX:
            append = self._held.popleft()
            self._queued_bytes += append.size
            future = self._appender.append(self.topics[append.event], append.slot, append.records)
            future.add_done_callback(partial(self._has_appended, append))

    def _has_appended(self, append: _Append, future: asyncio.Future[int]) -> None:
        self._queued_bytes -= append.size
        if future.cancelled() or self._ended:
            return
        error = future.exception()
        if error is not None:
            self._lost(error)
            return
        self._appended.append((append, future.result()))
        if self._timer is None:
            self._timer = self._loop.call_later(COMMIT_SECONDS, self._commit)
        self._append_held()

    def _commit(self) -> None:
        """Commits what is in the log. The next commit begins no sooner than this one has ended."""
        committing, self._appended = self._appended, []

        def committed() -> None:
            if self._ended:
                return
            for append, end in committing:
                place = append.event, append.slot
                self.ends[place] = max(end, self.ends.get(place, 0))
                self.waiting_bytes -= append.size
                append.committed.set_result(None)
            self._timer = self._loop.call_later(COMMIT_SECONDS, self._commit) if self._appended else None

        self._appender.commit(committed)
