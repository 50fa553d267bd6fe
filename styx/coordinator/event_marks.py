"""When the logs of events are marked: some time after a worker has told that events are there without a mark."""

from __future__ import annotations

from typing import Final

MARK_SECONDS_MIN: Final = 0.1
"""Between two marks, so that marks are few beside the events."""


class EventMarks:
    """Of one generation. An app that is idle, or has no events, has no marks: nobody tells that one is missing."""

    def __init__(self) -> None:
        self._missing = False
        self._since_s = float("-inf")

    def want(self) -> None:
        """There are events without a mark, of an epoch that is decided."""
        self._missing = True

    def due(self, now_s: float) -> bool:
        """Whether a mark is due; then it counts as made."""
        if not self._missing or now_s - self._since_s < MARK_SECONDS_MIN:
            return False
        self._missing = False
        self._since_s = now_s
        return True
