"""The spans of a worker's epochs: each instant of an epoch belongs to one span, so the spans add up to the epoch.

The clock is read once for each change of span.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from styx.metrics.histogram import STEP_SECONDS, Histogram


class Span(IntEnum):
    """The parts of an epoch on one worker, in order."""

    SEQUENCING = 0
    """The batch is formed and its record encoded."""
    EXECUTION = 1
    """Until all own transactions have been run, on other workers too."""
    BARRIER_1 = 2
    """Until all workers are done; functions that others call run meanwhile."""
    VALIDATION = 3
    """Conflicts are found."""
    RECORD = 4
    """Nothing to do until the own epoch record is durable."""
    BARRIER_2 = 5
    """Until all workers have found theirs."""
    COMMIT = 6
    """Writes are applied, outcomes decided."""
    LOCK_PHASE = 7
    """Rounds, and waiting for their decisions."""
    REPLIES = 8
    """Replies are encoded and handed to the log's appender."""


_SPANS: Final = len(Span)


class EpochSpans:
    """`clock` gives seconds. Replies leave when the next epoch has begun already: an epoch counts with `flush`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.by_span = [Histogram(STEP_SECONDS) for _ in Span]
        self.whole = Histogram(STEP_SECONDS)
        self.span: Span | None = None
        self._clock = clock
        self._since_s = 0.0
        self._spent = [0.0] * _SPANS
        self._ended: list[float] | None = None

    def begin(self) -> None:
        """An epoch begins with its first span."""
        self.span = Span.SEQUENCING
        self._since_s = self._clock()

    def enter(self, span: Span) -> None:
        """The open epoch goes on with another span; without one, nothing happens."""
        if self.span is not None:
            now_s = self._clock()
            self._spent[self.span] += now_s - self._since_s
            self.span, self._since_s = span, now_s

    def end(self) -> None:
        """The open epoch closes."""
        if self.span is not None:
            self.enter(self.span)
            self.span = None
            self._ended, self._spent = self._spent, [0.0] * _SPANS

    def replied(self, seconds: float) -> None:
        """So long it took just now to give replies: those of the epoch that has ended, else early ones."""
        (self._spent if self._ended is None else self._ended)[Span.REPLIES] += seconds
        self._since_s += seconds

    def flush(self) -> float | None:
        """Counts the epoch that has ended, if there is one; returns how long it took, in seconds."""
        ended, self._ended = self._ended, None
        if ended is None:
            return None
        for histogram, seconds in zip(self.by_span, ended, strict=True):
            histogram.observe(seconds)
        whole_s = sum(ended)
        self.whole.observe(whole_s)
        return whole_s

    def abandon(self) -> None:
        """The generation is over: its open epoch counts for nothing."""
        self.span = self._ended = None
        self._spent = [0.0] * _SPANS
