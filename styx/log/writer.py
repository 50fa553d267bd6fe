"""Group commit: the one thread that writes the log's file, several flushes at a time.

Everything that waits when a commit ends goes into the next one, so the slower the disk, the larger the
groups. Between commits it releases truncated batches and does checkpoints, each in bounded steps. Never
reports a commit before it is on the disk and in the mark, never drops a group silently: the first error ends
it and is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NamedTuple

from styx.log.base import Stream
from styx.log.batch import encode
from styx.log.mark import Mark
from styx.log.sqlite_file import RELEASE_BATCHES_MAX, SqliteFile
from styx.log.tail import Group, Run

COMMIT_RECORDS_MAX: Final = 50_000
"""Groups are joined into one commit up to this many records, so that the first of them do not wait for all.
"""
CHECKPOINT_BYTES: Final = 16 * 1024 * 1024
"""About this much is written to SQLite's write-ahead log between two checkpoints."""

_PAGE_BYTES: Final = 4096


class Release(NamedTuple):
    """A request to delete what lies below `first_offset`."""

    stream: Stream
    partition: int
    first_offset: int


class Writer:
    """Owns the writing side of `file` and `mark`, in a thread of its own from `start` to `stop` or `crash`.

    `committed` is called with each durable group in order, then `reported` once per commit; `failed` with the
    error that ended the thread. All three are called from the thread.
    """

    def __init__(
        self,
        file: SqliteFile,
        mark: Mark,
        *,
        committed: Callable[[Group], None],
        reported: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._file = file
        self._mark = mark
        self._committed = committed
        self._reported = reported
        self._failed = failed
        self._queue: SimpleQueue[Group | Release | None] = SimpleQueue()
        self._releases: dict[tuple[Stream, int], int] = {}
        self._lsn = file.last_lsn
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
        batches = encode(_join(groups), self._lsn + 1)
        self._file.insert(batches)
        if self._crashed:
            return
        self._lsn = groups[-1].lsn
        # Before the report: what was acknowledged and then lost must be seen at the next opening.
        self._mark.advance(self._lsn)
        for group in groups:
            self._committed(group)
        self._reported()
        self._checkpoint_if_due(sum(len(batch.body) + _PAGE_BYTES for batch in batches))

    def _checkpoint_if_due(self, written_bytes: int) -> None:
        self._wal_bytes += written_bytes
        if self._wal_bytes >= CHECKPOINT_BYTES:
            self._file.checkpoint()
            self._wal_bytes = 0

    def _release_some(self) -> None:
        if not self._releases:
            return
        (stream, partition), first_offset = next(iter(self._releases.items()))
        if not self._file.release(stream, partition, first_offset):
            del self._releases[stream, partition]
        self._checkpoint_if_due(RELEASE_BATCHES_MAX * _PAGE_BYTES)


def _join(groups: list[Group]) -> list[Run]:
    """One run per partition: inside a commit the order of partitions is free, and longer runs store better."""
    if len(groups) == 1:
        return groups[0].runs
    joined: dict[tuple[Stream, int], Run] = {}
    for group in groups:
        for run in group.runs:
            into = joined.setdefault((run.stream, run.partition), run._replace(timestamps_us=[], payloads=[]))
            into.timestamps_us.extend(run.timestamps_us)
            into.payloads.extend(run.payloads)
    return list(joined.values())
