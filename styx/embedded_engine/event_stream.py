"""The events stream of an embedded engine's log: what committed transactions have emitted, for whoever reads it.

The stream has one partition for each slot, with the events of all names in the serial order. A recovery asks
for those that stand there, and emits no others a second time. An event is shown to readers once it is
durable, together with all that precede it in the serial order. What
is removed is old, or too much (`EVENTS_KEPT`, `EVENTS_KEPT_MAX`), and a reader that comes too late for it is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from styx.embedded_engine.engine_log import EngineLog
from styx.errors import EventsCut, EventsReleased
from styx.host.ports import Submit
from styx.log.base import LogClosed, LogTruncated, Record, Stream
from styx.messages import EventRecord
from styx.model.agenda import microseconds
from styx.model.event_seen import BEGINNING, END, EventMessage, cursor_of
from styx.worker.emissions import event_digest
from styx.worker.events import StandingEvent
from styx.worker.worker import Worker

EVENTS_KEPT: Final = timedelta(days=7)
"""How long an event is kept in the log at least, unless it or another event of the app says `keep=` for longer."""
EVENTS_KEPT_MAX: Final = 1_000_000
"""Events of one slot that are kept in a data directory, unless an event of the app says `keep=`."""
EVENTS_IN_MEMORY_MAX: Final = 10_000
"""Events of one slot that are kept in memory, whatever they say."""
READ_RECORDS_MAX: Final = 500
"""Records that one step of a reader takes from the log."""
READ_BYTES_MAX: Final = 1024 * 1024
"""And bytes of their values, but for the last record."""
RELEASE_SECONDS_MIN: Final = 60.0
"""Between two looks for events that are too old."""

T = TypeVar("T")


class StoredEvent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An event as it stands in the log; fields as those of `EventMessage`, `value` is JSON."""

    epoch: int
    phase: int
    id: str
    event: str
    version: int
    tid: int
    operator: str
    key: str | int | list[str | int]
    time_us: int
    value: bytes

    @property
    def cursor(self) -> str:
        """Its place, by which the events of all slots sort."""
        return cursor_of(self.epoch, self.phase, self.id)


class _Place(msgspec.Struct, array_like=True, frozen=True, gc=False):
    epoch: int
    phase: int
    id: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredEvent).decode
_decode_place = msgspec.msgpack.Decoder(_Place).decode

Ends = dict[int, int]
"""An offset of each slot's partition."""


