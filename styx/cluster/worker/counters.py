"""What a worker counts: plain integers, so that the hot path pays for an addition at most. Never read by the protocol.

Counted since the process started, over all registrations.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Replies given by outcome; `recovery_s` is how long the last load took."""

    committed: int = 0
    aborted: int = 0
    rejected: int = 0
    poison: int = 0
    epochs: int = 0
    snapshot_parts: int = 0
    snapshot_failures: int = 0
    recoveries: int = 0
    recovery_s: float = 0.0
