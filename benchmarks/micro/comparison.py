"""One comparison of the two loops, in microseconds of CPU per transaction."""

from __future__ import annotations

import statistics
from typing import NamedTuple


class Comparison(NamedTuple):
    """Figures of each run, in order: `bare_us[i]` and `engine_us[i]` were measured one after the other."""

    title: str
    bare_us: list[float]
    engine_us: list[float]

    @property
    def ratios(self) -> list[float]:
        """Engine over bare loop, run by run."""
        return [engine / bare for engine, bare in zip(self.engine_us, self.bare_us, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of `ratios`."""
        return statistics.median(self.ratios)
