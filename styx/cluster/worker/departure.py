"""Whether this worker process has been told to end, and whether other workers have its slots by now.

It outlives registrations: a process that was told to leave says so again at each new registration.
"""

from __future__ import annotations

import asyncio


class Departure:
    """`leaving`: it is to have no slots; `released` is set when it has none, and gets none any more."""

    def __init__(self) -> None:
        self.leaving = False
        self.released = asyncio.Event()

    def let_go(self) -> None:
        """The coordinator has given its slots to others, as it was asked to by this process or by an operator."""
        self.leaving = True
        self.released.set()
