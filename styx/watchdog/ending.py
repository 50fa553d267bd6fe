"""Signals that end a process. If a function holds up the event loop, the watchdog ends the process.

The event loop's own handlers stay in place, and act whenever the loop runs. An end without them is like a crash, so
nothing is lost.

Python runs a signal's handler in the main thread, but the kernel may give the signal to any thread. On a busy machine a
thread that is just being made may take it before the main thread has woken for it. The main thread then goes on waiting
in C, and the handler waits too. So one thread, the ear, reads from the interpreter's wakeup descriptor, which is
written to in whatever thread the signal arrives.
"""

from __future__ import annotations

import contextlib
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
    nothing. An event loop that is to hear of them has been told so before.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in numbers:
        before = signal.getsignal(number)
        _EAR.numbers.add(number)
        if isinstance(before, _Noticed):
            continue
        signal.signal(number, _Noticed(before))
        # Event loops ask for the opposite; but what waits in C, for a socket or a lock, is to hear of it at once.
        signal.siginterrupt(number, True)
    _EAR.listens()


def _note(number: int) -> None:
    _told.append((number, time.monotonic()))
    del _told[1:-1]


class _Ear:
    """Hears of signals in whatever thread they arrive, and passes their numbers on to whom they went before, which is
    the running event loop.
    """

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self._writing = -1
        self._behind = -1

    def listens(self) -> bool:
        """Whether it did; from here on it does. In the main thread."""
        if self._writing == -1:
            reading, self._writing = os.pipe()
            os.set_blocking(self._writing, False)
            threading.Thread(target=self._listen, args=(reading,), name="styx-signals", daemon=True).start()
        behind = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        if behind == self._writing:
            return True
        self._behind = behind
        return False

    def _listen(self, reading: int) -> None:
        while True:
            heard = os.read(reading, 64)
            for number in heard:
                if number in self.numbers:
                    _note(number)
            if self._behind != -1:
                with contextlib.suppress(OSError):  # the loop is closed, or has more than it can read
                    os.write(self._behind, heard)


_EAR: Final = _Ear()


class _Noticed:
    """A handler that notices, and does what the one before it does; that may raise, so it does it once."""

    def __init__(self, before: object) -> None:
        self._before = before
        self._done = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not _EAR.listens():  # a loop that began since has taken its place
            _note(number)
        if self._before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif callable(self._before) and not self._done:
            self._done = number == signal.SIGINT
            self._before(number, frame)
