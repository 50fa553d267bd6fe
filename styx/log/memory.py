"""The log in memory, for engines without a data directory and for tests.

A flushed record counts as durable, although nothing outlives the process. There is no thread: callbacks run inside
`flush`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

from styx.log.base import (
    BACKLOG_BYTES_MAX,
    BACKLOG_RECORDS_MAX,
    LogClosed,
    LogCorrupt,
    Record,
    Stream,
)
from styx.log.tail import LogTail

_CLOSED: Final = "this log was closed"


class MemoryLog(LogTail):
    """A `Log` in memory. The keyword arguments limit what is appended and not yet flushed."""

    def __init__(
        self,
        *,
        backlog_records_max: int = BACKLOG_RECORDS_MAX,
        backlog_bytes_max: int = BACKLOG_BYTES_MAX,
    ) -> None:
        super().__init__(backlog_records_max, backlog_bytes_max)
        self._records: dict[tuple[int, int], list[Record]] = {}
        self._on_durable: list[Callable[[int], None]] = []
        self._closed = False

    def append(self, stream: Stream, partition: int, timestamp_us: int, payload: bytes) -> int:
        if self._closed:
            raise LogClosed(_CLOSED)
        return super().append(stream, partition, timestamp_us, payload)

    def flush(self) -> None:
        if self._closed:
            raise LogClosed(_CLOSED)
        group = self.take()
        if group is None:
            return
        for run in group.runs:
            records = self._records.setdefault((run.stream, run.partition), [])
            records.extend(map(Record, count(run.first_offset), run.timestamps_us, run.payloads))
        self.committed(group)
        for callback in self._on_durable:
            callback(group.lsn)

    def on_durable(self, callback: Callable[[int], None]) -> None:
        self._on_durable.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Does nothing: memory does not fail."""

    def read(self, stream: Stream, partition: int, first_offset: int) -> Iterator[Record]:
        if self._closed:
            raise LogClosed(_CLOSED)
        self.check_retained(stream, partition, first_offset)
        first, next_offset = self.bounds(stream, partition)
        if first_offset > next_offset:
            raise LogCorrupt(
                f"it ends before, at offset {next_offset}",
                file=Path("(in memory)"),
                stream=Stream(stream),
                partition=partition,
                offset=first_offset,
            )
        return iter(self._records.get((stream, partition), [])[first_offset - first :])

    def truncate(self, stream: Stream, partition: int, first_offset: int) -> None:
        if self._closed:
            raise LogClosed(_CLOSED)
        first, _ = self.bounds(stream, partition)
        if self.release(stream, partition, first_offset):
            del self._records[stream, partition][: first_offset - first]

    def close(self) -> None:
        if not self._closed:
            self.flush()
            self._closed = True

    def crash(self) -> None:
        self._closed = True
