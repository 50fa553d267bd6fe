"""A sweep over rates, for latency against throughput. It chooses the next rate. Pure.

Rates grow by a factor until one does not hold. A few finer steps near the highest rate that holds then show the bend of
the latency. Unlike in a search, no step ends early: its latencies are those of a whole window.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

from benchmarks.driver.search import RATE_MAX, RATE_MIN

FIRST_RATE_DEFAULT: Final = 100.0
FACTOR_DEFAULT: Final = 2.0
FACTOR_MIN: Final = 1.05
FACTOR_MAX: Final = 100.0
FINER_DEFAULT: Final = 3
FINER_MAX: Final = 20
THROUGHPUT_SHARE_MIN: Final = 0.95
"""The share of the rate that must be answered within the window. With a smaller share, the target is saturated."""


class Sweep:
    """Used like `RateSearch`: run a step at `next_rate`, and pass its result to `record`, until `next_rate` is None."""

    def __init__(self, first_rate: float, factor: float = FACTOR_DEFAULT, finer: int = FINER_DEFAULT) -> None:
        self.passed = 0.0
        """The highest rate that has held; 0 if none has."""
        self._failed: float | None = None
        self._first_rate = first_rate
        self._factor = factor
        self._finer_left = finer

    def next_rate(self) -> float | None:
        """Requests a second of the next step."""
        return None if self.ended else self._candidate()

    def record(self, rate: float, passed: bool) -> None:
        """What the step at `rate` gave."""
        if self._enclosed:
            self._finer_left -= 1
        if passed:
            self.passed = rate
        else:
            self._failed = rate

    @property
    def ended(self) -> str:
        """Why there is no next step; empty while there is one."""
        candidate = self._candidate()
        if self._enclosed and (not self._finer_left or candidate in (self.passed, self._failed)):
            return f"{self._failed:g}/s is too much"
        if candidate < RATE_MIN:
            return f"even {RATE_MIN:g}/s is too much"
        return "" if candidate <= RATE_MAX else f"no rate up to {RATE_MAX:g}/s is too much"

    @property
    def _enclosed(self) -> bool:
        return bool(self.passed) and self._failed is not None

    def _candidate(self) -> float:
        if self._failed is None:
            rate = self.passed * self._factor or self._first_rate
        elif not self.passed:
            rate = self._failed / self._factor
        else:
            rate = sqrt(self.passed * self._failed)
        return float(f"{rate:.3g}")


class Levels:
    """Numbers of requests at once for a closed loop, each once, in the order given; used like `Sweep`."""

    def __init__(self, levels: Sequence[int]) -> None:
        self.passed = 0.0
        """The highest level that has held; 0 if none has."""
        self._left = [*levels]

    def next_rate(self) -> float | None:
        """The next level."""
        return self._left[0] if self._left else None

    def record(self, rate: float, passed: bool) -> None:
        """What the step at this level gave."""
        self._left.remove(int(rate))
        if passed:
            self.passed = max(self.passed, rate)

    @property
    def ended(self) -> str:
        """Why there is no next step; empty while there is one."""
        return "" if self._left else "all levels were measured"
