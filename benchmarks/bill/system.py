"""What the system knows of processes: processor time and wake-ups by /proc, system calls and bytes by strace."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

ATTACH_SECONDS: Final = 1.0
"""For strace to hold all threads."""
STOP_SECONDS_MAX: Final = 30.0
_CALL: Final = re.compile(r"^\d+ +(?:<\.\.\. )?([a-z0-9_]+)(?:\(| resumed>)(.*?)(?:= (-?\d+)(?: .*)?)?$")
_SENT: Final = frozenset({"write", "writev", "pwrite64", "pwritev", "send", "sendto", "sendmsg", "sendfile"})
_WOKEN: Final = "voluntary_ctxt_switches:"


class Used(NamedTuple):
    """Of processes together: processor time in ns, and how often a thread went to sleep, so was woken later."""

    cpu_ns: int
    wakeups: int

    def __sub__(self, other: Used) -> Used:
        return Used(self.cpu_ns - other.cpu_ns, self.wakeups - other.wakeups)


def used(pids: Sequence[int]) -> Used:
    """Since they began. Threads that have ended are left out."""
    cpu_ns = wakeups = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                cpu_ns += int((task / "schedstat").read_text("ascii").split()[0])
                status = (task / "status").read_text("utf-8")
            except (FileNotFoundError, ProcessLookupError):
                continue
            wakeups += next(int(line.split()[1]) for line in status.splitlines() if line.startswith(_WOKEN))
    return Used(cpu_ns, wakeups)


class Traced(NamedTuple):
    """System calls by name, and the bytes that left the processes by files and sockets."""

    calls: dict[str, int]
    bytes_sent: int


def can_trace() -> bool:
    """Whether strace is there."""
    return shutil.which("strace") is not None


@contextmanager
def traced(pids: Sequence[int]) -> Iterator[list[Traced]]:
    """Traces all threads of processes within the block; behind it, the list has what was found."""
    found: list[Traced] = []
    with tempfile.TemporaryDirectory(prefix="styx-bill-") as folder:
        file = Path(folder, "trace")
        attach = [argument for pid in pids for argument in ("-p", str(pid))]
        tracer = subprocess.Popen(
            ["strace", "-f", "-qq", "-s", "0", "-e", "signal=none", "-o", str(file), *attach],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(ATTACH_SECONDS)
            began = file.stat().st_size if file.exists() else 0
            yield found
            ended = file.stat().st_size
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(STOP_SECONDS_MAX)
        with file.open("rb") as trace:
            trace.seek(began)
            found.append(counted(trace.read(ended - began).decode("utf-8", "replace").splitlines()))


def counted(lines: Sequence[str]) -> Traced:
    """Sums the lines of a trace. A call that another thread interrupts has two lines, and counts at its end."""
    calls: dict[str, int] = {}
    sent = 0
    for line in lines:
        call = _CALL.match(line)
        if call is None or call[3] is None:
            continue
        name = call[1]
        calls[name] = calls.get(name, 0) + 1
        if name in _SENT:
            sent += max(0, int(call[3]))
    return Traced(calls, sent)
