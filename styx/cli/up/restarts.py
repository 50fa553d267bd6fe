"""When a dead child is started again, and when it is given up. Pure: the caller gives the time."""

from __future__ import annotations

import signal
from typing import Final

from styx.cli.exit_codes import USAGE

FIRST_PAUSE_SECONDS: Final = 0.2
PAUSE_SECONDS_MAX: Final = 5.0
"""Pauses double from the first to this one."""
STEADY_SECONDS: Final = 10.0
"""Who has lived for so long did not die at once."""
QUICK_DEATHS_MAX: Final = 6
"""Who dies at once so many times in a row is given up."""


class Restarts:
    """Of one child."""

    def __init__(self) -> None:
        self._quick = 0

    def pause_after(self, exit_code: int, lived_s: float) -> float | None:
        """Seconds until it is started again; None if it is given up."""
        if exit_code == USAGE:
            return None  # it was asked for wrongly, and would be again
        if lived_s >= STEADY_SECONDS:
            self._quick = 0
        self._quick += 1
        if self._quick >= QUICK_DEATHS_MAX:
            return None
        return min(PAUSE_SECONDS_MAX, FIRST_PAUSE_SECONDS * 2.0 ** (self._quick - 1))


def how_it_ended(exit_code: int) -> str:
    """An exit code in words."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was killed by signal {-exit_code}"
