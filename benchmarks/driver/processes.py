"""Processes of this machine: their use of resources, and which of them listens on a port."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import psutil  # type: ignore[import-untyped]

from benchmarks.driver.accounting import Sample, Usage


def sample(pids: Mapping[str, Sequence[int]]) -> Sample:
    """A sample of the processes `pids`, by role. Processes that have ended are left out."""
    roles: dict[str, dict[int, Usage]] = {}
    for role, of_role in pids.items():
        roles[role] = {}
        for pid in of_role:
            try:
                process = psutil.Process(pid)
                with process.oneshot():
                    times = process.cpu_times()
                    roles[role][pid] = Usage(times.user + times.system, process.memory_info().rss)
            except psutil.Error:
                continue
    times = psutil.cpu_times()
    idle_s = times.idle + getattr(times, "iowait", 0.0)
    stolen_s = getattr(times, "steal", 0.0)
    # User time already includes the time of guests.
    counted_twice_s = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    busy_s = sum(times) - idle_s - stolen_s - counted_twice_s
    return Sample(time.monotonic(), roles, busy_s, stolen_s)


def listening(port: int) -> list[int]:
    """PIDs of the processes that listen on a TCP port of this machine, as far as this user may see them."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return []
    return sorted(
        {
            each.pid
            for each in connections
            if each.status == psutil.CONN_LISTEN and each.pid is not None and each.laddr.port == port
        }
    )


class Listener:
    """The process that listens on `port`. The search is slow, so it is repeated only when the last found process has
    ended.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._found: list[int] = []

    def pids(self) -> list[int]:
        """The PIDs; empty if there is no such process, or this user may not see it."""
        if not self._found or not all(map(psutil.pid_exists, self._found)):
            self._found = listening(self._port)
        return self._found


def with_children(pid: int) -> list[int]:
    """A process and all its descendants; empty if it has ended."""
    try:
        process = psutil.Process(pid)
        return [pid, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return []
