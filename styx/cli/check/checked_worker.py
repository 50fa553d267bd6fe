"""The worker's protocol, unchanged, with a feed that learns what ended and what was written."""

from __future__ import annotations

import math
from typing import Any

from styx.cli.check.feed import Feed
from styx.cli.check.messages import Ended, Written
from styx.protocol import Commit, LockDecision
from styx.worker.root import RootTransaction
from styx.worker.slot import IDEMPOTENCY_TABLE
from styx.worker.step import Step
from styx.worker.worker import Worker


class CheckedWorker(Worker):
    """As `Worker`; tells `feed`, once there is one."""

    feed: Feed | None = None

    def begin(self, feed: Feed) -> None:
        """What ends from here on is told to `feed`, or from the end of the open epoch."""
        self.feed = feed
        if self.reached in (Step.IDLE, Step.HOLDING):
            feed.give_state(self.slots.values())
        else:
            feed.fall_behind(-math.inf)

    def _end(self, roots: list[RootTransaction], phase: int) -> None:
        feed = self.feed
        if feed is not None and feed.listens:
            feed.ended.extend([_ended(root) for root in roots if root.remembered is None and root.function is not None])
        super()._end(roots, phase)

    def _close(self, last: Commit | LockDecision) -> None:
        feed = self.feed
        if feed is not None:
            if feed.listens:
                feed.close(self.epoch, self._written())
            elif feed.ready_again:
                # After this epoch, whose writes are in the tables already.
                feed.give_state(self.slots.values())
        super()._close(last)

    def _written(self) -> list[Written]:
        found: set[tuple[str, Any]] = set()
        written: list[Written] = []
        for index, slot in self.slots.items():
            found.clear()
            for operator, cells in slot.cells_by_operator():
                found.update((operator, cell.key) for cell in cells if cell.written)
            for load in slot.loads:
                if load.bulk is not None:
                    found.update(load.bulk.entities())
            if self._locks is not None:
                found.update(self._locks.written(index))
            tables = slot.tables
            written.extend(Written(operator, key, tables.get(operator, {}).get(key)) for operator, key in found)
        return [each for each in written if each.operator != IDEMPOTENCY_TABLE]


def _ended(root: RootTransaction) -> Ended:
    failure = root.failure
    error = None if failure is None else (failure.code, failure.type, failure.message)
    result = root.result if failure is None else None
    return Ended(root.tid, root.timestamp_us, root.payload, result, error, root.externals)
