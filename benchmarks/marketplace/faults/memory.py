"""The memory of processes over a run: how much it is, how fast it grows, and whether it is flat. Pure.

The first third of a run is warm-up. A role is *flat* if the median of the last third is at most a tenth above that of
the middle third. Workers keep the rows of all orders for good, so theirs may also grow as the stored state does. A
worker that has had the slots of others keeps the memory when it gives them back, because Python seldom returns what it
has freed in pieces. So once workers were struck, each of them may grow as the whole state does.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from benchmarks.driver.accounting import Sample

FLAT: Final = 1.1
"""The last third's median is at most so many times the middle third's."""
ENTRY_BYTES: Final = 440
"""What a worker needs for an entry of its state beside the entry's encoded bytes: 280, and 160 for an index (docs/
performance.md, "Many rows")."""
JUDGED: Final = ("worker", "coordinator", "gateway")
"""The roles that are the engine's. The others are only told: a provider keeps its book, a client its record, and broker
and store are not ours."""
STATEFUL: Final = "worker"
JUDGED_MINUTES_MIN: Final = 10.0
"""A shorter run is warm-up from beginning to end."""
HOUR_S: Final = 3_600.0


class Stock(NamedTuple):
    """The size of the state at one time, in seconds from the run's start: entries of entities, rows and views, and
    their encoded bytes.
    """

    at_s: float
    entries: int
    encoded: int


class Growth(NamedTuple):
    """The memory of one role, all its processes together, in bytes: medians of the middle and last third, the slope in
    bytes an hour behind the first third, and how much of the growth between the thirds the state explains.
    """

    role: str
    middle: float
    last: float
    slope: float
    explained: float = 0.0

    @property
    def flat(self) -> bool:
        """Whether it grows by no more than a tenth, and what the state explains."""
        return self.last <= self.middle * FLAT + self.explained


def growth(samples: Sequence[Sample], stocks: Sequence[Stock], copies: int = 1) -> list[Growth]:
    """Of each role that has samples in both thirds. Times of `stocks` are from the first sample on. `copies`: in how
    many workers the whole state may have been.
    """
    if not samples:
        return []
    begin_s, length_s = samples[0].at_s, samples[-1].at_s - samples[0].at_s
    found = []
    for role in sorted({role for each in samples for role in each.roles}):
        points = [
            (each.at_s - begin_s, float(sum(usage.rss_bytes for usage in each.roles[role].values())))
            for each in samples
            if each.roles.get(role)
        ]
        middle = [size for at_s, size in points if length_s / 3 <= at_s < length_s * 2 / 3]
        last = [size for at_s, size in points if at_s >= length_s * 2 / 3]
        if not middle or not last:
            continue
        later = [point for point in points if point[0] >= length_s / 3]
        explained = copies * explained_bytes(stocks) * length_s / 3 if role == STATEFUL else 0.0
        found.append(Growth(role, statistics.median(middle), statistics.median(last), slope(later) * HOUR_S, explained))
    return found


def explained_bytes(stocks: Sequence[Stock]) -> float:
    """How many bytes a second the state takes more, in the memory of workers."""
    return slope([(each.at_s, each.entries * ENTRY_BYTES + each.encoded) for each in stocks])


def slope(points: Iterable[tuple[float, float]]) -> float:
    """Of the line with the least squares; 0 if there are fewer than two times."""
    those = list(points)
    if len({at_s for at_s, _ in those}) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*those, strict=True)).slope
