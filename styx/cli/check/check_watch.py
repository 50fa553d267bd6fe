"""An observer of a worker's epochs: it gives a feed the ended transactions and the written state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from styx.cli.check.feed import Feed
from styx.cli.check.messages import Ended, Written
from styx.worker.epoch import Watch
from styx.worker.events import Step
from styx.worker.lock_rounds import LockRounds
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot
from styx.worker.worker import Worker


class CheckWatch(Watch):
    """Tells `feed`, once there is one."""

    feed: Feed | None = None

    def begin(self, feed: Feed, worker: Worker) -> None:
        """What ends on `worker` from here on is told to `feed`, or from the end of the open epoch."""
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

    def committed(self, epoch: int, slots: Mapping[int, Slot], locks: LockRounds | None) -> None:
        """As `Watch.committed`."""
        feed = self.feed
        if feed is None:
            return
        if feed.listens:
            feed.close(epoch, _written(epoch, slots, locks))
        elif feed.ready_again:
            feed.give_state(slots.values(), epoch)


def _written(epoch: int, slots: Mapping[int, Slot], locks: LockRounds | None) -> list[Written]:
    found: set[tuple[str, Any]] = set()
    written: list[Written] = []
    for index, slot in slots.items():
        found.clear()
        for operator, cells in slot.cells_by_operator():
            found.update((operator, cell.key) for cell in cells if cell.written)
        for footprint in slot.footprints.values():
            for access in footprint.accesses or ():
                found.update((access.operator, key) for key in access.writes)
        if locks is not None:
            found.update(locks.written(index))
        readers = {operator: slot.state.table(operator).reader(epoch) for operator, _ in found}
        written.extend(Written(operator, key, readers[operator](key)) for operator, key in found)
    return written


def _ended(root: RootTransaction) -> Ended:
    failure = root.failure
    error = None if failure is None else (failure.code, failure.type, failure.message)
    result = root.result if failure is None else None
    return Ended(root.tid, root.timestamp_us, root.payload, result, error, root.externals)
