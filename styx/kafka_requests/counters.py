"""What a requester counts, in plain integers: replies by outcome, their latency, and records that nobody can use."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the latency histogram's buckets; one more bucket is above them."""


class RequestCounters:
    """Totals since the start. `by_bound` has one number for each of `BOUNDS_SECONDS` and one above."""

    def __init__(self) -> None:
        self.sent = 0
        self.committed = 0
        self.aborted = 0
        self.rejected = 0
        self.rerouted = 0
        self.foreign = 0
        self.garbage = 0
        self.seconds = 0.0
        self.by_bound = [0] * (len(BOUNDS_SECONDS) + 1)

    def replied(self, code: str | None, seconds: float) -> None:
        """Counts a reply with this error code, None for a commit, that came after `seconds`."""
        if code is None:
            self.committed += 1
        elif code == "aborted":
            self.aborted += 1
        else:
            self.rejected += 1
        self.seconds += seconds
        self.by_bound[bisect_left(BOUNDS_SECONDS, seconds)] += 1
