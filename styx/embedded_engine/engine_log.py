"""The log of an embedded engine, as its cores write it: each record with its time, and who waits for it to be durable.

The log is one sequence: a record is durable only after every record before it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from styx.log.base import Log, Stream


class EngineLog:
    """Appends to `log`. Records reach the log's writer with `flush`, once a pass."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
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
        """`flush` calls `then` once all records so far are durable, in the order of these calls."""
        self._waiting.append((self.log.lsn, then))

    def flush(self, stopped: bool = False) -> None:
        """Hands new records to the log's writer, unless the engine has `stopped`. Then calls those that waited for
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
        """`flush` would do something."""
        log, waiting = self.log, self._waiting
        return log.lsn != self._flushed or (bool(waiting) and waiting[0][0] <= log.durable_lsn)
