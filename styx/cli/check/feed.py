"""The queue of epochs to be sent to the checking process: whole epochs, in order, bounded in bytes.

If the checker falls behind, epochs are left out until it has taken the whole queue; then it begins again from the state
of that moment. So under load only a part of the transactions is checked. The serving process is never blocked.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from styx.cli.check.messages import Ended, Epoch, State, ToChecker, Written, encode
from styx.worker.slot import Slot

QUEUE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Epochs that wait to be checked."""
ENTITIES_MAX: Final = 100_000
STATE_BYTES_MAX: Final = 64 * 1024 * 1024
"""State that is copied for the checker; with more nothing is checked."""
PAUSE_SECONDS: Final = 2.0
"""Between a checker that fell behind and its next beginning."""


class Feed:
    """One engine's. `ended` collects the open epoch; `problem` says why nothing is checked any more."""

    def __init__(self) -> None:
        self.ended: list[Ended] = []
        self.listens = False
        self.problem: str | None = None
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._under_way = 0
        self._behind_since_s: float | None = None
        self._changed = threading.Condition()
        self._stopped = False

    # The engine's thread -----------------------------------------------------------------------------------

    def give(self, message: ToChecker) -> None:
        """Sends it, whatever waits."""
        self._put(encode(message))

    def give_state(self, slots: Iterable[Slot], epoch: int) -> None:
        """Everything from here on follows the state at the end of `epoch`; nothing does if it is too much."""
        tables = [each for slot in slots for each in slot.state.at(epoch).items()]
        if sum(len(table) for _, table in tables) > ENTITIES_MAX:
            self.problem = f"there are more than {ENTITIES_MAX:,} entities"
            return
        if sum(len(value) for _, table in tables for value in table.values()) > STATE_BYTES_MAX:
            self.problem = f"the state has more than {STATE_BYTES_MAX // 1024 // 1024} MiB"
            return
        self.give(State([Written(operator, key, value) for operator, table in tables for key, value in table.items()]))
        self.ended = []
        self.listens, self._behind_since_s = True, None

    def close(self, epoch: int, written: list[Written]) -> None:
        """The epoch is over."""
        ended, self.ended = self.ended, []
        if not ended and not written:
            return
        data = encode(Epoch(epoch, ended, written))
        if self._bytes + len(data) > QUEUE_BYTES_MAX:
            self.fall_behind(time.monotonic())
        else:
            self._put(data)

    def fall_behind(self, since_s: float) -> None:
        """Epochs are left out from here on, until the state can be given again."""
        self.listens, self._behind_since_s = False, since_s

    @property
    def ready_again(self) -> bool:
        """The checker fell behind, has caught up, and may be given the state."""
        since_s = self._behind_since_s
        if since_s is None or self.problem is not None or self.waiting:
            return False
        return time.monotonic() - since_s >= PAUSE_SECONDS

    @property
    def waiting(self) -> int:
        """Messages that were not checked yet."""
        return len(self._queue) + self._under_way

    @property
    def stopped(self) -> bool:
        """Nothing is sent any more."""
        return self._stopped

    def stop(self) -> None:
        """What waits is let go."""
        self.listens = False
        with self._changed:
            self._stopped = True
            self._queue.clear()
            self._changed.notify_all()

    def _put(self, data: bytes) -> None:
        with self._changed:
            if not self._stopped:
                self._queue.append(data)
                self._bytes += len(data)
                self._changed.notify_all()

    # Other threads -----------------------------------------------------------------------------------------

    def take(self) -> bytes | None:
        """The next message for the checker, None when it is over; blocks."""
        with self._changed:
            while not self._queue and not self._stopped:
                self._changed.wait()
            if not self._queue:
                return None
            data = self._queue.popleft()
            self._bytes -= len(data)
            self._under_way += 1
            return data

    def checked(self) -> None:
        """The checker has taken a message."""
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def wait_until_checked(self, seconds: float) -> None:
        """Until nothing waits, or for so long; blocks."""
        with self._changed:
            self._changed.wait_for(lambda: not self.waiting or self._stopped, seconds)
