"""The log's file, read beside the engine that writes it and after its end."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from styx.log.base import LogCorrupt, LogFailed, LogTruncated, Stream
from styx.log.sqlite import SqliteLog
from styx.log.sqlite_reader import SqliteReader
from styx.testing.patience import PATIENCE_SECONDS


def filled(path: Path, records: int = 500, bundled_bytes_max: int = 0) -> SqliteLog:
    """By default without bundles."""
    log = SqliteLog(path, bundled_bytes_max=bundled_bytes_max)
    for number in range(records):
        log.append(Stream.REQUESTS, number % 3, number, b"%d" % number * (number % 7))
        if number % 50 == 49:
            make_durable(log)
    return log


def make_durable(log: SqliteLog) -> None:
    """What was appended is a batch of its own in each partition."""
    log.flush()
    give_up_s = time.monotonic() + PATIENCE_SECONDS
    while log.durable_lsn < log.lsn:
        assert time.monotonic() < give_up_s
        time.sleep(0.001)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    filled(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(LogFailed, match=r"newer version of styx \(log format 99"):
        SqliteReader(path)


@pytest.mark.parametrize("bundled_bytes_max", [0, 5000, 1_000_000])
def test_beside_the_writer_and_after_its_end(tmp_path: Path, bundled_bytes_max: int) -> None:
    log = filled(tmp_path / "log.db", bundled_bytes_max=bundled_bytes_max)
    expected = [list(log.read(Stream.REQUESTS, partition, 0)) for partition in range(3)]
    reader = SqliteReader(tmp_path / "log.db")
    assert [list(reader.read(Stream.REQUESTS, partition, 0)) for partition in range(3)] == expected
    assert list(reader.read(Stream.REQUESTS, 1, 17)) == expected[1][17:]
    assert reader.bounds(Stream.REQUESTS, 0) == log.bounds(Stream.REQUESTS, 0) == (0, 167)
    assert reader.bounds(Stream.EVENTS, 0) == (0, 0)
    log.append(Stream.REQUESTS, 0, 1, b"new")
    make_durable(log)
    assert [record.payload for record in reader.read(Stream.REQUESTS, 0, 167)] == [b"new"]
    log.close()
    reader.close()
    before = sorted(file.name for file in tmp_path.iterdir())
    again = SqliteReader(tmp_path / "log.db")
    assert again.bounds(Stream.REQUESTS, 0) == (0, 168)
    assert list(again.read(Stream.REQUESTS, 2, 0)) == expected[2]
    again.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == before


def test_what_was_released_and_what_never_was(tmp_path: Path) -> None:
    filled(tmp_path / "log.db").close()
    database = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    [(first,)] = database.execute("SELECT min(first_offset) FROM batches WHERE partition = 0 AND first_offset > 0")
    database.execute("DELETE FROM batches WHERE partition = 0 AND first_offset < ?", [first])
    database.close()
    reader = SqliteReader(tmp_path / "log.db")
    assert reader.bounds(Stream.REQUESTS, 0)[0] == first
    with pytest.raises(LogTruncated, match=f"begins at offset {first}, not 0"):
        reader.read(Stream.REQUESTS, 0, 0)
    with pytest.raises(LogCorrupt, match="it ends before, at offset 167"):
        reader.read(Stream.REQUESTS, 0, 168)


def test_damage_is_found(tmp_path: Path) -> None:
    filled(tmp_path / "log.db").close()
    database = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    database.execute("UPDATE batches SET last_lsn = last_lsn + 1 WHERE partition = 1 AND first_offset = 0")
    database.execute("DELETE FROM batches WHERE partition = 2 AND first_offset > 0 AND first_offset < 100")
    database.close()
    reader = SqliteReader(tmp_path / "log.db")
    with pytest.raises(LogCorrupt, match="the checksum of the records"):
        list(reader.read(Stream.REQUESTS, 1, 0))
    with pytest.raises(LogCorrupt, match="the record is missing"):
        list(reader.read(Stream.REQUESTS, 2, 0))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(LogFailed, match="cannot be read"):
        SqliteReader(tmp_path / "log.db").bounds(Stream.REQUESTS, 0)
    (tmp_path / "other.db").write_bytes(b"no database at all, but long enough to look like one" * 100)
    with pytest.raises(LogFailed, match="cannot be read"):
        SqliteReader(tmp_path / "other.db").bounds(Stream.REQUESTS, 0)
