"""An allowance: a number of lines a second, and a count of those over it. It keeps a flood of lines from filling a
disk."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class Allowance:
    """`per_second` of them pass in each second; `left_out` did not since `take_left_out`."""

    def __init__(self, per_second: int, clock: Callable[[], float] = monotonic) -> None:
        self.left_out = 0
        self._per_second = per_second
        self._clock = clock
        self._began_s = -1.0
        self._passed = 0

    def passes(self) -> bool:
        """Takes one; whether it is within the limit."""
        now_s = self._clock()
        if self._began_s < 0 or now_s - self._began_s >= 1:
            self._began_s, self._passed = now_s, 0
        if self._passed >= self._per_second:
            self.left_out += 1
            return False
        self._passed += 1
        return True

    def take_left_out(self) -> int:
        """How many did not pass since the last time this was asked."""
        left_out, self.left_out = self.left_out, 0
        return left_out
