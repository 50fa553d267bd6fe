"""The changes of a worker's closed epochs, in memory, for whoever follows them: what the change feed is made of.

Nothing is done for it in a transaction. When an epoch closes, the versions say which keys it has written, and the
tables have their values. The log is bounded, and nobody waits for a follower: what is too much is dropped, and a
follower that wanted it is told. Changes are final: a closed epoch is replayed as it was, under its number. A generation
has a log of its own, since its workers have other slots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from styx.model.changes import EpochChanges, TableChanges
from styx.model.limits import MIB
from styx.state.versions import IMAGE_BYTES, Versions
from styx.worker.slot import Slot

LOG_BYTES_MAX: Final = 64 * MIB
"""What the changes in the log of one worker may count; an epoch with more cannot be followed."""
UNFOLLOWED_EPOCHS_MAX: Final = 4_096
"""Epochs that close while nobody follows before the log ends. A follower whose connection was lost comes again, and
wants all that it has missed.
"""
_DROPPED_SHARE: Final = 16
"""This part of the log is dropped when it is full."""

_epoch_of: Callable[[EpochChanges], int] = attrgetter("epoch")


def changes_of(slots: Mapping[int, Slot], versions: Versions, epoch: int) -> EpochChanges:
    """The changes of a closed epoch behind the versions' `oldest`."""
    written = versions.written(epoch)
    n_bytes, tables = 0, []
    for kept in () if written is None else written.tables:
        table = slots[kept.slot].state.table(kept.name)
        keys: list[Any] = []
        values: list[bytes | None] = []
        for key, before in kept.images(epoch).items():
            value = table.value_at(epoch, key)
            if value != before:
                keys.append(key)
                values.append(value)
                n_bytes += IMAGE_BYTES if value is None else IMAGE_BYTES + len(value)
        if keys:
            tables.append(TableChanges(kept.slot, kept.name, keys, values))
    return EpochChanges(epoch, n_bytes, tables)


class ChangeLog:
    """Has all changes of the epochs behind `begun`, up to the end of `last`. `begun` is None before the worker has
    loaded its state. `followers` is how many follow.
    """

    def __init__(self) -> None:
        self.begun: int | None = None
        self.last = -1
        self.followers = 0
        self.n_bytes = 0
        self._unfollowed = 0
        self._epochs: list[EpochChanges] = []

    def begin(self, begun: int, closed: int) -> None:
        """The log has nothing, and is to have the changes of all epochs behind `begun`; `closed` is the last one that
        has closed.
        """
        self.begun, self.last = begun, closed

    def unfollowed(self) -> bool:
        """An epoch has closed; whether nobody has followed for long."""
        self._unfollowed = 0 if self.followers else self._unfollowed + 1
        return self._unfollowed > UNFOLLOWED_EPOCHS_MAX

    def closes(self, epoch: int) -> bool:
        """An epoch has closed; whether the log is to have its changes."""
        self.last = epoch
        return self.begun is not None and epoch > self.begun

    def add(self, changes: EpochChanges) -> None:
        """The changes of the epoch behind all that the log has."""
        if not changes.tables:
            return
        self._epochs.append(changes)
        self.n_bytes += changes.n_bytes
        if self.n_bytes > LOG_BYTES_MAX:
            self._drop()

    def _drop(self) -> None:
        """Drops the oldest epochs, many at once: the rest is moved each time."""
        left = LOG_BYTES_MAX - LOG_BYTES_MAX // _DROPPED_SHARE
        n_dropped = 0
        while self.n_bytes > left and n_dropped < len(self._epochs):
            self.n_bytes -= self._epochs[n_dropped].n_bytes
            n_dropped += 1
        self.begun = self._epochs[n_dropped - 1].epoch
        del self._epochs[:n_dropped]

    def behind(self, after: int, bytes_max: int) -> tuple[int, list[EpochChanges]]:
        """The changes of the next epochs behind `after`, as far as they count `bytes_max`, but at least those of one;
        and the epoch up to whose end they are all.
        """
        place = bisect_right(self._epochs, after, key=_epoch_of)
        found: list[EpochChanges] = []
        n_bytes = 0
        while place < len(self._epochs):
            epoch = self._epochs[place]
            if found and n_bytes + epoch.n_bytes > bytes_max:
                return found[-1].epoch, found
            found.append(epoch)
            n_bytes += epoch.n_bytes
            place += 1
        return max(after, self.last), found
