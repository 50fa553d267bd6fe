"""What an audit shows at /metrics."""

from __future__ import annotations

import time
from collections.abc import Iterable

from prometheus_client.core import Metric

from styx.audit.verdict import AGREED, DIFFERS, UNJUDGED, Verdict
from styx.metrics.exposition import Exposition, counter, counters, gauge


class AuditCounters:
    """Counts verdicts. `newest` is the epoch of the newest snapshot that was seen, -1 without one."""

    def __init__(self) -> None:
        self.newest = -1
        self._outcomes = dict.fromkeys((AGREED, DIFFERS, UNJUDGED), 0)
        self._differences = dict.fromkeys(("reply", "state", "event"), 0)
        self._epochs = self._replies = self._skipped = 0
        self._until = -1
        self._last = UNJUDGED
        self._judged_s: float | None = None
        self._exposition = Exposition(self._collect, with_process=True)

    @property
    def differs(self) -> bool:
        """Whether anything has differed so far."""
        return self._outcomes[DIFFERS] > 0

    @property
    def unjudged(self) -> bool:
        """Whether the last interval could not be judged, or there was none."""
        return self._last != AGREED and self._last != DIFFERS

    def count(self, verdict: Verdict) -> None:
        """Takes the verdict on one interval."""
        self.newest = max(self.newest, verdict.until)
        self._outcomes[verdict.outcome] += 1
        self._last = verdict.outcome
        if verdict.outcome == UNJUDGED:
            self._skipped += max(0, verdict.until - verdict.after)
        else:
            self._epochs += verdict.epochs
            self._replies += verdict.replies
            self._differences["reply"] += verdict.reply_differences
            self._differences["state"] += verdict.state_differences
            self._differences["event"] += verdict.event_differences
            self._judged_s = time.monotonic()
        self._until = max(self._until, verdict.until)

    def text(self) -> str:
        """In Prometheus' text format."""
        return self._exposition.text()

    def _collect(self) -> Iterable[Metric]:
        age = float("nan") if self._judged_s is None else time.monotonic() - self._judged_s
        yield counters(
            "styx_audit_intervals_total", "Intervals between snapshots, by outcome.", "outcome", self._outcomes
        )
        yield counter("styx_audit_epochs_total", "Epochs that were replayed and compared.", self._epochs)
        yield counter("styx_audit_replies_total", "Replies that were compared.", self._replies)
        yield counter("styx_audit_skipped_epochs_total", "Epochs that were not judged.", self._skipped)
        yield counters(
            "styx_audit_differences_total",
            "Replies, entries of the state and events that a replay gave otherwise.",
            "of",
            self._differences,
        )
        yield gauge(
            "styx_audit_lag_epochs",
            "Epochs from the last one looked at to the newest snapshot.",
            self.newest - self._until,
        )
        yield gauge("styx_audit_age_seconds", "Since the last verdict; NaN before the first.", age)
