"""A requester's counters, in plain integers: replies by outcome, their latency, and unusable records."""

from __future__ import annotations

from typing import Final

from styx.metrics.histogram import REQUEST_SECONDS, Histogram

FEW: Final = 8
"""So many values are cheaper to observe one by one."""


class RequestCounters:
    """Totals since the start."""

    def __init__(self) -> None:
        self.sent = 0
        self.committed = 0
        self.aborted = 0
        self.rejected = 0
        self.rerouted = 0
        self.foreign = 0
        self.garbage = 0
        self.latency = Histogram(REQUEST_SECONDS)

    def committed_after(self, seconds: list[float]) -> None:
        """Counts commits whose replies came after so many seconds each; sorts them."""
        self.committed += len(seconds)
        if len(seconds) < FEW:
            for each in seconds:
                self.latency.observe(each)
        else:
            self.latency.observe_all(seconds)

    def failed_after(self, code: str, seconds: float) -> None:
        """Counts a reply with this error code that came after `seconds`."""
        if code == "aborted":
            self.aborted += 1
        else:
            self.rejected += 1
        self.latency.observe(seconds)
