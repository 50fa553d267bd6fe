"""Processes of this machine: what they use, and which one listens on a port. Reads only; never signals any."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import psutil  # type: ignore[import-untyped]

from benchmarks.driver.accounting import Sample, Usage


def sample(pids: Mapping[str, Sequence[int]]) -> Sample:
    """Of the processes `pids` by role; those that are gone are left out."""
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
    # A guest's time is in its user time already.
    counted_twice_s = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    busy_s = sum(times) - idle_s - stolen_s - counted_twice_s
    return Sample(time.monotonic(), roles, busy_s, stolen_s)


def listening(port: int) -> list[int]:
    """PIDs of the processes that listen on a TCP port of this machine, as far as this user may know."""
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
    """Whoever listens on `port`; looked for anew only when the last one found is gone, for that takes a while."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._found: list[int] = []

    def pids(self) -> list[int]:
        """Empty if there is none, or it may not be known."""
        if not self._found or not all(map(psutil.pid_exists, self._found)):
            self._found = listening(self._port)
        return self._found


def with_children(pid: int) -> list[int]:
    """A process and all its descendants; empty if it is gone."""
    try:
        process = psutil.Process(pid)
        return [pid, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return []
