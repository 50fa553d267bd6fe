"""The SQLite file of the log: one table of record batches, clustered by partition and offset, and behind them bundles.

Each insertion is one synced transaction, and so is a sort, which puts batches in the place of all bundles. The last
batch of a partition is never deleted. So the next offset of every partition survives truncation, and the last LSN
equals the sum of the next offsets, which is checked at opening.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from styx.log.base import LogClosed, LogCorrupt, LogFailed, Stream
from styx.log.batch import Batch, BatchDamaged, encode, parted, stored, verify
from styx.log.bundle import BUNDLES, unbundle
from styx.log.tail import Run
from styx.process.fsync import fsync_directory

FETCH_BATCHES_MAX: Final = 64
"""Batches in a reader's memory."""
RELEASE_BATCHES_MAX: Final = 256
"""Batches deleted in one transaction, so that a commit never waits long for a deletion."""

_INSERT_ROWS_MAX: Final = 128  # 7 values each: within the 999 of older SQLite builds
_KEPT_BYTES_MAX: Final = 256 * 1024
"""Payload bytes that a prepared insertion may keep in memory."""
_WAL_BYTES_KEPT_MAX: Final = 64 * 1024 * 1024
_APPLICATION_ID: Final = 0x53747978  # "Styx"
_FORMAT: Final = 2
"""1 had no bundles."""
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_CREATE: Final = """
CREATE TABLE batches (
    stream INTEGER NOT NULL, partition INTEGER NOT NULL, first_offset INTEGER NOT NULL,
    n_records INTEGER NOT NULL, last_lsn INTEGER NOT NULL, checksum INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (stream, partition, first_offset)
) WITHOUT ROWID
"""
FETCH: Final = """
SELECT * FROM batches
WHERE stream = :stream AND partition = :partition AND first_offset >= coalesce((
    SELECT max(first_offset) FROM batches
    WHERE stream = :stream AND partition = :partition AND first_offset <= :offset), 0)
ORDER BY first_offset LIMIT :count
"""
_RELEASE: Final = """
DELETE FROM batches WHERE (stream, partition, first_offset) IN (
    SELECT stream, partition, first_offset FROM batches
    WHERE stream = :stream AND partition = :partition AND first_offset < (
        SELECT max(first_offset) FROM batches
        WHERE stream = :stream AND partition = :partition AND first_offset <= :offset)
    ORDER BY first_offset LIMIT :count)
"""
_FIRST_OF_NEXT_PARTITION: Final = """
SELECT * FROM batches WHERE (stream, partition) > (?, ?) ORDER BY stream, partition, first_offset LIMIT 1
"""
LAST_OF_PARTITION: Final = """
SELECT * FROM batches WHERE stream = ? AND partition = ? ORDER BY first_offset DESC LIMIT 1
"""
ALL_BUNDLES: Final = f"SELECT * FROM batches WHERE stream = {BUNDLES} ORDER BY first_offset"  # noqa: S608 - a number
_DELETE_BUNDLES: Final = f"DELETE FROM batches WHERE stream = {BUNDLES}"  # noqa: S608 - a number


