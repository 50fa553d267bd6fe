"""The replayable log: the engine's interface to it, for every kind of storage (§7).

Requests, epoch records, replies, results of external calls and events are appended to partitions of five streams, and
read in order at a recovery. Payloads are opaque. A durable record survives any crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import PurePath
from typing import Final, NamedTuple, Protocol

from styx.errors import EngineFailed, StyxError

BACKLOG_RECORDS_MAX: Final = 1_000_000
"""Records appended but not yet durable; `append` beyond it raises. The engine holds back its input long before."""
BACKLOG_BYTES_MAX: Final = 4096 * 1024 * 1024
"""The same, in bytes of payload."""


class Stream(IntEnum):
    """The kinds of records; each stream has its own partitions, numbered from 0."""

    REQUESTS = 0
    EPOCHS = 1
    REPLIES = 2
    EXTERNALS = 3
    EVENTS = 4


class Record(NamedTuple):
    """A record in its partition; `timestamp_us` is microseconds since 1970."""

    offset: int
    timestamp_us: int
    payload: bytes


Arrival = tuple[int, int, bytes]
"""The fields of a request's `Record`, on its way to the sequencer. Hosts make a plain tuple of each request: that takes
a fifth of a `Record`'s time, and the garbage collector soon forgets it.
"""


_REMEDY_DIRECTORY: Final = (
    "Restore the whole data directory from a copy, or check the disk and start on an empty data directory; removing "
    "single files of it would lose acknowledged requests unnoticed."
)
_REMEDY_TOPIC: Final = (
    "Bring back the broker that has the missing records, or restore all topics of the app and its snapshots from "
    "copies of the same time."
)


class LogCorrupt(EngineFailed):
    """Records are missing or changed. `file` is the path or the topic; `stream`, `partition` and `offset` are None if
    unknown.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: PurePath | str,
        stream: Stream | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> None:
        place = "" if stream is None else f", {stream.name} partition {partition}, offset {offset}"
        remedy = _REMEDY_DIRECTORY if isinstance(file, PurePath) else _REMEDY_TOPIC
        super().__init__(f"The log {file}{place}: {problem}. Nothing was changed. {remedy}")
        self.file = file
        self.stream = stream
        self.partition = partition
        self.offset = offset


class LogFailed(EngineFailed):
    """The log cannot be opened or written: the disk is full, an I/O error, no permission, a newer format."""


class LogTruncated(StyxError):
    """A record to read has been released by `truncate`."""


class LogOverloaded(StyxError):
    """The records that are not yet durable exceed the backlog's limit."""


class LogClosed(StyxError):
    """The log was closed, or abandoned by `crash`; open it again."""


class LogReader(Protocol):
    """Reads durable records; from any thread, and blocks."""

    def read(self, stream: Stream, partition: int, first_offset: int) -> Iterator[Record]:
        """As `Log.read`."""
        ...

    def bounds(self, stream: Stream, partition: int) -> tuple[int, int]:
        """As `Log.bounds`."""
        ...


class Log(LogReader, Protocol):
    """An append-only log. Unless noted, methods are for one thread, the engine's.

    Offsets count from 0 in each (stream, partition) without gaps. The log sequence number (LSN) counts the records of
    all partitions; 0 is none. After a failure of the log all methods except `crash` and the properties raise
    `LogFailed`.
    """

    def append(self, stream: Stream, partition: int, timestamp_us: int, payload: bytes) -> int:
        """Queues a record in memory and returns its offset. Raises `LogOverloaded`, and `ValueError` for bad input."""
        ...

    @property
    def lsn(self) -> int:
        """The LSN of the last appended record."""
        ...

    @property
    def durable_lsn(self) -> int:
        """The LSN of the last record that survives a power cut. From any thread."""
        ...

    @property
    def backlog_records(self) -> int:
        """Records appended but not yet durable, for back-pressure. From any thread."""
        ...

    @property
    def backlog_bytes(self) -> int:
        """Payload bytes appended but not yet durable, for back-pressure. From any thread."""
        ...

    def flush(self) -> None:
        """Begins to make all appended records durable, in one atomic commit, without waiting for it."""
        ...

    def on_durable(self, callback: Callable[[int], None]) -> None:
        """Calls `callback(durable_lsn)` after each commit, from the log's own thread; its error fails the log."""
        ...

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Calls `callback(error)` once when the log can write no more, from the log's own thread."""
        ...

    def read(self, stream: Stream, partition: int, first_offset: int) -> Iterator[Record]:
        """The durable records from `first_offset` on, as of this call, in order and verified. From any thread.

        Raises `LogTruncated` if they were released, and `LogCorrupt` for a bad checksum, a gap, or a `first_offset`
        beyond the end of the log, since a known offset means that there was a record.
        """
        ...

    def bounds(self, stream: Stream, partition: int) -> tuple[int, int]:
        """The first retained and the next offset; (0, 0) before the first record. From any thread.

        After reopening, the first may be lower than the offset given to `truncate`, never higher.
        """
        ...

    def truncate(self, stream: Stream, partition: int, first_offset: int) -> None:
        """Releases the records below `first_offset`, some time later.

        Raises `ValueError` if it is beyond the durable records. Never moves back.
        """
        ...

    def close(self) -> None:
        """Makes all records durable, and closes the files. Raises `LogFailed`."""
        ...

    def crash(self) -> None:
        """Ends the log as a power cut would: nothing more is written, and the object cannot be used any more."""
        ...
