"""When the logs of events are marked: some time after a worker has told that events are there without a mark.

A mark is a record in every partition of every event, so the more partitions there are, the longer is the time between
two of them.
"""

from __future__ import annotations

from typing import Final

MARK_SECONDS_MIN: Final = 0.1
"""Between two marks, so that marks are few beside the events."""
MARK_SECONDS_MAX: Final = 1.0
"""Between two marks, however many partitions there are: readers of several partitions wait for a mark."""
PARTITIONS_PER_SECOND: Final = 1_000
"""That are marked, at most, unless `MARK_SECONDS_MAX` asks for more."""


class EventMarks:
    """Of one generation. An app that is idle, or has no events, has no marks: nobody tells that one is missing."""

    def __init__(self) -> None:
        self._missing = False
        self._since_s = float("-inf")
        self._pause_s = MARK_SECONDS_MIN

    def want(self, partitions: int) -> None:
        """There are events without a mark, of an epoch that is decided. A mark goes to so many partitions."""
        self._missing = True
        self._pause_s = min(MARK_SECONDS_MAX, max(MARK_SECONDS_MIN, partitions / PARTITIONS_PER_SECOND))

    def due(self, now_s: float) -> bool:
        """Whether a mark is due; then it counts as made."""
        if not self._missing or now_s - self._since_s < self._pause_s:
            return False
        self._missing = False
        self._since_s = now_s
        return True
