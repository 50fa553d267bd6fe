"""What the engine process tells its parent when it serves: one line of JSON. A declaration."""

from __future__ import annotations

import msgspec


class Readiness(msgspec.Struct):
    """Where it serves, and what starting took: seconds in the engine, the epoch it came back to, epochs replayed."""

    url: str
    recovery_seconds: float
    snapshot_epoch: int
    epoch: int
