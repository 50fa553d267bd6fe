"""The SQLite log across reopening, crashes, truncation and failures of the disk."""

from __future__ import annotations

import ctypes
import re
import sqlite3
from pathlib import Path
from queue import SimpleQueue
from threading import Event

import pytest

from styx.log import sqlite_file
from styx.log.base import LogCorrupt, LogFailed, LogTruncated, Stream
from styx.log.batch import encode
from styx.log.sqlite import SqliteLog
from styx.log.sqlite_file import RELEASE_BATCHES_MAX, SqliteFile
from styx.log.tail import Run
from tests.log.durable import WAIT_SECONDS_MAX, commit, fill, read, records

PAYLOADS = [b"payload %d" % number for number in range(100)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.mark.parametrize("end", ["close", "crash"])
def test_everything_durable_is_there_after_reopening(path: Path, end: str) -> None:
    for start in range(0, 100, 20):
        log = SqliteLog(path)
        assert (log.lsn, log.durable_lsn) == (start, start)
        fill(log, PAYLOADS[start : start + 20])
        getattr(log, end)()
    log = SqliteLog(path)
    assert read(log) == records(PAYLOADS)
    log.close()


def test_a_crash_leaves_the_write_ahead_log_and_a_close_does_not(path: Path) -> None:
    log = SqliteLog(path)
    fill(log, PAYLOADS)
    log.crash()
    assert path.with_name("log.db-wal").stat().st_size > 0
    SqliteLog(path).close()
    assert not path.with_name("log.db-wal").exists()


def test_a_crash_takes_what_was_not_reported(path: Path) -> None:
    log = SqliteLog(path)
    fill(log, PAYLOADS[:10])
    log.append(Stream.REQUESTS, 0, 0, b"lost")
    log.crash()
    log = SqliteLog(path)
    assert read(log) == records(PAYLOADS[:10])
    log.close()


def test_a_crash_in_the_middle_keeps_a_prefix_of_the_flushes(path: Path) -> None:
    log = SqliteLog(path)
    reported: list[int] = []
    log.on_durable(reported.append)
    for payload in PAYLOADS:
        log.append(Stream.REQUESTS, 0, 0, payload)
        log.append(Stream.REPLIES, 1, 0, payload)
        log.flush()
    log.crash()
    log = SqliteLog(path)
    kept = [record.payload for record in log.read(Stream.REQUESTS, 0, 0)]
    assert kept == PAYLOADS[: len(kept)]
    assert [record.payload for record in log.read(Stream.REPLIES, 1, 0)] == kept
    assert 2 * len(kept) >= (reported or [0])[-1]
    log.close()


def test_flushes_waiting_for_the_disk_become_one_commit(path: Path) -> None:
    log = SqliteLog(path)
    busy, go_on = Event(), Event()

    def hold(lsn: int) -> None:
        busy.set()
        assert go_on.wait(WAIT_SECONDS_MAX)
        reported.append(lsn)

    reported: list[int] = []
    log.on_durable(hold)
    log.append(Stream.REQUESTS, 0, 0, b"first")
    log.flush()
    assert busy.wait(WAIT_SECONDS_MAX)
    for payload in PAYLOADS:
        log.append(Stream.REQUESTS, 0, 0, payload)
        log.flush()
    go_on.set()
    log.close()
    assert reported == [1, 101]


@pytest.mark.parametrize("end", ["close", "crash"])
def test_truncated_partitions_keep_their_place(path: Path, end: str) -> None:
    log = SqliteLog(path)
    for start in range(0, 100, 10):
        fill(log, PAYLOADS[start : start + 10])
        fill(log, PAYLOADS[start : start + 10], Stream.REPLIES, 5)
    log.truncate(Stream.REPLIES, 5, 100)
    log.truncate(Stream.REQUESTS, 0, 37)
    getattr(log, end)()
    log = SqliteLog(path)
    assert log.lsn == 200
    assert log.bounds(Stream.REPLIES, 5)[1] == 100
    first, next_offset = log.bounds(Stream.REQUESTS, 0)
    assert first <= 37
    assert next_offset == 100
    assert read(log, 37) == records(PAYLOADS, 37)
    assert log.append(Stream.REPLIES, 5, 0, b"") == 100
    log.close()


def test_truncation_frees_whole_batches_in_bounded_steps(path: Path) -> None:
    n_batches = 2 * RELEASE_BATCHES_MAX + 5
    _insert_batches(path, n_batches)
    log = SqliteLog(path)
    log.truncate(Stream.REQUESTS, 0, n_batches - 3)
    log.close()
    log = SqliteLog(path)
    assert log.bounds(Stream.REQUESTS, 0) == (n_batches - 3, n_batches)
    log.close()
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM batches").fetchone() == (3,)
    database.close()


@pytest.mark.parametrize("end", ["close", "crash"])
def test_bundles_are_sorted_when_there_are_many(path: Path, end: str) -> None:
    expected: dict[tuple[Stream, int], list[bytes]] = {}
    counts = []
    for start in range(0, 90, 30):
        log = SqliteLog(path, bundled_bytes_max=4500)
        for number in range(start, start + 30):
            for stream, partition in ((Stream.REQUESTS, number % 7), (Stream.REPLIES, 0)):
                log.append(stream, partition, log.bounds(stream, partition)[1], PAYLOADS[number])
                expected.setdefault((stream, partition), []).append(PAYLOADS[number])
            commit(log)
            for (stream, partition), payloads in expected.items():
                assert read(log, 0, stream, partition) == records(payloads)
            counts.append(_n_bundles(path))
        getattr(log, end)()
    assert max(counts) > 20
    assert counts.count(0) >= 1, "they were sorted between two openings"
    assert counts[30] <= 1, "they were sorted at the second opening"
    log = SqliteLog(path)
    for (stream, partition), payloads in expected.items():
        assert read(log, 0, stream, partition) == records(payloads)
        assert read(log, len(payloads) - 1, stream, partition) == records(payloads, len(payloads) - 1)
    log.close()


def test_sorted_records_do_not_stay_in_memory(path: Path) -> None:
    log = SqliteLog(path)
    fill(log, [b"one"])
    log.close()
    log = SqliteLog(path)
    assert log._file.bundled == []
    fill(log, [b"two"])
    assert _n_bundles(path) == 1
    assert log._writer._gathered.n_records == 1
    assert read(log) == records([b"one", b"two"])
    log.close()


def _n_bundles(path: Path) -> int:
    database = sqlite3.connect(path)
    count: int = database.execute("SELECT count(*) FROM batches WHERE stream = 255").fetchone()[0]
    database.close()
    return count


def test_a_large_commit_is_sorted_at_once(path: Path) -> None:
    log = SqliteLog(path, bundled_bytes_max=2000)
    fill(log, [b"small"])
    fill(log, [bytes(3000)])
    assert _n_bundles(path) == 0
    assert read(log) == records([b"small", bytes(3000)])
    log.close()


def test_truncation_sorts_what_it_releases(path: Path) -> None:
    log = SqliteLog(path)
    fill(log, PAYLOADS[:50])
    log.truncate(Stream.REQUESTS, 0, 30)
    # The writer releases after the first of these commits, so before the second.
    fill(log, [b"other"], Stream.REPLIES, 3)
    fill(log, [b"another"], Stream.REPLIES, 3)
    fill(log, PAYLOADS[50:])
    assert read(log, 30) == records(PAYLOADS, 30)
    log.truncate(Stream.REQUESTS, 0, 60)
    log.truncate(Stream.REPLIES, 3, 2)
    log.close()
    log = SqliteLog(path)
    assert log.bounds(Stream.REQUESTS, 0) == (60, 100)
    assert log.bounds(Stream.REPLIES, 3) == (1, 2), "the last record of a partition stays"
    assert read(log, 60) == records(PAYLOADS, 60)
    assert read(log, 1, Stream.REPLIES, 3) == records([b"other", b"another"], 1)
    log.close()


def test_a_log_of_the_format_before_gets_bundles(path: Path) -> None:
    _insert_batches(path, 5)
    _alter(path, "PRAGMA user_version = 1")
    log = SqliteLog(path)
    fill(log, [b"new"])
    assert [record.payload for record in log.read(Stream.REQUESTS, 0, 0)] == [b"x"] * 5 + [b"new"]
    log.close()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone() == (2,)
    database.close()


def _insert_batches(path: Path, n_batches: int) -> None:
    file = SqliteFile(path, 0)
    file.insert(encode([Run(Stream.REQUESTS, 0, offset, [0], [b"x"]) for offset in range(n_batches)], 1))
    file.close()


def test_a_full_disk_stops_the_log_and_says_so(path: Path) -> None:
    log = SqliteLog(path)
    fill(log, PAYLOADS)
    failures: SimpleQueue[BaseException] = SimpleQueue()
    log.on_failure(failures.put)
    # SQLite's own limit stands in for the disk's: the same error from the same place.
    log._file._writer.execute("PRAGMA max_page_count = 1").fetchall()
    log.append(Stream.REQUESTS, 0, 0, bytes(100_000))
    log.flush()
    failure = failures.get(timeout=WAIT_SECONDS_MAX)
    assert isinstance(failure, LogFailed)
    assert "database or disk is full" in str(failure)
    assert log.durable_lsn == 100
    for use in (lambda: log.append(Stream.REQUESTS, 0, 0, b""), log.flush, log.close):
        with pytest.raises(LogFailed, match="free space"):
            use()
    log = SqliteLog(path)
    assert read(log) == records(PAYLOADS)
    log.close()


def test_a_callback_that_raises_stops_the_log_and_says_so(path: Path) -> None:
    log = SqliteLog(path)
    failures: SimpleQueue[BaseException] = SimpleQueue()
    log.on_failure(failures.put)
    log.on_durable(_fail)
    log.append(Stream.REQUESTS, 0, 0, b"")
    log.flush()
    assert "ZeroDivisionError: on purpose" in str(failures.get(timeout=WAIT_SECONDS_MAX))
    log.crash()


def test_a_newer_format_is_refused(path: Path) -> None:
    SqliteLog(path).close()
    _alter(path, "PRAGMA user_version = 99")
    with pytest.raises(LogFailed, match=r"newer version of styx \(log format 99"):
        SqliteLog(path)


def test_another_programs_database_is_refused(path: Path) -> None:
    _alter(path, "CREATE TABLE accounts (id)")
    with pytest.raises(LogCorrupt, match="not a log of this library"):
        SqliteLog(path)


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogFailed, match="must exist"):
        SqliteLog(tmp_path / "missing" / "log.db")


