"""Signals that end a process. If a function holds up the event loop, the watchdog ends the process.

The event loop's own handlers stay in place, and act whenever the loop runs. An end without them is like a crash, so
nothing is lost.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

SAME_SECONDS: Final = 0.1
"""Signals within so long are one order: supervisors send theirs to the group and to the process."""

_told: list[tuple[int, float]] = []


def told() -> int | None:
    """The last signal that told this process to end."""
    return _told[-1][0] if _told else None


def told_again() -> bool:
    """Whether it was told so a second time: it is to wait for nothing."""
    return bool(_told) and _told[-1][1] - _told[0][1] > SAME_SECONDS


def notice(numbers: Iterable[signal.Signals] = SIGNALS) -> None:
    """From here on these are noticed, besides what is done about them now. In the main thread; elsewhere it does
    nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in numbers:
        before = signal.getsignal(number)
        if isinstance(before, _Noticed):
            continue
        signal.signal(number, _Noticed(before))
        # Event loops ask for the opposite; but what waits in C, for a socket or a lock, is to hear of it at once.
        signal.siginterrupt(number, True)


class _Noticed:
    """A handler that notices, and does what the one before it does; that may raise, so it does it once."""

    def __init__(self, before: object) -> None:
        self._before = before
        self._done = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        _told.append((number, time.monotonic()))
        del _told[1:-1]
        if self._before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif callable(self._before) and not self._done:
            self._done = number == signal.SIGINT
            self._before(number, frame)
