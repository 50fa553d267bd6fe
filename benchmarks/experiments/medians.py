"""The figure that stands for several runs: their median. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float | None:
    """None if nothing was measured."""
    return statistics.median(values) if values else None
