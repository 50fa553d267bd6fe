"""The log on a local disk: a SQLite file, a writer thread with group commit, and a durability mark beside the file.

Group commit: all records that wait at the end of a commit go into the next one, so a slower disk makes larger groups.
SQLite's write-ahead log is synced at every commit. A commit is stored as one bundle; once there are many, the next
commit sorts all of them, and itself, into batches by partition. Between commits the writer releases truncated batches
and does checkpoints, each in bounded steps. The engine's thread never waits for the disk, except in `close`. The log
needs its file alone: the opener holds the lock of the data directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NamedTuple

from styx.log.base import BACKLOG_BYTES_MAX, BACKLOG_RECORDS_MAX, LogClosed, LogCorrupt, LogFailed, Record, Stream
from styx.log.batch import Batch, BatchDamaged, decode, encode, parted
from styx.log.bundle import Gathered, bundle
from styx.log.mark import Mark
from styx.log.sqlite_file import RELEASE_BATCHES_MAX, SqliteFile
from styx.log.tail import Group, LogTail, Run

COMMIT_RECORDS_MAX: Final = 50_000
"""Groups are joined into one commit up to this many records, so that the first of them do not wait for all."""
CHECKPOINT_BYTES: Final = 16 * 1024 * 1024
"""About this much is written to SQLite's write-ahead log between two checkpoints."""
BUNDLED_BYTES_MAX: Final = 1024 * 1024
"""About as many bytes stand in bundles, which a reader goes through for each partition, and sorting delays a commit."""

_PAGE_BYTES: Final = 4096
_RECORD_BYTES: Final = 16
"""About what a record has in a bundle besides its payload; likewise a run, and the bundle itself."""
_RUN_BYTES: Final = 32
_BUNDLE_BYTES: Final = 64


class Release(NamedTuple):
    """A request to delete the records below `first_offset`."""

    stream: Stream
    partition: int
    first_offset: int


