"""A process killed with SIGKILL while it writes: everything it had reported is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from styx.log.base import Stream
from styx.log.sqlite import SqliteLog

WRITER = """
import sys
from styx.log.sqlite import SqliteLog
from styx.log.base import Stream
log = SqliteLog(sys.argv[1])
log.on_durable(lambda lsn: print(lsn, flush=True))
while True:
    while log.backlog_records < 1000:
        for stream in (Stream.REQUESTS, Stream.REPLIES):
            offset = log.bounds(stream, 2)[1]
            log.append(stream, 2, offset, b"%d " % offset * 20)
        log.flush()
"""
N_KILLS = 3
REPORTS_BEFORE_KILL = 5


@pytest.mark.slow
def test_what_was_reported_survives_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    for _ in range(N_KILLS):
        reported = _write_until_killed(path)
        log = SqliteLog(path)
        assert log.lsn >= reported
        for stream in (Stream.REQUESTS, Stream.REPLIES):
            offsets = [
                record.offset for record in log.read(stream, 2, 0) if record.payload == b"%d " % record.offset * 20
            ]
            assert offsets == list(range(log.bounds(stream, 2)[1]))
        # Abandoned again, so that the next writer starts from the same write-ahead log.
        log.crash()


def _write_until_killed(path: Path) -> int:
    """The last LSN that the child reported."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(REPORTS_BEFORE_KILL)]
    child.kill()
    rest, _ = child.communicate()
    whole = [line for line in [*lines, *rest.splitlines(keepends=True)] if line.endswith("\n")]
    return int(whole[-1])
