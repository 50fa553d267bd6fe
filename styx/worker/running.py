"""The running invocation, as the engine records it for the watchdog on another thread; and the mark that the watchdog
sets if it runs too long.

The engine's thread records the invocation that it runs. The watchdog reads the record, dooms that invocation at the
same moment, and interrupts it. So only a user's code is interrupted, and the engine learns of the interruption as soon
as that code has ended, however it ended.
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
