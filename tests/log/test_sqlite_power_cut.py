"""A power cut at any moment of commits, sorts and releases: the write-ahead log ends at any of its frames, or amid one.

Each time whole commits are there: all that had been reported, and perhaps the one under way.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from styx.log.base import Stream
from styx.log.mark import Mark
from styx.log.sqlite import SqliteLog
from tests.log.durable import commit, read, records

N_COMMITS = 24
N_PARTITIONS = 3
RELEASED_AT = (9, 17)
WAL_HEADER_BYTES = 32
FRAME_BYTES = 24 + 4096


class Written(NamedTuple):
    """A log whose records are in the write-ahead log only. For each commit: `ends`, the length of that behind it;
    `firsts`, the offset in each partition below which records may have been released before it; and `bundled`, how many
    records stand in bundles behind it.
    """

    directory: Path
    ends: list[int]
    firsts: list[int]
    bundled: list[int]


def payload(commit: int, partition: int) -> bytes:
    return b"%d in %d " % (commit, partition) * 4


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    directory = tmp_path_factory.mktemp("written")
    log = SqliteLog(directory / "log.db", bundled_bytes_max=700)
    ends, firsts, bundled = [], [], []
    first = 0
    for number in range(N_COMMITS):
        for partition in range(N_PARTITIONS):
            log.append(Stream.REQUESTS, partition, number, payload(number, partition))
        commit(log)
        ends.append((directory / "log.db-wal").stat().st_size)
        firsts.append(first)
        bundled.append(log._writer._gathered.n_records)
        if number in RELEASED_AT:
            first = number - 1
            for partition in range(N_PARTITIONS):
                log.truncate(Stream.REQUESTS, partition, first)
    log.crash()
    return Written(directory, ends, firsts, bundled)


def test_whole_commits_are_there_wherever_the_write_ahead_log_ends(written: Written, tmp_path: Path) -> None:
    wal = (written.directory / "log.db-wal").read_bytes()
    assert written.bundled.count(0) > 1, "it was sorted"
    path = tmp_path / "log.db"
    for frame_end in range(WAL_HEADER_BYTES, len(wal) + 1, FRAME_BYTES):
        for end in (frame_end - 1000, frame_end):
            n_reported = sum(1 for each in written.ends if each <= end)
            if not n_reported:
                continue
            for left in tmp_path.iterdir():
                left.unlink()
            shutil.copy(written.directory / "log.db", path)
            (tmp_path / "log.db-wal").write_bytes(wal[:end])
            mark = Mark(path.with_suffix(".mark"))
            mark.advance(N_PARTITIONS * n_reported)
            mark.close(sync=False)
            log = SqliteLog(path)
            n_commits = log.bounds(Stream.REQUESTS, 0)[1]
            assert n_reported <= n_commits <= n_reported + 1
            first = written.firsts[min(n_commits, N_COMMITS - 1)]
            for partition in range(N_PARTITIONS):
                assert log.bounds(Stream.REQUESTS, partition)[0] <= first
                assert log.bounds(Stream.REQUESTS, partition)[1] == n_commits
                expected = records([payload(number, partition) for number in range(n_commits)], first)
                assert read(log, first, partition=partition) == expected
            log.crash()
