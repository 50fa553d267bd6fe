"""The log of an embedded engine, as its cores write it. `EngineLog` appends records with their times and calls back
when they are durable; `ExternalLog` is the stream of external calls in it, with the outcomes that it retains.

The log is one sequence: a record is durable only after every record before it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from styx.log.base import Log, Stream
from styx.sequencer.epoch_record import ExternalRecord, decode_external, encode_external


class EngineLog:
    """Appends to `log`. Records reach the log's writer with `flush`, once a pass. Its clock is `ahead_us` microseconds
    ahead of the wall clock, for tests.
    """

    def __init__(self, log: Log, ahead_us: int = 0) -> None:
        self.log = log
        self.ahead_us = ahead_us
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._flushed = 0
        self._last_us = 0

    def now_us(self) -> int:
        """Microseconds since 1970 by the clock, but never less than the last time."""
        now_us = time.time_ns() // 1000 + self.ahead_us
        if now_us > self._last_us:
            self._last_us = now_us
        return self._last_us

    def append(self, stream: Stream, partition: int, payload: bytes) -> int:
        """Appends a record, and returns its offset. Raises `StyxError` if the log takes no more records."""
        return self.log.append(stream, partition, self.now_us(), payload)

    def when_durable(self, then: Callable[[], None]) -> None:
        """`flush` calls `then` once all records so far are durable, in the order of these calls."""
        self._waiting.append((self.log.lsn, then))

    def flush(self, stopped: bool = False) -> None:
        """Hands new records to the log's writer, unless the engine has `stopped`. Then makes the calls that waited for
        records which are durable by now.
        """
        log, waiting = self.log, self._waiting
        if not stopped:
            log.flush()
        self._flushed, durable_lsn = log.lsn, log.durable_lsn
        while waiting and waiting[0][0] <= durable_lsn:
            waiting.popleft()[1]()

    @property
    def pending(self) -> bool:
        """Whether `flush` has records to hand on, or calls to make."""
        log, waiting = self.log, self._waiting
        return log.lsn != self._flushed or (bool(waiting) and waiting[0][0] <= log.durable_lsn)


class ExternalLog:
    """The externals stream: the external calls that were begun, and the outcomes of those that ended. Paper section
    7.5.

    The stream has one partition for each slot; a record goes to that of its transaction's root slot. `outcomes` are the
    retained outcomes, by key: an outcome is retained until the oldest snapshot that a recovery may start from was taken
    after its transaction's end. `read` may run on another thread, before any other method is called.
    """

    def __init__(self, log: EngineLog, n_slots: int) -> None:
        self._appended = log
        self._log = log.log
        self._slots = range(n_slots)
        self.outcomes: dict[bytes, bytes] = {}
        self._keys: dict[int, deque[tuple[int, bytes]]] = {slot: deque() for slot in self._slots}
        self._first_of: dict[int, dict[int, int]] = {slot: {} for slot in self._slots}
        self._cuts: dict[int, dict[int, int]] = {}

    def read(self) -> None:
        """Reads the stream from the log. Raises `LogCorrupt`."""
        for slot in self._slots:
            first, _ = self._log.bounds(Stream.EXTERNALS, slot)
            for record in self._log.read(Stream.EXTERNALS, slot, first):
                self._remember(slot, record.offset, decode_external(record.payload))

    def append(self, slot: int, record: ExternalRecord, durable: Callable[[], None]) -> None:
        """Appends a record. Calls `durable` once the record is durable."""
        offset = self._appended.append(Stream.EXTERNALS, slot, encode_external(record))
        self._remember(slot, offset, record)
        self._appended.when_durable(durable)

    def cut(self, slot: int, epoch: int, pending: Iterable[int]) -> None:
        """Notes that a snapshot of `epoch` begins. After it only the `pending` transactions can need an earlier
        outcome.
        """
        first_of = self._first_of[slot]
        self._first_of[slot] = first_of = {tid: first_of[tid] for tid in pending if tid in first_of}
        _, end = self._log.bounds(Stream.EXTERNALS, slot)
        self._cuts.setdefault(epoch, {})[slot] = min(first_of.values(), default=end)

    def release(self, epoch: int) -> None:
        """Releases records that only recoveries from before the snapshot of `epoch` would need."""
        # The place is unknown after a restart; the next snapshots then release the records.
        for slot, offset in self._cuts.get(epoch, {}).items():
            self._log.truncate(Stream.EXTERNALS, slot, offset)
            keys = self._keys[slot]
            while keys and keys[0][0] < offset:
                self.outcomes.pop(keys.popleft()[1], None)
        self._cuts = {known: cuts for known, cuts in self._cuts.items() if known > epoch}

    def _remember(self, slot: int, offset: int, record: ExternalRecord) -> None:
        self._first_of[slot].setdefault(record.tid, offset)
        if record.outcome is not None:
            self.outcomes[record.key] = record.outcome
            self._keys[slot].append((offset, record.key))