class Writer:
    """Writes to `file` and `mark`, in a thread of its own from `start` to `stop` or `crash`. Bundles are sorted before
    they have more than `bundled_bytes_max` bytes.

    `committed` is called with each durable group in order, then `reported` once per commit; `failed` with the first
    error, which ends the thread. All three are called from the thread, after the commit is on the disk and in the mark.
    """

    def __init__(
        self,
        file: SqliteFile,
        mark: Mark,
        *,
        committed: Callable[[Group], None],
        reported: Callable[[], None],
        failed: Callable[[BaseException], None],
        bundled_bytes_max: int = BUNDLED_BYTES_MAX,
    ) -> None:
        self._file = file
        self._mark = mark
        self._committed = committed
        self._reported = reported
        self._failed = failed
        self._queue: SimpleQueue[Group | Release | None] = SimpleQueue()
        self._releases: dict[tuple[Stream, int], int] = {}
        self._lsn = file.last_lsn
        self._bytes_end = 0  # payload bytes ever appended, as far as they are committed
        self._bundled_bytes_max = bundled_bytes_max
        self._gathered = Gathered()
        for runs in file.bundled:
            self._gathered.add(runs, 0)
        file.bundled = []  # else the file would keep their records for good, and what is gathered behind them
        self._wal_bytes = 0
        self._stopping = False
        self._crashed = False
        self._thread = Thread(target=self._run, name="styx-log-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, work: Group | Release) -> None:
        """Queues work and returns at once. The caller bounds it by the backlog's limits."""
        self._queue.put(work)

    def stop(self) -> None:
        """Returns when all queued work is done, or failed."""
        self._queue.put(None)
        self._thread.join()

    def crash(self) -> None:
        """Returns when the thread writes no more, after the write under way at most; queued work is dropped."""
        self._crashed = True
        self._queue.put(None)
        self._file.interrupt()
        self._thread.join()

    def _run(self) -> None:
        try:
            if self._gathered.n_records:
                # A reader goes through all bundles for each partition, as the recovery that follows an opening does.
                self._sort([])
            while not (self._stopping and self._queue.empty() and not self._releases):
                groups = self._collect()
                if self._crashed:
                    return
                if groups:
                    self._commit(groups)
                self._release_some()
        except BaseException as error:  # noqa: BLE001 - reported, whatever it is
            if not self._crashed:
                self._failed(error)

    def _collect(self) -> list[Group]:
        """The groups that wait; blocks for work if there is no other to do."""
        groups: list[Group] = []
        try:
            work = self._queue.get(block=not self._releases)
            while True:
                if work is None:
                    self._stopping = True
                elif isinstance(work, Release):
                    self._releases[work.stream, work.partition] = work.first_offset
                else:
                    groups.append(work)
                    if work.lsn - self._lsn >= COMMIT_RECORDS_MAX:
                        break
                work = self._queue.get_nowait()
        except Empty:
            pass
        return groups

    def _commit(self, groups: list[Group]) -> None:
        runs, lsn = _join(groups), groups[-1].lsn
        n_bytes = groups[-1].bytes_end - self._bytes_end + _RECORD_BYTES * (lsn - self._lsn)
        n_bytes += _RUN_BYTES * len(runs) + _BUNDLE_BYTES
        bundled = self._gathered.n_bytes + n_bytes <= self._bundled_bytes_max
        if bundled:
            written = [bundle(runs, self._lsn + 1)]
            self._file.insert(written)
        else:
            written = self._sort(runs)
        if self._crashed:
            return
        self._lsn, self._bytes_end = lsn, groups[-1].bytes_end
        # Before the report: what was acknowledged and then lost must be seen at the next opening.
        self._mark.advance(self._lsn)
        for group in groups:
            self._committed(group)
        self._reported()
        if bundled:
            self._gathered.add(runs, n_bytes)
        self._checkpoint_if_due(sum(len(batch.body) + _PAGE_BYTES for batch in written))

    def _sort(self, runs: list[Run]) -> list[Batch]:
        """Stores `runs`, and all records in bundles, as batches, of which a release leaves one record at least."""
        first_lsn = self._lsn - self._gathered.n_records + 1
        self._gathered.add(runs, 0)
        pieces: list[Run] = []
        for run in self._gathered.take():
            last = run.first_offset + len(run.payloads) - 1
            pieces += parted(run, min(last, self._releases.get((run.stream, run.partition), 0)))
        batches = encode(pieces, first_lsn)
        self._file.sort(batches)
        return batches

    def _checkpoint_if_due(self, written_bytes: int) -> None:
        self._wal_bytes += written_bytes
        if self._wal_bytes >= CHECKPOINT_BYTES:
            self._file.checkpoint()
            self._wal_bytes = 0

    def _release_some(self) -> None:
        if not self._releases:
            return
        (stream, partition), first_offset = next(iter(self._releases.items()))
        if self._gathered.holds(stream, partition, first_offset):
            self._wal_bytes += sum(len(batch.body) + _PAGE_BYTES for batch in self._sort([]))
        if not self._file.release(stream, partition, first_offset):
            del self._releases[stream, partition]
        self._checkpoint_if_due(RELEASE_BATCHES_MAX * _PAGE_BYTES)


class SqliteLog(LogTail):
    """A `Log` in the file `path`, in an existing directory. Its mark has the same name, but ends in `.mark`.

    Opening reads at most the last batch of each partition. Raises `LogCorrupt` if acknowledged records are missing or
    damaged, `LogFailed` if the file cannot be used. The keyword arguments limit the records that are not yet durable,
    and those in bundles.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        backlog_records_max: int = BACKLOG_RECORDS_MAX,
        backlog_bytes_max: int = BACKLOG_BYTES_MAX,
        bundled_bytes_max: int = BUNDLED_BYTES_MAX,
    ) -> None:
        super().__init__(backlog_records_max, backlog_bytes_max)
        self.path = Path(path)
        self._on_durable: list[Callable[[int], None]] = []
        self._on_failure: list[Callable[[BaseException], None]] = []
        self._unusable: Exception | None = None
        self._mark = self._open_mark()
        try:
            self._file = SqliteFile(self.path, self._mark.lsn)
        except BaseException:
            self._mark.close(sync=False)
            raise
        self._keep_mark()
        for (stream, partition), (first, next_offset) in self._file.partitions.items():
            self.restore(stream, partition, first, next_offset)
        self._writer = Writer(
            self._file,
            self._mark,
            committed=self.committed,
            reported=self._report,
            failed=self._fail,
            bundled_bytes_max=bundled_bytes_max,
        )
        self._writer.start()

    def append(self, stream: Stream, partition: int, timestamp_us: int, payload: bytes) -> int:
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)
        return super().append(stream, partition, timestamp_us, payload)

    def flush(self) -> None:
        self._check_usable()
        group = self.take()
        if group is not None:
            self._writer.submit(group)

    def on_durable(self, callback: Callable[[int], None]) -> None:
        self._on_durable.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        self._on_failure.append(callback)

    def read(self, stream: Stream, partition: int, first_offset: int) -> Iterator[Record]:
        self._check_usable()
        self.check_retained(stream, partition, first_offset)
        end = self.durable_next(stream, partition)
        _, next_offset = self.bounds(stream, partition)
        if first_offset > next_offset:
            raise self._corrupt(f"it ends before, at offset {next_offset}", stream, partition, first_offset)
        return self._read(Stream(stream), partition, first_offset, end)

    def truncate(self, stream: Stream, partition: int, first_offset: int) -> None:
        self._check_usable()
        if self.release(stream, partition, first_offset):
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
        # Records of a commit that was never reported count as acknowledged from now on, since they may be read.
        try:
            if self._mark.lsn < self._file.last_lsn:
                self._mark.advance(self._file.last_lsn)
        except OSError as error:
            self._abandon()
            raise self._wrap(error) from error

    def _read(self, stream: Stream, partition: int, offset: int, end: int) -> Iterator[Record]:
        while offset < end:
            try:
                batches = self._file.fetch(stream, partition, offset)
            except BatchDamaged as damage:
                raise self._corrupt(str(damage), stream, partition, offset) from None
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
        self.check_retained(stream, partition, offset)
        return self._corrupt("the record is missing", stream, partition, offset)

    def _corrupt(self, problem: str, stream: Stream, partition: int, offset: int) -> LogCorrupt:
        return LogCorrupt(problem, file=self.path, stream=Stream(stream), partition=partition, offset=offset)

    def _check_usable(self) -> None:
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)

    def _report(self) -> None:
        for callback in self._on_durable:
            callback(self.durable_lsn)

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


def _join(groups: list[Group]) -> list[Run]:
    """One run for each partition: the order of partitions in a commit is free, and longer runs are stored better."""
    if len(groups) == 1:
        return groups[0].runs
    joined: dict[tuple[Stream, int], Run] = {}
    for group in groups:
        for run in group.runs:
            into = joined.setdefault((run.stream, run.partition), run._replace(timestamps_us=[], payloads=[]))
            into.timestamps_us.extend(run.timestamps_us)
            into.payloads.extend(run.payloads)
    return list(joined.values())
