"""What every log does, whatever keeps its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from styx.log.base import Log, LogClosed, LogCorrupt, LogOverloaded, LogTruncated, Record, Stream
from styx.log.memory import MemoryLog
from styx.log.sqlite import SqliteLog
from tests.log.durable import commit, fill, read, records

OpenLog = Callable[..., Log]


@pytest.fixture(params=["memory", "sqlite"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenLog]:
    opened: list[Log] = []

    def open_one(**limits: int) -> Log:
        log: Log = MemoryLog(**limits) if request.param == "memory" else SqliteLog(tmp_path / "log.db", **limits)
        opened.append(log)
        return log

    yield open_one
    for log in opened:
        log.crash()


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log()


def test_an_empty_log_has_nothing(log: Log) -> None:
    assert (log.lsn, log.durable_lsn, log.backlog_records, log.backlog_bytes) == (0, 0, 0, 0)
    assert log.bounds(Stream.REPLIES, 7) == (0, 0)
    assert read(log) == []


def test_offsets_count_per_partition_and_lsns_over_all(log: Log) -> None:
    assert [log.append(Stream.REQUESTS, 0, 1, b"") for _ in range(3)] == [0, 1, 2]
    assert log.append(Stream.REQUESTS, 1, 1, b"") == 0
    assert log.append(Stream.EPOCHS, 0, 1, b"") == 0
    assert log.lsn == 5
    assert log.bounds(Stream.REQUESTS, 0) == (0, 3)


def test_records_come_back_as_appended(log: Log) -> None:
    expected = {
        (stream, partition): [
            Record(offset, 2**62 + offset, bytes([stream, partition, offset]) * offset) for offset in range(5)
        ]
        for stream in Stream
        for partition in (0, 1, 40)
    }
    for offset in range(5):
        for (stream, partition), wanted in expected.items():
            log.append(stream, partition, wanted[offset].timestamp_us, wanted[offset].payload)
        log.flush()
    commit(log)
    for (stream, partition), wanted in expected.items():
        assert read(log, 0, stream, partition) == wanted
        assert read(log, 3, stream, partition) == wanted[3:]


def test_only_a_flush_makes_durable(log: Log) -> None:
    reported: list[int] = []
    log.on_durable(reported.append)
    log.append(Stream.REQUESTS, 0, 0, b"abc")
    assert (log.durable_lsn, log.backlog_records, log.backlog_bytes) == (0, 1, 3)
    assert read(log) == []
    commit(log)
    assert (log.durable_lsn, log.backlog_records, log.backlog_bytes) == (1, 0, 0)
    assert read(log) == records([b"abc"])
    assert reported == [1]


def test_a_flush_of_nothing_reports_nothing(log: Log) -> None:
    reported: list[int] = []
    log.on_durable(reported.append)
    log.flush()
    fill(log, [b"x"])
    log.flush()
    log.close()
    assert reported == [1]


def test_a_reader_sees_what_was_durable_when_it_began(log: Log) -> None:
    fill(log, [b"a", b"b"])
    reader = log.read(Stream.REQUESTS, 0, 0)
    assert next(reader).payload == b"a"
    fill(log, [b"c"])
    assert [record.payload for record in reader] == [b"b"]


def test_a_backlog_over_its_records_is_refused_and_recovers(open_log: OpenLog) -> None:
    log = open_log(backlog_records_max=2)
    log.append(Stream.REQUESTS, 0, 0, b"a")
    log.append(Stream.REPLIES, 0, 0, b"b")
    with pytest.raises(LogOverloaded, match="2 records with 2 bytes"):
        log.append(Stream.REQUESTS, 0, 0, b"c")
    commit(log)
    assert log.append(Stream.REQUESTS, 0, 0, b"c") == 1


def test_a_backlog_over_its_bytes_is_refused(open_log: OpenLog) -> None:
    log = open_log(backlog_bytes_max=10)
    log.append(Stream.REQUESTS, 0, 0, b"12345678")
    with pytest.raises(LogOverloaded, match="of 3 bytes"):
        log.append(Stream.REQUESTS, 0, 0, b"123")
    assert log.append(Stream.REQUESTS, 0, 0, b"12") == 1


@pytest.mark.parametrize(
    ("stream", "partition", "timestamp_us", "payload"),
    [
        (0, 0, 0, "text"),
        (0, 0, 0, bytearray(b"x")),
        (0, 0, -1, b""),
        (0, 0, 2**63, b""),
        (0, -1, 0, b""),
        (9, 0, 0, b""),
    ],
)
def test_a_bad_record_is_refused_at_once_and_alone(
    log: Log, stream: Any, partition: int, timestamp_us: int, payload: Any
) -> None:
    with pytest.raises(ValueError, match=r"."):
        log.append(stream, partition, timestamp_us, payload)
    assert log.lsn == 0
    fill(log, [b"good"])
    assert read(log) == records([b"good"])


def test_truncation_moves_the_first_bound_only(log: Log) -> None:
    payloads = [b"%d" % number for number in range(10)]
    fill(log, payloads)
    log.truncate(Stream.REQUESTS, 0, 4)
    assert log.bounds(Stream.REQUESTS, 0) == (4, 10)
    assert read(log, 4) == records(payloads, 4)
    log.truncate(Stream.REQUESTS, 0, 2)
    assert log.bounds(Stream.REQUESTS, 0) == (4, 10)
    log.truncate(Stream.REQUESTS, 0, 10)
    assert log.bounds(Stream.REQUESTS, 0) == (10, 10)
    assert read(log, 10) == []
    assert log.append(Stream.REQUESTS, 0, 0, b"") == 10


def test_released_records_cannot_be_read(log: Log) -> None:
    fill(log, [b"a", b"b"])
    log.truncate(Stream.REQUESTS, 0, 1)
    with pytest.raises(LogTruncated, match="REQUESTS partition 0: record 0 was released, the first one left is 1"):
        log.read(Stream.REQUESTS, 0, 0)


def test_what_is_not_durable_cannot_be_released(log: Log) -> None:
    fill(log, [b"a"])
    log.append(Stream.REQUESTS, 0, 0, b"b")
    with pytest.raises(ValueError, match="durable up to 1 only"):
        log.truncate(Stream.REQUESTS, 0, 2)


def test_reading_beyond_the_end_tells_of_a_loss(log: Log) -> None:
    fill(log, [b"a"])
    with pytest.raises(LogCorrupt, match="REQUESTS partition 0, offset 5: it ends before, at offset 1") as caught:
        log.read(Stream.REQUESTS, 0, 5)
    assert (caught.value.stream, caught.value.partition, caught.value.offset) == (Stream.REQUESTS, 0, 5)


def test_a_negative_offset_is_refused(log: Log) -> None:
    with pytest.raises(ValueError, match="count from 0"):
        log.read(Stream.REQUESTS, 0, -1)


@pytest.mark.parametrize("end", ["close", "crash"])
def test_an_ended_log_refuses_everything_and_ends_again(log: Log, end: str) -> None:
    fill(log, [b"a"])
    getattr(log, end)()
    for use in (
        lambda: log.append(Stream.REQUESTS, 0, 0, b""),
        log.flush,
        lambda: log.read(Stream.REQUESTS, 0, 0),
        lambda: log.truncate(Stream.REQUESTS, 0, 1),
    ):
        with pytest.raises(LogClosed):
            use()
    log.close()
    log.crash()


def test_closing_makes_durable(log: Log) -> None:
    reported: list[int] = []
    log.on_durable(reported.append)
    log.append(Stream.REQUESTS, 0, 0, b"a")
    log.close()
    assert reported == [1]


def test_a_crash_drops_what_was_not_flushed(log: Log) -> None:
    reported: list[int] = []
    log.on_durable(reported.append)
    log.append(Stream.REQUESTS, 0, 0, b"a")
    log.crash()
    assert reported == []
