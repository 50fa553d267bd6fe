"""Reads the SQLite file of a log beside the engine that writes it, or of an engine that has ended.

It takes no lock that the engine waits for: each look is a short transaction, so checkpoints go on. It writes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from styx.log.base import LogCorrupt, LogFailed, LogTruncated, Record, Stream
from styx.log.batch import Batch, BatchDamaged, decode, stored, verify
from styx.log.bundle import unbundle
from styx.log.sqlite_file import ALL_BUNDLES, LAST_OF_PARTITION, fetched, refuse_newer

_FIRST = "SELECT * FROM batches WHERE stream = ? AND partition = ? ORDER BY first_offset LIMIT 1"


class SqliteReader:
    """A `LogReader` of the file at `path`. Raises `LogFailed` for a file that cannot be read; methods also raise as
    those of `LogReader`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        wal = path.with_name(path.name + "-wal")
        # Without anything in the write-ahead log nobody writes, and SQLite need not make its files beside this one.
        how = "mode=ro" if wal.is_file() and wal.stat().st_size else "mode=ro&immutable=1"
        try:
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False
            )
            try:
                refuse_newer(self._connection, path)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def bounds(self, stream: Stream, partition: int) -> tuple[int, int]:
        """As `Log.bounds`."""
        place = (int(stream), partition)
        with self._looking():
            last = self._connection.execute(LAST_OF_PARTITION, place).fetchone()
            first = self._connection.execute(_FIRST, place).fetchone()
            bundles = self._connection.execute(ALL_BUNDLES).fetchall()
        first_offset = next_offset = 0
        try:
            if first is not None:
                first_offset = stored(first).first_offset
            if last is not None:
                batch = stored(last)
                verify(batch)
                next_offset = batch.next_offset
            for row in bundles:
                for run in unbundle(stored(row), place):
                    if run.first_offset != next_offset:
                        raise self._corrupt("the record is missing", stream, partition, next_offset)
                    next_offset += len(run.payloads)
        except BatchDamaged as damage:
            raise self._corrupt(str(damage), stream, partition, next_offset) from None
        return first_offset, next_offset

    def read(self, stream: Stream, partition: int, first_offset: int) -> Iterator[Record]:
        """As `Log.read`."""
        first, end = self.bounds(stream, partition)
        if first_offset < first:
            raise LogTruncated(f"{stream.name} partition {partition} begins at offset {first}, not {first_offset}.")
        if first_offset > end:
            raise self._corrupt(f"it ends before, at offset {end}", stream, partition, first_offset)
        return self._read(stream, partition, first_offset, end)

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()

    def _read(self, stream: Stream, partition: int, offset: int, end: int) -> Iterator[Record]:
        while offset < end:
            batches = self._fetched(stream, partition, offset)
            if not batches:
                raise self._gap(stream, partition, offset)
            for batch in batches:
                if not batch.first_offset <= offset < batch.next_offset:
                    raise self._gap(stream, partition, offset)
                try:
                    records = decode(batch)
                except BatchDamaged as damage:
                    raise self._corrupt(str(damage), stream, partition, offset) from None
                for record in records[offset - batch.first_offset :]:
                    if record.offset >= end:
                        return
                    yield record
                offset = batch.next_offset

    def _gap(self, stream: Stream, partition: int, offset: int) -> LogCorrupt | LogTruncated:
        first, _ = self.bounds(stream, partition)
        if offset < first:
            return LogTruncated(f"{stream.name} partition {partition}: offset {offset} was released meanwhile.")
        return self._corrupt("the record is missing", stream, partition, offset)

    def _fetched(self, stream: Stream, partition: int, offset: int) -> list[Batch]:
        try:
            with self._lock:
                return fetched(self._connection, stream, partition, offset)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        except BatchDamaged as damage:
            raise self._corrupt(str(damage), stream, partition, offset) from None

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """A transaction: what is read in it is of one moment."""
        try:
            with self._lock:
                self._connection.execute("BEGIN")
                try:
                    yield
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> LogFailed:
        return LogFailed(f"The log {self._path} cannot be read: {error}. Nothing was changed.")

    def _corrupt(self, problem: str, stream: Stream, partition: int, offset: int) -> LogCorrupt:
        return LogCorrupt(problem, file=self._path, stream=stream, partition=partition, offset=offset)
