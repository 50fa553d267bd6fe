"""An embedded engine's counters: plain integers, so that the hot path pays for an addition at most.

They count since the process started.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from styx.worker.events import ReportPoison

POISON_KEPT: Final = 100
"""Reports of records that cannot be decoded; the oldest are forgotten first, all of them are counted."""


@dataclass(slots=True)
class Counters:
    """Transactions by outcome as their replies are given; `locked` are those that went through the lock phase."""

    committed: int = 0
    aborted: int = 0
    rejected: int = 0
    locked: int = 0
    carried: int = 0
    epochs: int = 0
    epoch_size: int = 0
    snapshots_failed: int = 0
    poison: int = 0
    recent_poison: deque[ReportPoison] = field(default_factory=lambda: deque(maxlen=POISON_KEPT))
    load_failures: list[str] = field(default_factory=list)
    """Why snapshots could not be used at this start."""
    recovery_s: float = 0.0
    recovered_from: int | None = None
    """The epoch of the snapshot that this start began on."""
    replayed: int | None = None
    """Recorded epochs that it ran again; None until it has."""
    snapshot_at_s: float | None = None
    """When the last snapshot became complete, in seconds since 1970; None if none has since the start."""
