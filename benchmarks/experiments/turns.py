"""The order of measurements to compare: A B, B A, A B. Pure. A drift during the experiment, such as a slower machine or
a growing log, then affects both equally.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def turns(runs: int, each: Sequence[T]) -> Iterator[tuple[int, list[T]]]:
    """For each run, from 1 on, the order of its steps: as given, then the other way round, and so on."""
    for number in range(1, runs + 1):
        yield number, list(each) if number % 2 else list(reversed(each))
