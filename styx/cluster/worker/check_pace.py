"""The pace at which a worker checks its state while it serves: a slice now and then, too short to be noticed.

The check runs on the protocol's thread: another thread would take the interpreter from the protocol for five
milliseconds at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from styx.worker.events import CheckFurther, Event
from styx.worker.worker import Worker

SLICE_SECONDS: Final = 0.0005
"""The time that a slice should take."""
SHARE: Final = 0.3
"""The share of a slice in the time from its beginning to the next slice's."""
STALL_SECONDS: Final = 0.25
"""If two successive slices take longer than this by the clock, a `migrate=` waits for something; slices get smaller."""
ENTITIES_MAX: Final = 4096


class CheckPace:
    """Gives `CheckFurther` to `core` through `give`. The host reports the time of each slice to `took`."""

    def __init__(self, core: Worker, give: Callable[[Event], None]) -> None:
        self._core = core
        self._give = give
        self._entities = 1  # the cost of a `migrate=` is unknown at first
        self._rest_s = 0.0
        self._stalled = False
        self._timer: asyncio.TimerHandle | None = None
        self._given = False

    def go_on(self) -> None:
        """Schedules the next slice at a pass's end, if there is state to check."""
        if self._timer is None and not self._given and self._core.checking:
            self._timer = asyncio.get_running_loop().call_later(self._rest_s, self._slice)

    def stop(self) -> None:
        """Begins no further slice."""
        if self._timer is not None:
            self._timer.cancel()

    def _slice(self) -> None:
        self._timer = None
        self._given = True
        self._give(CheckFurther(self._entities))

    def took(self, seconds: float, processor_s: float) -> None:
        """Takes the times of a slice by the clock and by the processor. If other processes delay one slice, the pause
        after it gets longer, but the next slice is not smaller.
        """
        self._given = False
        self._rest_s = seconds * (1 - SHARE) / SHARE
        wanted = int(self._entities * SLICE_SECONDS / max(processor_s, 1e-6))
        stalled, self._stalled = self._stalled, seconds > STALL_SECONDS
        if stalled and self._stalled:
            wanted = min(wanted, int(self._entities * STALL_SECONDS / seconds))
        self._entities = max(1, min(ENTITIES_MAX, wanted, 2 * self._entities))
