"""The log on a local disk: a SQLite file, a writer thread with group commit, and a durability mark beside it.

SQLite's write-ahead log is synced at every commit. Never blocks the engine's thread on the disk, except in
`close`, and never shares its file with another engine: whoever opens it holds the data directory's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from styx.log.base import (
    BACKLOG_BYTES_MAX,
    BACKLOG_RECORDS_MAX,
    LogClosed,
    LogCorrupt,
    LogFailed,
    Record,
    Stream,
)
from styx.log.batch import BatchDamaged, decode
from styx.log.mark import Mark
from styx.log.sqlite_file import SqliteFile
from styx.log.tail import LogTail
from styx.log.writer import Release, Writer


class SqliteLog:
    """A `Log` in the file `path` (in an existing directory), with its mark in the same name ending in
    `.mark`.

    Opening reads no more than the last batch of each partition. Raises `LogCorrupt` when acknowledged records
    are missing or damaged, `LogFailed` when the file cannot be used. The keyword arguments limit what is not
    yet durable.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        backlog_records_max: int = BACKLOG_RECORDS_MAX,
        backlog_bytes_max: int = BACKLOG_BYTES_MAX,
    ) -> None:
        self.path = Path(path)
        self._on_durable: list[Callable[[int], None]] = []
        self._on_failure: list[Callable[[BaseException], None]] = []
        self._unusable: Exception | None = None
        self._tail = LogTail(backlog_records_max, backlog_bytes_max)
        self._mark = self._open_mark()
        try:
            self._file = SqliteFile(self.path, self._mark.lsn)
        except BaseException:
            self._mark.close(sync=False)
            raise
        self._keep_mark()
        for (stream, partition), (first, next_offset) in self._file.partitions.items():
            self._tail.restore(stream, partition, first, next_offset)
        self._writer = Writer(
            self._file, self._mark, committed=self._tail.committed, reported=self._report, failed=self._fail
        )
        self._writer.start()

    def append(self, stream: Stream, partition: int, timestamp_us: int, payload: bytes) -> int:
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)
        return self._tail.append(stream, partition, timestamp_us, payload)

    @property
    def lsn(self) -> int:
        return self._tail.lsn

    @property
    def durable_lsn(self) -> int:
        return self._tail.durable_lsn

    @property
    def backlog_records(self) -> int:
        return self._tail.backlog_records

    @property
    def backlog_bytes(self) -> int:
        return self._tail.backlog_bytes

    def flush(self) -> None:
        self._check_usable()
        group = self._tail.take()
        if group is not None:
            self._writer.submit(group)

    def on_durable(self, callback: Callable[[int], None]) -> None:
        self._on_durable.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        self._on_failure.append(callback)

    def read(self, stream: Stream, partition: int, first_offset: int) -> Iterator[Record]:
        self._check_usable()
        self._tail.check_retained(stream, partition, first_offset)
        end = self._tail.durable_next(stream, partition)
        _, next_offset = self._tail.bounds(stream, partition)
        if first_offset > next_offset:
            raise self._corrupt(f"it ends before, at offset {next_offset}", stream, partition, first_offset)
        return self._read(Stream(stream), partition, first_offset, end)

    def bounds(self, stream: Stream, partition: int) -> tuple[int, int]:
        return self._tail.bounds(stream, partition)

    def truncate(self, stream: Stream, partition: int, first_offset: int) -> None:
        self._check_usable()
        if self._tail.truncate(stream, partition, first_offset):
            self._writer.submit(Release(Stream(stream), partition, first_offset))

    def close(self) -> None:
        if isinstance(self._unusable, LogClosed):
            return
        if self._unusable is None:
            self.flush()
        self._writer.stop()
        failure, self._unusable = self._unusable, LogClosed(f"the log {self.path} was closed")
        if failure is not None:
            self._abandon()
            raise failure
        try:
            self._file.close()
        finally:
            self._mark.close(sync=True)

    def crash(self) -> None:
        if isinstance(self._unusable, LogClosed):
            return
        self._unusable = LogClosed(f"the log {self.path} was abandoned")
        self._writer.crash()
        self._abandon()

    def _abandon(self) -> None:
        self._file.abandon()
        self._mark.close(sync=False)

    def _open_mark(self) -> Mark:
        path = self.path.with_suffix(".mark")
        try:
            return Mark(path)
        except OSError as error:
            raise LogFailed(
                f"The log's mark {path} cannot be opened: {error}. The directory must exist and be writable."
            ) from error

    def _keep_mark(self) -> None:
        # What is read from now on counts as acknowledged, also if the last commit was never reported.
        try:
            if self._mark.lsn < self._file.last_lsn:
                self._mark.advance(self._file.last_lsn)
        except OSError as error:
            self._abandon()
            raise self._wrap(error) from error

    def _read(self, stream: Stream, partition: int, offset: int, end: int) -> Iterator[Record]:
        while offset < end:
            batches = self._file.fetch(stream, partition, offset)
            if not batches:
                raise self._gap(stream, partition, offset)
            for batch in batches:
                if not batch.first_offset <= offset < batch.next_offset:
                    raise self._gap(stream, partition, offset)
                try:
                    records = decode(batch)
                except BatchDamaged as damage:
                    raise self._corrupt(str(damage), stream, partition, offset) from None
                yield from records[offset - batch.first_offset :]
                offset = batch.next_offset
                if offset >= end:
                    return

    def _gap(self, stream: Stream, partition: int, offset: int) -> LogCorrupt:
        # Not a gap but a truncation, if one happened while this reader was under way.
        self._tail.check_retained(stream, partition, offset)
        return self._corrupt("the record is missing", stream, partition, offset)

    def _corrupt(self, problem: str, stream: Stream, partition: int, offset: int) -> LogCorrupt:
        return LogCorrupt(problem, file=self.path, stream=Stream(stream), partition=partition, offset=offset)

    def _check_usable(self) -> None:
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)

    def _report(self) -> None:
        for callback in self._on_durable:
            callback(self._tail.durable_lsn)

    def _fail(self, error: BaseException) -> None:
        failure = error if isinstance(error, (LogFailed, LogCorrupt)) else self._wrap(error)
        self._unusable = failure
        for callback in self._on_failure:
            callback(failure)

    def _wrap(self, error: BaseException) -> LogFailed:
        failure = LogFailed(
            f"The log {self.path} stopped: {type(error).__name__}: {error}. Start again; nothing acknowledged is lost."
        )
        failure.__cause__ = error
        return failure
