"""The Zipf distribution over ranks, exact for any number of ranks, without a table and without set-up time.

Rejection-inversion: W. Hörmann and G. Derflinger, *Rejection-inversion to generate variates from monotone discrete
distributions*, ACM TOMACS 6(3), 1996 (doi 10.1145/235025.235029). The closed form that YCSB took from Gray et al.
is an approximation and needs a sum over all ranks first. Rank 0 is the most popular.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import exp, expm1, log, log1p
from typing import Final

EXPONENT_MAX: Final = 0.999
"""The largest exponent of workloads that follow YCSB, which knows none of 1 and more."""
STEEPEST: Final = 3.0
"""The largest exponent that is drawn: half of all draws are the first rank by far."""
_NEARLY_NOTHING: Final = 1e-12
"""Instead of a divisor of 0. At an exponent of 1 the integral is a logarithm, from which it differs less than this."""


def zipf_ranks(n: int, exponent: float, rng: random.Random) -> Callable[[], int]:
    """A function that draws a rank from 0 to `n` - 1, rank r with a probability proportional to (r + 1) ** -exponent.

    `exponent` is from 0, which is uniform, to `STEEPEST`.
    """
    uniform = rng.random
    if exponent == 0:
        return lambda: int(uniform() * n)
    rest = (1 - exponent) or _NEARLY_NOTHING

    def area(x: float) -> float:
        """The integral of t ** -exponent from 1 to x."""
        return expm1(rest * log(x)) / rest

    def height(x: float) -> float:
        return exp(-exponent * log(x))

    def at_area(u: float) -> float:
        return exp(log1p(rest * u) / rest)

    first = area(1.5) - 1  # the area of rank 0 is its full height, not the area from 0.5 to 1.5
    span = area(n + 0.5) - first
    surely = 2 - at_area(area(2.5) - height(2))

    def draw() -> int:
        while True:
            u = first + uniform() * span
            x = exp(log1p(rest * u) / rest)
            k = int(x + 0.5)
            if k < 1:
                k = 1
            elif k > n:
                k = n
            if k - x <= surely or u >= area(k + 0.5) - height(k):
                return k - 1

    return draw
