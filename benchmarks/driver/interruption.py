"""An interruption at a known time as clients saw it: how long no reply came, and when latencies were as before. Pure.
It uses the time line of a run, so it is as exact as the intervals are short.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from benchmarks.driver.timeline import Point

NORMAL_TIMES: Final = 2.0
"""An interval is as before if its p99 is at most this many times the median p99 before the interruption."""
NORMAL_INTERVALS: Final = 5
"""Latencies are as before after this many such intervals in a row."""


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """`pause_s` is the longest time without replies, `worst_us` the longest latency, and `back_s` the time until
    latencies were as before. None means that it did not come within the observed time.
    """

    pause_s: float | None
    worst_us: int
    back_s: float | None


def interruption(
    points: Sequence[Point], interval_s: float, from_s: float, until_s: float, normal_us: float
) -> Interruption:
    """The interruption between two times of the window. `normal_us` is the p99 before it."""
    answered = [point for point in points if point.max_us]
    before = [point for point in answered if point.at_s <= from_s][-1:]
    within = [point for point in answered if from_s < point.at_s < until_s]
    gaps = [(after.at_s - one.at_s - interval_s, after.at_s) for one, after in pairwise([*before, *within])]
    if not gaps:
        return Interruption(pause_s=None, worst_us=0, back_s=None)
    pause_s, again_s = max(gaps)
    normal_s = _normal_from(within, again_s if pause_s > interval_s / 2 else from_s, normal_us)
    return Interruption(
        pause_s=max(round(pause_s, 6), 0.0),
        worst_us=max(point.max_us for point in within),
        back_s=None if normal_s is None else max(normal_s - from_s, 0.0),
    )


def normal_p99_us(points: Sequence[Point], until_s: float) -> float:
    """The median p99 of the window's intervals before; 0 if there are none."""
    return statistics.median([point.p99_us for point in points if 0 <= point.at_s < until_s and point.max_us] or [0])


def _normal_from(points: Sequence[Point], from_s: float, normal_us: float) -> float | None:
    later = [point for point in points if point.at_s >= from_s]
    normal = [point.p99_us <= NORMAL_TIMES * normal_us for point in later]
    for first in range(len(later) - NORMAL_INTERVALS + 1):
        if all(normal[first : first + NORMAL_INTERVALS]):
            return later[first].at_s
    return None
