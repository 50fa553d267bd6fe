"""A histogram with fixed bounds: a list of integers, so that an observation costs a bisection.

Needs no package: clients count with it too. `styx.metrics.exposition` turns it into Prometheus' text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

REQUEST_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""For a request, over a network and a log."""
STEP_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""For parts of an epoch."""
STORE_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""For objects on their way to the store."""
EPOCH_SIZES: Final = (0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500)
"""For transactions of one worker in one epoch."""
ROUNDS: Final = (1, 2, 3, 4, 6, 8, 12, 16)
"""For rounds of a lock phase."""


class Histogram:
    """`counts` has one number for each of `bounds` (upper bounds, included, ascending) and one for larger values."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """One value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def observe_all(self, values: list[float]) -> None:
        """Many values, which it sorts: less work for each than `observe`."""
        values.sort()
        counts, before = self.counts, 0
        for index, bound in enumerate(self.bounds):
            at = bisect_right(values, bound, before)
            counts[index] += at - before
            before = at
        counts[-1] += len(values) - before
        self.total += sum(values)

    def observe_since(self, since_us: list[int], now_us: float) -> None:
        """Seconds since each of these times, which it sorts; a time ahead of now, by another clock, counts as now."""
        since_us.sort()
        counts, before = self.counts, len(since_us)
        for index, bound in enumerate(self.bounds):
            at = bisect_left(since_us, now_us - bound * 1e6, 0, before)
            counts[index] += before - at
            before = at
        counts[-1] += before
        past = bisect_right(since_us, now_us)
        self.total += (past * now_us - sum(since_us[:past])) / 1e6

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def buckets(self) -> Iterator[tuple[str, int]]:
        """(upper bound as text, values up to it), the last bound being `+Inf`."""
        return zip([*map(str, self.bounds), "+Inf"], accumulate(self.counts), strict=True)
