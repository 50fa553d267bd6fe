"""What the system knows of a process: its own figures grow; a trace's lines are summed, whole or in two parts."""

from __future__ import annotations

import os
import time

from benchmarks.bill.system import counted, used


def test_work_and_sleep_are_seen() -> None:
    before = used([os.getpid()])
    while used([os.getpid()]).cpu_ns - before.cpu_ns < 1_000_000:
        pass
    time.sleep(0.001)
    assert (used([os.getpid()]) - before).wakeups >= 1


def test_a_trace_is_summed() -> None:
    lines = [
        '12 write(5, ""..., 30) = 30',
        "13 epoll_pwait(4,  <unfinished ...>",
        '12 read(5, ""..., 4096) = 20',
        "13 <... epoll_pwait resumed>[{EPOLLIN, {u32=5, u64=5}}], 1024, 50, NULL, 8) = 1",
        "12 sendto(6, NULL, 0, 0, NULL, 0) = -1 EAGAIN (Resource temporarily unavailable)",
        "12 sendfile(6, 7, [0] => [100], 100) = 100",
        "12 exit(0) = ?",
        "12 +++ exited with 0 +++",
    ]
    found = counted(lines)
    assert found.calls == {"write": 1, "read": 1, "epoll_pwait": 1, "sendto": 1, "sendfile": 1}
    assert found.bytes_sent == 130
