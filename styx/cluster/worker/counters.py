"""A worker's counters: plain integers, so that the hot path pays for an addition at most. The protocol never reads
them.

They count since the process started, over all registrations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from styx.metrics.histogram import STORE_SECONDS, Histogram
from styx.protocol.manifest import SlotPart


@dataclass(slots=True)
class Counters:
    """Replies given by outcome; frames to and from peers with the messages in them; parts of snapshots.

    `replay_differences` are replies that a replay gave otherwise than they stand in the log, `operators_lost` operators
    of which entities were loaded that cannot be found. `recovery_s` is how long the last load took; `fenced` how often
    the log refused this worker as outdated.
    """

    committed: int = 0
    aborted: int = 0
    rejected: int = 0
    poison: int = 0
    replay_differences: int = 0
    operators_lost: int = 0
    frames_sent: int = 0
    frames_received: int = 0
    messages_sent: int = 0
    messages_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    snapshot_parts: int = 0
    snapshot_failures: int = 0
    snapshot_bytes: int = 0
    snapshot_seconds: Histogram = field(default_factory=lambda: Histogram(STORE_SECONDS))
    recoveries: int = 0
    recovery_s: float = 0.0
    fenced: int = 0

    def stored(self, parts: list[SlotPart] | None, seconds: float) -> None:
        """The worker's part of a snapshot is in the store after so long, or (None) was given up."""
        if parts is None:
            self.snapshot_failures += 1
            return
        self.snapshot_parts += 1
        self.snapshot_seconds.observe(seconds)
        self.snapshot_bytes += sum(part.stored.size for part in parts if part.stored is not None)
