"""Names code that holds up the interpreter itself, and with it every Python thread: C code that lets no other thread
run, such as a regular expression that backtracks without end, or a power of a huge number.

A timer in C writes the stacks of all threads, unless a watchdog resets it at each of its turns. A process has only one
such timer (`faulthandler`), so this is for processes of this package only.
"""

from __future__ import annotations

import faulthandler
from typing import Final, TextIO

HELD_SECONDS: Final = 5.0
"""Without a turn of any watchdog; then the stacks are written, once until there is one again."""

_where: list[tuple[TextIO, float]] = []


def write_to(file: TextIO, seconds: float = HELD_SECONDS) -> None:
    """Has the stacks written to `file` while a watchdog runs; `file` has a descriptor, and stays open."""
    _where[:] = [(file, seconds)]


def is_of_ours() -> bool:
    """Whether this is a process of this package."""
    return bool(_where)


def put_off() -> None:
    """Resets the timer: other threads run. To be called more often than every `HELD_SECONDS`, until `put_away`."""
    for file, seconds in _where:
        try:
            faulthandler.dump_traceback_later(seconds, file=file)
        except (OSError, ValueError, RuntimeError):
            _where.clear()  # it was closed, or is no file


def put_away() -> None:
    """Cancels the timer: no watchdog runs any more."""
    if _where:
        faulthandler.cancel_dump_traceback_later()
