"""The parts of an epoch's changes from all workers of one generation, put together: an epoch is given when the last
worker has said that its part is complete. Pure: messages in, whole epochs out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from styx.model.changes import FROM_NOW, EpochChanges, Given


class _Part:
    """Of one worker: `through` is how far it is complete, None before it has said where it begins, and `closed_us` when
    that epoch closed. `messages` are the last epochs of those that are not taken wholly.
    """

    __slots__ = ("closed_us", "epochs", "messages", "through")

    def __init__(self) -> None:
        self.through: int | None = None
        self.closed_us = 0
        self.epochs: deque[EpochChanges] = deque()
        self.messages: deque[int] = deque()


class EpochMerge:
    """Of the changes behind the end of epoch `after`, or `FROM_NOW`: then it begins where the last worker does."""

    def __init__(self, workers: Collection[int], after: int) -> None:
        self._parts = {worker: _Part() for worker in workers}
        self._after = after
        self._begun = False

    def has_begun(self, worker: int) -> bool:
        """Whether a worker has said where it begins."""
        return self._parts[worker].through is not None

    def put(self, worker: int, through: int, epochs: list[EpochChanges], closed_us: int = 0) -> None:
        """A worker's message; the first one has no epochs."""
        part = self._parts[worker]
        part.through, part.closed_us = through, closed_us
        if epochs:
            part.epochs.extend(epochs)
            part.messages.append(epochs[-1].epoch)

    def take(self) -> Given | None:
        """What has become complete since the last time; the first one says where it begins."""
        known = [part.through for part in self._parts.values() if part.through is not None]
        if len(known) < len(self._parts):
            return None
        if not self._begun:
            self._begun = True
            if self._after == FROM_NOW:
                self._after = max(known)
            return Given(self._after, [])
        through = min(known)
        if through <= self._after:
            return None
        whole: dict[int, EpochChanges] = {}
        for part in self._parts.values():
            while part.epochs and part.epochs[0].epoch <= through:
                found = part.epochs.popleft()
                if found.epoch > self._after:  # else from before the beginning
                    other = whole.get(found.epoch)
                    whole[found.epoch] = found if other is None else _together(other, found)
        self._after = through
        closed_us = max(part.closed_us for part in self._parts.values() if part.through == through)
        return Given(through, [whole[epoch] for epoch in sorted(whole)], closed_us)

    def taken(self) -> dict[int, int]:
        """By worker, how many of its messages with changes have been taken wholly since the last time."""
        counts: dict[int, int] = {}
        for worker, part in self._parts.items():
            while part.messages and (not part.epochs or part.epochs[0].epoch > part.messages[0]):
                part.messages.popleft()
                counts[worker] = counts.get(worker, 0) + 1
        return counts


def _together(one: EpochChanges, other: EpochChanges) -> EpochChanges:
    return EpochChanges(one.epoch, one.n_bytes + other.n_bytes, [*one.tables, *other.tables])