class EventStream:
    """Of `log`; `in_memory`: it ends with the process. `keep` everything, for audits and tests. `submit` does blocking
    work; the app's events are those of `core`.
    """

    def __init__(self, log: EngineLog, core: Worker, submit: Submit, *, in_memory: bool, keep: bool) -> None:
        self._engine_log = log
        self._log = log.log
        self._slots = range(core.n_slots)
        self._core = core
        self._in_memory = in_memory
        self._keep = keep
        self._submit = submit
        self._shown: Ends = {slot: self._log.bounds(Stream.EVENTS, slot)[1] for slot in self._slots}
        self._waiting: list[asyncio.Future[None]] = []
        self._ended: str | None = None
        self._released_s = 0.0

    # Writing -----------------------------------------------------------------------------------------------

    def standing(self, slots: Iterable[int], epoch: int) -> dict[str, StandingEvent]:
        """By id, the events of these slots that stand in the log behind an epoch, for a recovery that begins there; on
        any thread. Raises `LogCorrupt`.
        """
        standing = {}
        for slot in slots:
            first, end = self._log.bounds(Stream.EVENTS, slot)
            begin = self._search(slot, first, end, cursor_of(epoch + 1, 0, ""), _cursor)
            for event in self._span(slot, begin, end):
                standing[event.id] = StandingEvent(slot, event.event, event_digest(event.value))
        return standing

    def append(self, slot: int, records: Iterable[EventRecord]) -> None:
        """Appends what the slot has emitted, in the serial order, and shows it once it is durable."""
        declared = self._core.app.events
        log, now_us = self._log, self._engine_log.now_us()
        for record in records:
            event = StoredEvent(
                record.epoch,
                record.phase,
                record.id,
                record.event,
                record.version,
                record.tid,
                record.operator,
                record.key,
                record.time_us,
                declared[record.event].to_json(record.payload),
            )
            log.append(Stream.EVENTS, slot, now_us, _encode(event))
        self._engine_log.when_durable(partial(self._show, slot, log.bounds(Stream.EVENTS, slot)[1]))

    def _show(self, slot: int, end: int) -> None:
        self._shown[slot] = end
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def end(self, reason: str) -> None:
        """The engine ends: readers that wait are told."""
        self._ended = reason
        self._wake()

    # Reading -----------------------------------------------------------------------------------------------

    async def read(self, event: str, after: str | None, follow: bool) -> AsyncIterator[list[EventMessage]]:
        """As `EventSource.read`."""
        positions = dict(self._shown) if after == END else await self._blocking(partial(self._positions, after))
        position = "the beginning" if after is None else after
        yield []
        if not follow:
            await self._all_shown(event)
        while True:
            ends = dict(self._shown)
            records = self._merged(positions, ends)
            while taken := await self._blocking(partial(_some, records)):
                found = [_message(each) for each in taken if each.event == event]
                if found:
                    position = found[-1].cursor
                    yield found
            positions = ends
            if not follow:
                return
            if self._ended is not None:
                raise EventsCut(f"{self._ended}: the reader of {event!r} has come to {position}")
            if positions == self._shown:
                await self._further()

    async def last(self, event: str) -> str:
        """As `EventLog.last`."""
        return await self._blocking(self._last)

    def _last(self) -> str:
        ends = [(slot, end) for slot, end in self._shown.items() if end > self._log.bounds(Stream.EVENTS, slot)[0]]
        return max((_cursor(self._record(slot, end - 1)) for slot, end in ends), default=BEGINNING)

    async def _blocking(self, read: Callable[[], T]) -> T:
        """Reads a log on a disk elsewhere; one in memory does not block, and is this thread's alone."""
        try:
            if self._in_memory:
                return read()
            return await asyncio.get_running_loop().run_in_executor(None, read)
        except LogTruncated as error:
            raise EventsReleased(f"a reader was too slow, and events that it had not read are gone: {error}") from None
        except LogClosed as error:
            raise EventsCut(str(error)) from None

    async def _all_shown(self, event: str) -> None:
        """Waits until all is durable that was emitted before: whoever has had a reply finds what it emitted."""
        appended = {slot: self._log.bounds(Stream.EVENTS, slot)[1] for slot in self._slots}
        while any(self._shown[slot] < end for slot, end in appended.items()):
            if self._ended is not None:
                raise EventsCut(f"{self._ended}: what was emitted last as {event!r} may not be in the log")
            await self._further()

    async def _further(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def _positions(self, after: str | None) -> Ends:
        """The offset in each partition of the first event behind the cursor. Raises `EventsReleased`."""
        positions = {}
        for slot in self._slots:
            first, end = self._log.bounds(Stream.EVENTS, slot)
            end = min(end, self._shown[slot])
            if after is None or first >= end:
                positions[slot] = first
                continue
            # The record before the first one that is not too old is kept as a witness of what was released.
            if first and after < (witness := _cursor(self._record(slot, first))):
                raise EventsReleased(
                    f"events behind {after} are gone: the log keeps them for {self._kept}, and at most "
                    f"{self._kept_max or 'any number'} of a slot; the first that is left there is {witness}. Read on "
                    "from there (after=None), and ask the app for what was missed"
                )
            positions[slot] = self._search(slot, first, end, after, _cursor, behind=True)
        return positions

    def _merged(self, positions: Ends, ends: Ends) -> Iterator[StoredEvent]:
        """The events between two cuts of the serial order, in that order."""
        parts = [self._span(slot, positions[slot], ends[slot]) for slot in self._slots if positions[slot] < ends[slot]]
        return merge(*parts, key=_by_cursor)

    def _span(self, slot: int, position: int, end: int) -> Iterator[StoredEvent]:
        for record in islice(self._log.read(Stream.EVENTS, slot, position), end - position):
            yield _decode(record.payload)

    def _record(self, slot: int, offset: int) -> Record:
        return next(self._log.read(Stream.EVENTS, slot, offset))

    def _search(
        self, slot: int, first: int, end: int, wanted: Any, of: Callable[[Record], Any], *, behind: bool = False
    ) -> int:
        """The first offset whose record has at least what is `wanted`, or more than that if `behind`; by halves."""
        while first < end:
            middle = (first + end) // 2
            found = of(self._record(slot, middle))
            if found < wanted or (behind and found == wanted):
                first = middle + 1
            else:
                end = middle
        return first

    # Releasing ---------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Releases what is too old or too much, at most every `RELEASE_SECONDS_MIN`.

        Call it behind a snapshot: what a recovery asks for stands behind that.
        """
        now_s = time.monotonic()
        if self._keep or now_s - self._released_s < RELEASE_SECONDS_MIN or not any(self._shown.values()):
            return
        self._released_s = now_s
        old_us = self._engine_log.now_us() - microseconds(self._kept)
        find = partial(self._too_old, dict(self._shown), old_us)
        if self._in_memory:
            self._truncate(find())
        else:
            self._submit("looking for events that are too old", find, self._truncate, _out_of_reach)

    @property
    def _kept(self) -> timedelta:
        """How long all events are kept: as long as the one that is kept for longest."""
        return max([EVENTS_KEPT, *[each.keep for each in self._core.app.events.values() if each.keep is not None]])

    @property
    def _kept_max(self) -> int | None:
        """How many events of a slot are kept, None for any number."""
        if self._in_memory:
            return EVENTS_IN_MEMORY_MAX
        return None if any(each.keep is not None for each in self._core.app.events.values()) else EVENTS_KEPT_MAX

    def _too_old(self, ends: Mapping[int, int], old_us: int) -> Ends:
        """In each partition the offset of the first event that is kept."""
        kept = {}
        for slot, end in ends.items():
            first, _ = self._log.bounds(Stream.EVENTS, slot)
            least = max(first, end - self._kept_max) if self._kept_max else first
            kept[slot] = self._search(slot, least, end, old_us, _timestamp) if least < end else least
        return kept

    def _truncate(self, kept: Mapping[int, int]) -> None:
        for slot, offset in kept.items():
            if offset > 1:
                self._log.truncate(Stream.EVENTS, slot, offset - 1)


def _out_of_reach(_: OSError) -> None:
    """What is too old is found the next time."""


def _some(records: Iterator[StoredEvent]) -> list[StoredEvent]:
    taken: list[StoredEvent] = []
    n_bytes = 0
    for record in islice(records, READ_RECORDS_MAX):
        taken.append(record)
        n_bytes += len(record.value)
        if n_bytes >= READ_BYTES_MAX:
            break
    return taken


def _cursor(record: Record) -> str:
    place = _decode_place(record.payload)
    return cursor_of(place.epoch, place.phase, place.id)


def _by_cursor(event: StoredEvent) -> str:
    return event.cursor


def _timestamp(record: Record) -> int:
    return record.timestamp_us


def _message(event: StoredEvent) -> EventMessage:
    return EventMessage(
        event=event.event,
        version=event.version,
        id=event.id,
        epoch=event.epoch,
        phase=event.phase,
        tid=event.tid,
        operator=event.operator,
        key=event.key,
        time_us=event.time_us,
        value=msgspec.Raw(event.value),
    )
