"""Decides when a broker is warm: when its processor time per transaction, step by step under full load, no longer
falls. Pure.

A new Java process first interprets its code and compiles it meanwhile, so a broker needs several times its usual
processor time in the first half minute under load. That would change measurements on the same machine.
"""

from __future__ import annotations

from typing import Final

FALL_MIN: Final = 0.05
"""A step whose broker needs this share less than in the best one before is still warming it."""
STEADY_STEPS: Final = 2
"""So many steps in a row without such a fall: the broker is warm."""
SECONDS_MAX: Final = 40.0
"""Longer than this no broker is warmed."""


class Warming:
    """Ask `goes_on`, and tell each step to `record`. Without a broker two steps are all there is."""

    def __init__(self) -> None:
        self._best_us = float("inf")
        self._steady = 0
        self._seconds = 0.0

    @property
    def goes_on(self) -> bool:
        """Whether another step is wanted."""
        return self._steady < STEADY_STEPS and self._seconds < SECONDS_MAX

    def record(self, broker_us: float | None, seconds: float) -> None:
        """A step of so many seconds, in which the broker, if there is one, needed so much for a transaction."""
        self._seconds += seconds
        if broker_us is not None and broker_us < (1 - FALL_MIN) * self._best_us:
            self._steady = 0
        else:
            self._steady += 1
        self._best_us = min(self._best_us, broker_us or self._best_us)