class SqliteFile:
    """The file at `path`, created if it is missing and `known_lsn`, the highest acknowledged LSN, is 0. `bundled` are
    the runs of its bundles, one list for each bundle.

    Writing methods are for one thread; `fetch` may be called from any. Raises `LogCorrupt` and `LogFailed`, and leaves
    a refused file as it was.
    """

    def __init__(self, path: Path, known_lsn: int) -> None:
        self.path = path
        self._reader: sqlite3.Connection | None = None
        self._reader_lock = Lock()
        self._refuse_if_emptied(known_lsn)
        with self._errors("opened"):
            self._writer = self._connect("rwc")
            try:
                self._set_up()
                self._hold()
                self._prepare(known_lsn)
                self._hold()
                self.partitions = self._load_partitions()
                self.bundled = self._load_bundles()
                self.last_lsn = self._verify_lsn(known_lsn)
                self._upgrade()
            except BaseException:
                self.abandon()
                raise

    def insert(self, batches: list[Batch]) -> None:
        """Stores the batches in one transaction; returns when they are on the disk."""
        with self._errors("written"):
            if len(batches) <= _INSERT_ROWS_MAX:
                # A single statement is its own transaction: the interpreter lock changes hands once, not three times.
                self._insert(batches)
                return
            with self._transaction():
                self._insert_all(batches)

    def sort(self, batches: list[Batch]) -> None:
        """Stores the batches, which hold the records of all bundles, in their place, as `insert`."""
        with self._errors("written"), self._transaction():
            self._writer.execute(_DELETE_BUNDLES)
            self._insert_all(batches)

    def fetch(self, stream: Stream, partition: int, offset: int) -> list[Batch]:
        """The batch that holds `offset` and some that follow, unverified; from any thread. Records in bundles come in
        batches of their own. Raises `BatchDamaged` for a bundle, which is verified, and for what is no batch.
        """
        with self._reader_lock, self._errors("read"):
            if self._reader is None:
                raise LogClosed(f"the log {self.path} was closed")
            return fetched(self._reader, stream, partition, offset)

    def release(self, stream: Stream, partition: int, first_offset: int) -> bool:
        """Deletes some batches that lie wholly below `first_offset`; True if there may be more."""
        with self._errors("written"):
            unwanted = named(stream, partition, first_offset, RELEASE_BATCHES_MAX)
            deleted = self._writer.execute(_RELEASE, unwanted).rowcount
        return deleted == RELEASE_BATCHES_MAX

    def checkpoint(self) -> None:
        """Moves batches from the write-ahead log to the table, as far as readers allow, so that the log stays small."""
        with self._errors("written"):
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def interrupt(self) -> None:
        """Ends the writing thread's present statement; from any thread."""
        self._writer.interrupt()

    def close(self) -> None:
        """Moves the write-ahead log to the table, and closes the file."""
        with self._errors("written"):
            self._close_reader()
            self._writer.close()

    def abandon(self) -> None:
        """Closes the file, and leaves all files as they are, the write-ahead log included."""
        # The last connection that closes does a checkpoint, but not a read-only one.
        self._writer.close()
        self._close_reader()

    def _close_reader(self) -> None:
        with self._reader_lock:
            if self._reader is not None:
                self._reader.close()
            self._reader = None

    def _refuse_if_emptied(self, known_lsn: int) -> None:
        # SQLite takes an empty file for a new one and deletes the write-ahead log beside it.
        if _size(self.path) > 0:
            return
        if known_lsn > 0 or _size(self.path.with_name(self.path.name + "-wal")) > 0:
            raise LogCorrupt(
                f"the file is missing or empty, but {known_lsn or 'some'} records in it were acknowledged",
                file=self.path,
            )

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=2 * _INSERT_ROWS_MAX,
        )

    def _prepare(self, known_lsn: int) -> None:
        if self._pragma("application_id") == 0 and self._is_blank():
            if known_lsn > 0:
                raise LogCorrupt(f"it is blank, but {known_lsn} records in it were acknowledged", file=self.path)
            self._create()
        if self._pragma("application_id") != _APPLICATION_ID:
            raise LogCorrupt("this SQLite file is not a log of this library", file=self.path)
        refuse_newer(self._writer, self.path)
        self._writer.execute("PRAGMA journal_mode = WAL").fetchall()

    def _upgrade(self) -> None:
        """Only a log that is not refused: the version that wrote it can still read one that is."""
        if self._pragma("user_version") < _FORMAT:
            self._writer.execute(f"PRAGMA user_version = {_FORMAT}")

    def _set_up(self) -> None:
        self._writer.execute("PRAGMA synchronous = FULL")
        # On macOS a plain fsync leaves data in the drive's cache; elsewhere these two do nothing.
        self._writer.execute("PRAGMA fullfsync = ON")
        self._writer.execute("PRAGMA checkpoint_fullfsync = ON")
        # The writer does checkpoints after a commit was reported, not inside of it.
        self._writer.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        self._writer.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT_MAX}").fetchall()

    def _hold(self) -> None:
        """Reads once: a connection that has read keeps the other one from a checkpoint at its closing."""
        self._reader = self._reader or self._connect("ro")
        self._reader.execute("SELECT count(*) FROM sqlite_master").fetchall()

    def _create(self) -> None:
        self._writer.execute("PRAGMA journal_mode = WAL").fetchall()
        with self._transaction():
            self._writer.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._writer.execute(f"PRAGMA user_version = {_FORMAT}")
            self._writer.execute(_CREATE)
        fsync_directory(self.path.absolute().parent)

    def _load_partitions(self) -> dict[tuple[Stream, int], tuple[int, int]]:
        """The first retained and the next offset of every partition; verifies the last batch of each."""
        bounds: dict[tuple[Stream, int], tuple[int, int]] = {}
        self._last_lsns = [0]
        place = (-1, -1)
        while (first := self._one(_FIRST_OF_NEXT_PARTITION, place)) and first.stream != BUNDLES:
            place = first.stream, first.partition
            last = self._one(LAST_OF_PARTITION, place)
            if last is None or first.stream not in list(Stream):
                raise LogCorrupt(f"there is no stream {first.stream}", file=self.path)
            stream = Stream(first.stream)
            try:
                verify(last)
            except BatchDamaged as damage:
                raise LogCorrupt(
                    str(damage), file=self.path, stream=stream, partition=place[1], offset=last.first_offset
                ) from None
            bounds[stream, first.partition] = (first.first_offset, last.next_offset)
            self._last_lsns.append(last.last_lsn)
        return bounds

    def _load_bundles(self) -> list[list[Run]]:
        """Verifies all bundles, and moves the next offsets of `partitions` behind them."""
        loaded = []
        for row in self._writer.execute(ALL_BUNDLES).fetchall():
            try:
                batch = stored(row)
                runs = unbundle(batch)
            except BatchDamaged as damage:
                raise LogCorrupt(str(damage), file=self.path) from None
            for run in runs:
                place = run.stream, run.partition
                first, next_offset = self.partitions.get(place, (0, 0))
                if run.first_offset != next_offset:
                    raise LogCorrupt(
                        "the record is missing", file=self.path, stream=place[0], partition=place[1], offset=next_offset
                    )
                self.partitions[place] = first, next_offset + len(run.payloads)
            self._last_lsns.append(batch.last_lsn)
            loaded.append(runs)
        return loaded

    def _verify_lsn(self, known_lsn: int) -> int:
        counted = sum(next_offset for _, next_offset in self.partitions.values())
        last_lsn = max(self._last_lsns)
        if counted < max(last_lsn, known_lsn):
            missing = max(last_lsn, known_lsn) - counted
            raise LogCorrupt(
                f"{missing} acknowledged records at its end are missing (it holds {counted} of "
                f"{missing + counted}); most likely its write-ahead log (the file ending in -wal) was "
                "damaged, cut off or removed",
                file=self.path,
            )
        if counted > last_lsn:
            raise LogCorrupt(f"it counts {counted} records, but the last one has number {last_lsn}", file=self.path)
        return counted

    def _one(self, query: str, place: tuple[int, int]) -> Batch | None:
        row = self._writer.execute(query, place).fetchone()
        try:
            return None if row is None else stored(row)
        except BatchDamaged as damage:
            raise LogCorrupt(str(damage), file=self.path) from None

    def _insert_all(self, batches: list[Batch]) -> None:
        for start in range(0, len(batches), _INSERT_ROWS_MAX):
            self._insert(batches[start : start + _INSERT_ROWS_MAX])

    def _insert(self, batches: list[Batch]) -> None:
        rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(batches))
        values = [value for batch in batches for value in batch]
        if sum(len(batch.body) for batch in batches) <= _KEPT_BYTES_MAX:
            self._writer.execute("INSERT INTO batches VALUES " + rows, values)  # noqa: S608 - only question marks
            return
        # The module caches a statement for each number of rows, with a copy of its last values. A second execution,
        # which inserts nothing, replaces them.
        insert = f"INSERT INTO batches SELECT * FROM (VALUES {rows}) WHERE ?"  # noqa: S608 - only question marks
        self._writer.execute(insert, [*values, 1])
        self._writer.execute(insert, [*[None] * len(values), 0])

    def _pragma(self, name: str) -> int:
        return int(self._writer.execute(f"PRAGMA {name}").fetchone()[0])

    def _is_blank(self) -> bool:
        return self._writer.execute("SELECT name FROM sqlite_master").fetchone() is None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code & 0xFF in _DAMAGED or code == sqlite3.SQLITE_IOERR_SHORT_READ:
                raise LogCorrupt(f"SQLite says: {error}", file=self.path) from error
            raise self._failed(done, error) from error
        except OSError as error:
            raise self._failed(done, error) from error

    def _failed(self, done: str, error: Exception) -> LogFailed:
        return LogFailed(
            f"The log {self.path} cannot be {done}: {error}. Look at the free space, the permissions and the "
            "health of its disk, then start again; nothing acknowledged is lost."
        )


def refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    """Raises `LogFailed` if the file has a format that this version does not know."""
    written = connection.execute("PRAGMA user_version").fetchone()[0]
    if written > _FORMAT:
        raise LogFailed(
            f"The log {path} was written by a newer version of styx (log format {written}, this "
            f"version reads up to {_FORMAT}). Install that version or a newer one."
        )


def fetched(connection: sqlite3.Connection, stream: Stream, partition: int, offset: int) -> list[Batch]:
    """As `SqliteFile.fetch`, by a connection that has no transaction."""
    wanted = named(stream, partition, offset, FETCH_BATCHES_MAX)
    connection.execute("BEGIN")  # a sort moves records from the one to the other
    try:
        rows = connection.execute(FETCH, wanted).fetchall()
        bundles = [] if len(rows) == FETCH_BATCHES_MAX else connection.execute(ALL_BUNDLES).fetchall()
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")
    batches = [batch for row in rows if (batch := stored(row)).next_offset > offset]
    for row in bundles:
        runs = unbundle(stored(row), (stream, partition))
        batches += encode([parted(run, offset)[-1] for run in runs if run.first_offset + len(run.payloads) > offset], 1)
    return batches


def named(stream: Stream, partition: int, offset: int, count: int) -> dict[str, int]:
    """Parameters by name, since they occur twice: some Pythons warn of `?1` beside a sequence, others refuse it."""
    return {"stream": int(stream), "partition": partition, "offset": offset, "count": count}


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError as error:
        if error.errno == errno.ENOENT:
            return 0
        raise LogFailed(f"The log {path} cannot be opened: {error}. Look at the path and its permissions.") from error
