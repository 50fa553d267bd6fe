"""What a requester counts, in plain integers: replies by outcome, their latency, and records that nobody can use."""

from __future__ import annotations

from styx.metrics.histogram import REQUEST_SECONDS, Histogram


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

    def replied(self, code: str | None, seconds: float) -> None:
        """Counts a reply with this error code, None for a commit, that came after `seconds`."""
        if code is None:
            self.committed += 1
        elif code == "aborted":
            self.aborted += 1
        else:
            self.rejected += 1
        self.latency.observe(seconds)
