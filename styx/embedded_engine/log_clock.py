"""The time of log records: the wall clock, except that it never goes back. Read by the shell only, never by a core."""

from __future__ import annotations

import time


class LogClock:
    """Microseconds since 1970, each at least the one before."""

    def __init__(self) -> None:
        self._last_us = 0

    def now_us(self) -> int:
        """Now."""
        now_us = time.time_ns() // 1000
        if now_us > self._last_us:
            self._last_us = now_us
        return self._last_us
