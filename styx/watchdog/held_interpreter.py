"""Names code that holds up the interpreter itself, and with it every Python thread: C code that lets no other thread
run, such as a regular expression that backtracks without end, or a power of a huge number.

A timer in the kernel has the thread that computes write its own stack, unless a watchdog resets it at each of its
turns. It counts the process's processor time, so a process that was stopped for a while, or could not run, writes
nothing. That matters: a stack that another thread writes while it changes ends the process with a segmentation fault
(`faulthandler.dump_traceback_later`). Here no thread's stack changes while it is written: the thread itself is in C,
and in the signal's handler. A process has only one such timer, and its signal, SIGPROF, is its own: so this is for
processes of this package only.
"""

from __future__ import annotations

import faulthandler
import signal
from typing import Final, TextIO

HELD_SECONDS: Final = 5.0
"""Of processor time without a turn of any watchdog; then the stack is written, once until there is one again."""

_where: list[tuple[TextIO, float]] = []


def write_to(file: TextIO, seconds: float = HELD_SECONDS) -> None:
    """Has the stack written to `file` while a watchdog runs; `file` has a descriptor, and stays open. Nothing is ever
    written if something else in the process handles SIGPROF already, as a profiler does. In the main thread.
    """
    _where.clear()
    if signal.getsignal(signal.SIGPROF) != signal.SIG_DFL:
        return
    faulthandler.register(signal.SIGPROF, file=file, all_threads=False)
    _where.append((file, seconds))


def is_of_ours() -> bool:
    """Whether this is a process of this package."""
    return bool(_where)


def put_off() -> None:
    """Resets the timer: other threads run. To be called more often than every `HELD_SECONDS`, until `put_away`."""
    for file, seconds in _where:
        try:
            file.fileno()
        except (OSError, ValueError):  # it was closed, or is no file
            put_away()
            _where.clear()
        else:
            signal.setitimer(signal.ITIMER_PROF, seconds)


def put_away() -> None:
    """Cancels the timer: no watchdog runs any more."""
    if _where:
        signal.setitimer(signal.ITIMER_PROF, 0)
