"""When the last snapshot was taken, and whether the next one is due. Pure: the caller gives the time."""

from __future__ import annotations

from typing import Final

CHANGE_RETRY_S: Final = 2.0
"""A snapshot that a planned change waits for is tried again after so long at most, if it has failed."""


class SnapshotClock:
    """`interval_s` lies between snapshots; `now_s` is the present, and `epoch` that of the last one."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.now_s = 0.0
        self.epoch = -1
        self._at_s = 0.0

    def taken(self, epoch: int) -> None:
        """A snapshot begins behind this epoch, or what stands there is one."""
        self._at_s = self.now_s
        self.epoch = epoch

    def failed(self) -> None:
        """It has not become one: everything is to be stored yet."""
        self.epoch = -1

    def due(self, changing: bool) -> bool:
        """The interval is over; a planned change (`changing`) does not wait that long."""
        interval_s = min(self.interval_s, CHANGE_RETRY_S) if changing else self.interval_s
        return self.now_s - self._at_s >= interval_s

    def unstored(self, changing: bool, epoch: int) -> bool:
        """It is due, and there is something new at this epoch, or a planned change."""
        return self.due(changing) and (changing or epoch > self.epoch)
