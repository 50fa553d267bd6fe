"""A token bucket: a number of requests at once, and a rate beyond it. The bucket is full at first, and fills evenly.
Pure: the caller gives the time."""

from __future__ import annotations

import math


class TokenBucket:
    """One bucket; how much it holds and how fast it fills may be another thing at each use."""

    __slots__ = ("_at_s", "_left")

    def __init__(self, most: float, now_s: float) -> None:
        self._left = most
        self._at_s = now_s

    def take(self, most: float, per_second: float, now_s: float) -> int | None:
        """Takes one; if there is none, after how many seconds to try again."""
        self._left = min(most, self._left + max(0.0, now_s - self._at_s) * per_second)
        self._at_s = now_s
        if self._left < 1:
            return math.ceil((1 - self._left) / per_second)
        self._left -= 1
        return None
