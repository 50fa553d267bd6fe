"""The queue of epochs for the checking process: whole epochs, in order, bounded in bytes. `CheckWatch` fills it, as the
observer of a worker's epochs.

If the checker falls behind, epochs are left out until it has taken the whole queue; then it begins again from the state
of that moment. So under load only a part of the transactions is checked. The serving process is never blocked.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from styx.cli.check.messages import Ended, Epoch, State, ToChecker, Written, encode
from styx.worker.epoch import Watch
from styx.worker.events import Step
from styx.worker.local_phase import LocalPhase
from styx.worker.lock_rounds import LockRounds
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot
from styx.worker.worker import Worker

QUEUE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of the epochs that wait to be checked."""
TAKE_BYTES_MAX: Final = 256 * 1024
"""Bytes of the epochs that leave the queue at once."""
ENTITIES_MAX: Final = 100_000
STATE_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of state that is copied for the checker; with more state, nothing is checked."""
PAUSE_SECONDS: Final = 2.0
"""The time from the moment at which the checker fell behind to its next beginning."""


class Feed:
    """The queue of one engine. `ended` has the transactions of the open epoch; `problem` says why the check is over."""

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
        """Sends a message, however much waits."""
        self._put(encode(message))

    def give_state(self, slots: Iterable[Slot], epoch: int) -> None:
        """Begins anew, with the state at the end of `epoch`. If that is too much, sets `problem` instead."""
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
        """Sends the epoch, which is over; if the queue is full, falls behind."""
        ended, self.ended = self.ended, []
        if not ended and not written:
            return
        data = encode(Epoch(epoch, ended, written))
        if self._bytes + len(data) > QUEUE_BYTES_MAX:
            self.fall_behind(time.monotonic())
        else:
            self._put(data)

    def fall_behind(self, since_s: float) -> None:
        """Leaves out epochs from here on, until the state can be given again."""
        self.listens, self._behind_since_s = False, since_s

    @property
    def ready_again(self) -> bool:
        """Whether the checker fell behind, has taken the whole queue, and can be given the state again."""
        since_s = self._behind_since_s
        if since_s is None or self.problem is not None or self.waiting:
            return False
        return time.monotonic() - since_s >= PAUSE_SECONDS

    @property
    def waiting(self) -> int:
        """The number of messages that are not checked yet."""
        return len(self._queue) + self._under_way

    @property
    def stopped(self) -> bool:
        """Whether the queue was stopped."""
        return self._stopped

    def stop(self) -> None:
        """Drops the waiting messages; nothing is sent any more."""
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

    def take(self, bytes_max: int = TAKE_BYTES_MAX) -> list[bytes] | None:
        """The next messages for the checker, at least one and no more than so many bytes; None after `stop`. Blocks."""
        with self._changed:
            while not self._queue and not self._stopped:
                self._changed.wait()
            if not self._queue:
                return None
            taken = [self._queue.popleft()]
            n_bytes = len(taken[0])
            while self._queue and n_bytes + len(self._queue[0]) <= bytes_max:
                taken.append(self._queue.popleft())
                n_bytes += len(taken[-1])
            self._bytes -= n_bytes
            self._under_way += len(taken)
            return taken

    def checked(self) -> None:
        """Notes that the checker has checked a message."""
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def wait_until_checked(self, seconds: float) -> None:
        """Blocks until all messages are checked, at most for so long."""
        with self._changed:
            self._changed.wait_for(lambda: not self.waiting or self._stopped, seconds)


class CheckWatch(Watch):
    """Gives the ended transactions and the written state of each epoch to `feed`, once there is one."""

    feed: Feed | None = None

    def begin(self, feed: Feed, worker: Worker) -> None:
        """Begins to observe `worker`: from here on, or from the end of the epoch that is open."""
        self.feed = feed
        if worker.reached in (Step.IDLE, Step.HOLDING):
            feed.give_state(worker.slots.values(), worker.epoch)
        else:
            feed.fall_behind(-math.inf)

    def ends(self, roots: list[RootTransaction]) -> None:
        """As `Watch.ends`."""
        feed = self.feed
        if feed is not None and feed.listens:
            feed.ended.extend([_ended(root) for root in roots if root.remembered is None and root.function is not None])

    def committed(
        self, epoch: int, slots: Mapping[int, Slot], locks: LockRounds | None, local: LocalPhase | None
    ) -> None:
        """As `Watch.committed`."""
        feed = self.feed
        if feed is None:
            return
        if feed.listens:
            feed.close(epoch, _written(epoch, slots, locks, local))
        elif feed.ready_again:
            feed.give_state(slots.values(), epoch)


def _written(
    epoch: int, slots: Mapping[int, Slot], locks: LockRounds | None, local: LocalPhase | None
) -> list[Written]:
    found: set[tuple[str, Any]] = set()
    written: list[Written] = []
    for index, slot in slots.items():
        found.clear()
        for operator, cells in slot.cells_by_operator():
            found.update((operator, cell.key) for cell in cells if cell.written)
        found.update((row.table, row.key) for row in slot.incremented)
        for footprint in slot.footprints.values():
            for access in footprint.accesses or ():
                found.update((access.operator, key) for key in access.writes)
        if locks is not None:
            found.update(locks.written(index))
        if local is not None:
            found.update(local.written(index))
        readers = {operator: slot.state.table(operator).reader(epoch) for operator, _ in found}
        written.extend(Written(operator, key, readers[operator](key)) for operator, key in found)
    return written


def _ended(root: RootTransaction) -> Ended:
    failure = root.failure
    error = None if failure is None else (failure.code, failure.type, failure.message)
    result = root.result if failure is None else None
    return Ended(root.tid, root.timestamp_us, root.payload, result, error, root.externals)
