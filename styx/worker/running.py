"""Whose code runs now, for a watchdog on another thread; and what the watchdog leaves there when that takes too long.

A record only. The engine's thread says what it runs; the watchdog dooms that invocation, in the same moment in which it
finds it here, and interrupts it. So whatever is interrupted is a user's code, and the engine learns of it as soon as
that code has ended, however it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from styx.worker.invocation import Invocation


def _nothing() -> None:
    """Where nobody watches."""


class Running:
    """`invocation` is the one whose code runs, None while the engine's own does.

    `harmless`: what runs has no part in any outcome, such as the `finally` blocks of a function that was given up.
    `cut`: an invocation was doomed by the watchdog; the lock phase takes the flag down. `withdraw` takes back an
    interruption that has not happened yet; it may raise it. `resumed` counts how often a function was gone on with.
    """

    def __init__(self) -> None:
        self.invocation: Invocation | None = None
        self.harmless = False
        self.cut = False
        self.resumed = 0
        self.withdraw: Callable[[], None] = _nothing