def test_a_log_without_its_mark_goes_on_and_gets_a_new_one(path: Path) -> None:
    log = SqliteLog(path)
    fill(log, PAYLOADS)
    log.close()
    path.with_suffix(".mark").unlink()
    SqliteLog(path).close()
    path.unlink()
    with pytest.raises(LogCorrupt, match="100 records in it were acknowledged"):
        SqliteLog(path)


def test_a_reader_overtaken_by_truncation_says_so(path: Path) -> None:
    log = SqliteLog(path, bundled_bytes_max=0)
    for payload in PAYLOADS:
        log.append(Stream.REQUESTS, 0, 0, payload)
        commit(log)
    reader = log.read(Stream.REQUESTS, 0, 0)
    next(reader)
    log.truncate(Stream.REQUESTS, 0, 100)
    # The writer releases after the first of these commits, so before the second.
    fill(log, [b"after"])
    fill(log, [b"after"])
    with pytest.raises(LogTruncated):
        list(reader)
    log.close()


def _fail(lsn: int) -> None:
    raise ZeroDivisionError("on purpose")


def _alter(path: Path, statement: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(statement)
    database.close()


def test_no_statement_numbers_its_parameters() -> None:
    """Python 3.12.0 to 3.12.3 warn of `?1` with a sequence, and where warnings are errors no engine would start."""
    statements = {name: text for name, text in vars(sqlite_file).items() if isinstance(text, str) and "batches" in text}
    assert {"FETCH", "_RELEASE"} <= statements.keys()
    assert [name for name, text in statements.items() if re.search(r"\?\d", text)] == []


def test_what_was_written_is_let_go_of(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "log.db", 0)
    body = b"x" * 400_000
    lsn = 0

    def insert(n_records: int) -> None:
        nonlocal lsn
        file.insert(encode([Run(Stream.REQUESTS, 0, lsn, [0] * n_records, [body] * n_records)], lsn + 1))
        lsn += n_records

    insert(1)
    before = allocated_bytes()
    for n_records in range(2, 12):
        insert(n_records)
    assert allocated_bytes() - before < 5_000_000, "each number of rows has a statement of its own"
    assert sum(len(file.fetch(Stream.REQUESTS, 0, offset)) > 0 for offset in range(lsn)) == lsn
    file.close()


def allocated_bytes() -> int:
    """What the process has from the C library and has not given back, which SQLite's copies are in."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("only glibc tells")
    library.mallinfo2.restype = _MallInfo
    info = library.mallinfo2()
    return int(info.uordblks + info.hblkhd)


class _MallInfo(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")),
        *((name, ctypes.c_size_t) for name in ("uordblks", "fordblks", "keepcost")),
    )
