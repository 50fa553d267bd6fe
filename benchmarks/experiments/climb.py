"""The search for a rate from a guess: up while steps pass, down while they fail. Pure.

The rates are those of a fixed ladder, each rung `FACTOR` above the one below it. Strides double until the answer is
enclosed and halve from then on; with a good guess two steps are enough.
"""

from __future__ import annotations

from typing import Final

FACTOR: Final = 1.03
"""Between two rungs: how exact the answer is."""
STEPS_MAX: Final = 14


class Climb:
    """Ask `next_rate`, try it, tell `record`; until `next_rate` is None."""

    def __init__(self, guess: float) -> None:
        self._guess = guess
        self._passed: int | None = None
        self._failed: int | None = None
        self._stride = 1
        self._steps = 0

    @property
    def passed(self) -> float:
        """The highest rate that has passed; 0 if none has."""
        return 0.0 if self._passed is None else self._rate(self._passed)

    def next_rate(self) -> float | None:
        """Requests a second of the next step."""
        rung = self._next_rung()
        return None if rung is None else self._rate(rung)

    def record(self, passed: bool) -> None:
        """What the step at `next_rate` gave."""
        rung = self._next_rung()
        assert rung is not None, "it has ended"
        self._steps += 1
        if passed:
            self._passed = rung
        else:
            self._failed = rung
        if self._steps > 1:
            self._stride *= 2

    def _next_rung(self) -> int | None:
        passed, failed = self._passed, self._failed
        if self._steps >= STEPS_MAX:
            return None
        if passed is None:
            return 0 if failed is None else failed - self._stride
        if failed is None:
            return passed + self._stride
        return None if failed - passed <= 1 else (passed + failed) // 2

    def _rate(self, rung: int) -> float:
        return float(f"{self._guess * FACTOR**rung:.4g}")
