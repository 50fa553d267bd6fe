"""Damage to the log's files is noticed: at opening or when the damaged record is read, never passed over in silence.

Records stand in batches by partition or in bundles by commit; `sorted_at_once` is a log without bundles.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from styx.log.base import LogCorrupt, Record, Stream
from styx.log.sqlite import SqliteLog
from styx.log.sqlite_reader import SqliteReader
from tests.log.durable import fill, read, records

N_COMMITS = 6
PAYLOADS = [b"<payload number %d>" % number for number in range(8 * N_COMMITS)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def closed(path: Path) -> Path:
    _write(path, sorted_at_once=True).close()
    return path


@pytest.fixture
def bundled(path: Path) -> Path:
    _write(path, sorted_at_once=False).close()
    return path


@pytest.fixture(params=[True, False], ids=["batches", "bundles"])
def either(request: pytest.FixtureRequest, path: Path) -> Path:
    _write(path, sorted_at_once=request.param).close()
    return path


@pytest.fixture(params=[True, False], ids=["batches", "bundles"])
def abandoned(request: pytest.FixtureRequest, path: Path) -> Path:
    """A log whose records are in the write-ahead log only."""
    _write(path, sorted_at_once=request.param).crash()
    return path


def _write(path: Path, sorted_at_once: bool) -> SqliteLog:
    log = SqliteLog(path, bundled_bytes_max=0) if sorted_at_once else SqliteLog(path)
    for commit in range(N_COMMITS):
        fill(log, PAYLOADS[8 * commit : 8 * commit + 8])
    return log


def open_and_read(path: Path) -> list[Record]:
    log = SqliteLog(path)
    try:
        return read(log)
    finally:
        log.crash()


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def test_a_flipped_payload_byte_is_named(closed: Path) -> None:
    flip(closed, closed.read_bytes().index(PAYLOADS[19]))
    log = SqliteLog(closed)
    reader = log.read(Stream.REQUESTS, 0, 0)
    assert [next(reader) for _ in range(16)] == records(PAYLOADS[:16])
    with pytest.raises(
        LogCorrupt, match="REQUESTS partition 0, offset 16: the checksum of the records 16 to 23"
    ) as caught:
        next(reader)
    assert (caught.value.file, caught.value.partition, caught.value.offset) == (closed, 0, 16)
    assert "Restore the whole data directory from a copy" in str(caught.value)
    log.crash()


def test_damage_in_the_last_batch_is_noticed_at_opening(closed: Path) -> None:
    flip(closed, closed.read_bytes().index(PAYLOADS[-1]))
    with pytest.raises(LogCorrupt, match="records 40 to 47"):
        SqliteLog(closed)


def test_a_deleted_batch_in_the_middle_is_a_gap(closed: Path) -> None:
    _alter(closed, "DELETE FROM batches WHERE first_offset = 16")
    with pytest.raises(LogCorrupt, match="offset 16: the record is missing"):
        open_and_read(closed)


def test_a_deleted_first_batch_is_a_truncation_that_nobody_asked_for(closed: Path) -> None:
    _alter(closed, "DELETE FROM batches WHERE first_offset = 0")
    log = SqliteLog(closed)
    assert log.bounds(Stream.REQUESTS, 0) == (8, 48)
    log.close()


@pytest.mark.parametrize("keep_mark", [True, False])
def test_a_deleted_last_batch_is_a_loss(closed: Path, keep_mark: bool) -> None:
    log = SqliteLog(closed, bundled_bytes_max=0)
    fill(log, [b"other"], Stream.REPLIES, 1)
    log.close()
    if not keep_mark:
        closed.with_suffix(".mark").unlink()
    _alter(closed, "DELETE FROM batches WHERE first_offset = 40")
    with pytest.raises(LogCorrupt, match="8 acknowledged records at its end are missing"):
        SqliteLog(closed)


def test_a_batch_moved_to_another_place_is_noticed(closed: Path) -> None:
    _alter(closed, "UPDATE batches SET first_offset = 17 WHERE first_offset = 16")
    with pytest.raises(LogCorrupt, match="offset 16"):
        open_and_read(closed)


def test_an_unknown_stream_is_noticed(closed: Path) -> None:
    _alter(closed, "UPDATE batches SET stream = 9 WHERE first_offset = 16")
    with pytest.raises(LogCorrupt, match="no stream 9"):
        SqliteLog(closed)


def test_damage_in_a_bundle_is_noticed_at_opening(bundled: Path) -> None:
    flip(bundled, bundled.read_bytes().index(PAYLOADS[19]))
    with pytest.raises(LogCorrupt, match="the commit with the records 17 to 24 of all partitions does not match"):
        SqliteLog(bundled)


def test_damage_in_a_bundle_is_noticed_by_a_reader(bundled: Path) -> None:
    flip(bundled, bundled.read_bytes().index(PAYLOADS[19]))
    reader = SqliteReader(bundled)
    with pytest.raises(LogCorrupt, match="the commit with the records 17 to 24"):
        reader.bounds(Stream.REQUESTS, 0)
    reader.close()


def test_a_deleted_first_bundle_is_a_gap(bundled: Path) -> None:
    _alter(bundled, "DELETE FROM batches WHERE first_offset = 0")
    with pytest.raises(LogCorrupt, match="REQUESTS partition 0, offset 0: the record is missing"):
        SqliteLog(bundled)


def test_a_deleted_bundle_in_the_middle_is_a_gap(bundled: Path) -> None:
    _alter(bundled, "DELETE FROM batches WHERE first_offset = 16")
    with pytest.raises(LogCorrupt, match="offset 16: the record is missing"):
        SqliteLog(bundled)


@pytest.mark.parametrize("keep_mark", [True, False])
def test_a_deleted_last_bundle_is_a_loss(bundled: Path, keep_mark: bool) -> None:
    """Without the mark nothing says that it was there, as with the last commit of a log of batches."""
    if not keep_mark:
        bundled.with_suffix(".mark").unlink()
    _alter(bundled, "DELETE FROM batches WHERE first_offset = 40")
    if keep_mark:
        with pytest.raises(LogCorrupt, match="8 acknowledged records at its end are missing"):
            SqliteLog(bundled)
    else:
        assert open_and_read(bundled) == records(PAYLOADS[:40])


def test_a_bundle_moved_to_another_place_is_noticed(bundled: Path) -> None:
    _alter(bundled, "UPDATE batches SET first_offset = 17 WHERE first_offset = 16")
    with pytest.raises(LogCorrupt, match="the commit with the records 17 to 24"):
        SqliteLog(bundled)


@pytest.mark.parametrize("column", ["n_records", "last_lsn", "checksum", "body"])
def test_a_column_of_another_type_is_noticed(either: Path, column: str) -> None:
    """A flipped bit in the head of a row is enough."""
    _alter(either, f"UPDATE batches SET {column} = '?' WHERE first_offset = 16")
    with pytest.raises(LogCorrupt, match="a column is not of its type"):
        open_and_read(either)
    reader = SqliteReader(either)
    with pytest.raises(LogCorrupt, match="a column is not of its type"):
        list(reader.read(Stream.REQUESTS, 0, 0))
    reader.close()


def test_a_first_offset_of_another_type_is_noticed(closed: Path) -> None:
    types = closed.read_bytes().index(b"\x08\x08\x08\x01\x01")  # three numbers 0, and two of one byte
    flip(closed, types + 2, bit=2)
    with pytest.raises(LogCorrupt, match="a column is not of its type"):
        open_and_read(closed)
    reader = SqliteReader(closed)
    with pytest.raises(LogCorrupt, match="a column is not of its type"):
        reader.bounds(Stream.REQUESTS, 0)
    reader.close()


def test_a_lost_bundle_is_noticed_beside_the_writer(bundled: Path) -> None:
    _alter(bundled, "DELETE FROM batches WHERE first_offset = 16")
    reader = SqliteReader(bundled)
    with pytest.raises(LogCorrupt, match="offset 16: the record is missing"):
        reader.bounds(Stream.REQUESTS, 0)
    reader.close()


def test_a_damaged_last_batch_is_noticed_beside_the_writer(closed: Path) -> None:
    """Else fewer records would seem to be there."""
    _alter(closed, "UPDATE batches SET n_records = 5 WHERE first_offset = 40")
    reader = SqliteReader(closed)
    with pytest.raises(LogCorrupt, match="the checksum of the records 40 to 44 does not match"):
        reader.bounds(Stream.REQUESTS, 0)
    reader.close()


def test_a_refused_log_keeps_its_format(closed: Path) -> None:
    """So the version that wrote it can go on where this one finds damage."""
    _alter(closed, "UPDATE batches SET n_records = 5 WHERE first_offset = 40")
    database = sqlite3.connect(closed)
    database.execute("PRAGMA user_version = 1")
    database.close()
    with pytest.raises(LogCorrupt):
        SqliteLog(closed)
    database = sqlite3.connect(closed)
    assert database.execute("PRAGMA user_version").fetchone() == (1,)
    database.close()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_cut_file_is_noticed(either: Path, share: float) -> None:
    data = either.read_bytes()
    either.write_bytes(data[: int(share * len(data))])
    with pytest.raises(LogCorrupt):
        open_and_read(either)


def test_something_else_in_place_of_the_file_is_noticed(closed: Path) -> None:
    closed.write_bytes(b"no database " * 1000)
    with pytest.raises(LogCorrupt, match="not a database"):
        SqliteLog(closed)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_a_cut_write_ahead_log_is_noticed_and_left_alone(abandoned: Path, share: float) -> None:
    wal = abandoned.with_name("log.db-wal")
    data = wal.read_bytes()
    wal.write_bytes(data[: int(share * len(data))])
    before = _contents(abandoned)
    for _ in range(2):
        with pytest.raises(LogCorrupt, match="acknowledged"):
            SqliteLog(abandoned)
        assert _contents(abandoned) == before


def test_a_deleted_write_ahead_log_is_noticed(abandoned: Path) -> None:
    abandoned.with_name("log.db-wal").unlink()
    with pytest.raises(LogCorrupt, match="48 records in it were acknowledged"):
        SqliteLog(abandoned)


def test_an_emptied_file_beside_a_write_ahead_log_is_noticed_without_a_mark(abandoned: Path) -> None:
    abandoned.with_suffix(".mark").unlink()
    abandoned.write_bytes(b"")
    before = _contents(abandoned)
    with pytest.raises(LogCorrupt, match="missing or empty"):
        SqliteLog(abandoned)
    assert _contents(abandoned)["log.db-wal"] == before["log.db-wal"]


@pytest.mark.parametrize("file", ["log.db-wal", "log.db"])
def test_no_flipped_bit_passes_in_silence(abandoned: Path, file: str) -> None:
    if file == "log.db":
        SqliteLog(abandoned).close()
    damaged = abandoned.with_name(file)
    whole = _contents(abandoned)
    noticed = 0
    for position in range(13, len(whole[file]), 1499):
        for name, data in whole.items():
            abandoned.with_name(name).write_bytes(data)
        abandoned.with_name("log.db-shm").unlink(missing_ok=True)
        flip(damaged, position, position % 8)
        try:
            assert open_and_read(abandoned) == records(PAYLOADS)
        except LogCorrupt:
            noticed += 1
    assert noticed > 0


def _contents(path: Path) -> dict[str, bytes]:
    """The log's files, without the shared memory, which SQLite makes anew."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}


def _alter(path: Path, statement: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    assert database.execute(statement).rowcount == 1
    database.close()
