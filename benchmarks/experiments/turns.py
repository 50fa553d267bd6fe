"""The order in which things to be compared are measured: A B, B A, A B. Pure.

What drifts while an experiment lasts (a machine that gets slower, a log that grows) then weighs on both alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def turns(runs: int, each: Sequence[T]) -> Iterator[tuple[int, list[T]]]:
    """For each run, from 1 on, the order of its steps: as given, then the other way round, and so on."""
    for number in range(1, runs + 1):
        yield number, list(each) if number % 2 else list(reversed(each))
