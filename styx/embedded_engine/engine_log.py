"""The log of an embedded engine, as its cores write it: each record with its time, and who waits for it to be durable.

The log is one sequence: a record is durable only after every record before it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from styx.log.base import Log, Stream


class DurableWaiters:
    """Callbacks in the order of their log sequence numbers, one at least for each call of `add`."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, lsn: int, callback: Callable[[], None]) -> None:
        """`callback` runs in `release` once everything up to `lsn` is durable; `lsn` never goes back."""
        assert not self._waiting or self._waiting[-1][0] <= lsn
        self._waiting.append((lsn, callback))

    def due(self, durable_lsn: int) -> bool:
        """`release` would run something."""
        return bool(self._waiting) and self._waiting[0][0] <= durable_lsn

    def release(self, durable_lsn: int) -> None:
        """Runs the callbacks of `durable_lsn` and below."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= durable_lsn:
            waiting.popleft()[1]()


class EngineLog:
    """Appends to `log`. Records reach the log's writer with `flush`, once a pass."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.durable = DurableWaiters()
        self._flushed = 0
        self._last_us = 0

    def now_us(self) -> int:
        """Microseconds since 1970 by the wall clock, but never less than the last time."""
        now_us = time.time_ns() // 1000
        if now_us > self._last_us:
            self._last_us = now_us
        return self._last_us

    def append(self, stream: Stream, partition: int, payload: bytes) -> int:
        """Returns the record's offset. Raises `StyxError` if the log takes nothing any more."""
        return self.log.append(stream, partition, self.now_us(), payload)

    def when_durable(self, then: Callable[[], None]) -> None:
        """`then` is called within a pass, once all records so far are durable."""
        self.durable.add(self.log.lsn, then)

    def flush(self) -> None:
        """Hands new records to the log's writer."""
        self.log.flush()
        self._flushed = self.log.lsn

    def release(self) -> None:
        """Calls those that waited for records which are durable by now."""
        self.durable.release(self.log.durable_lsn)

    @property
    def pending(self) -> bool:
        """There is something to flush or to release."""
        return self.log.lsn != self._flushed or self.durable.due(self.log.durable_lsn)
