"""An alarm: wakes a worker's core when the next call of an agenda is due, and tells it the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

SLEEP_SECONDS_MAX: Final = 10.0
"""The clock is looked at so often at least, because it may be set while the alarm sleeps."""


class Alarm:
    """On the loop that runs now; `clock` gives microseconds since 1970."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._told: Callable[[int], None] | None = None

    def wake(self, due_us: int, told: Callable[[int], None]) -> None:
        """Tells the time when it is `due_us`, or earlier; takes the place of the last such order."""
        self.stop()
        self._told = told
        wait_s = max(0.0, (due_us - self._clock()) / 1e6)
        self._timer = self._loop.call_later(min(wait_s, SLEEP_SECONDS_MAX), self._ring)

    def stop(self) -> None:
        """Forgets the order."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._told = None  # it refers to the core's host

    def _ring(self) -> None:
        self._timer = None
        told, self._told = self._told, None
        assert told is not None
        told(self._clock())


def wall_clock_us() -> int:
    """Microseconds since 1970 by the wall clock."""
    return time.time_ns() // 1000
