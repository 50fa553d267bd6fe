"""Processes for queries, started beforehand: each has loaded DuckDB, waits for its one query, and ends with it.

All methods block, and may be called from any thread.
"""

from __future__ import annotations

import threading
from collections import deque

from styx.query.process import QueryProcess


class QueryProcesses:
    """Keeps `idle_max` processes that wait, once `fill` has been called; none that has had a query is used again."""

    def __init__(self, idle_max: int) -> None:
        self._idle_max = idle_max
        self._idle: deque[QueryProcess] = deque()
        self._lock = threading.Lock()
        self._starting = 0
        self._closed = False

    @property
    def idle(self) -> int:
        """How many wait."""
        return len(self._idle)

    def take(self) -> QueryProcess:
        """A process for one query; its taker ends it. Raises `OSError` if none can be started."""
        with self._lock:
            while self._idle:
                process = self._idle.popleft()
                if not process.ended:
                    return process
                process.end()
        return QueryProcess()

    def fill(self) -> None:
        """Starts as many as are missing. Raises `OSError` if one cannot be started."""
        while True:
            with self._lock:
                if self._closed or len(self._idle) + self._starting >= self._idle_max:
                    return
                self._starting += 1
            process = None
            try:
                process = QueryProcess()
            finally:
                with self._lock:
                    self._starting -= 1
                    unwanted = self._closed
                    if process is not None and not unwanted:
                        self._idle.append(process)
            if unwanted:
                process.end()

    def close(self) -> None:
        """Ends those that wait."""
        with self._lock:
            self._closed = True
            waiting, self._idle = self._idle, deque()
        for process in waiting:
            process.end()
