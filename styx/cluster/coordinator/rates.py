"""A cluster's rates: epochs and transactions a second, over the last few seconds. Pure: the caller gives the time."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

SAMPLE_SECONDS: Final = 0.5
WINDOW_SAMPLES: Final = 10
"""So many samples back the rates reach."""


class _Sample(NamedTuple):
    at_s: float
    epoch: int
    ended: int


class Rates:
    """`sample` is called often; most calls cost a comparison."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=WINDOW_SAMPLES + 1)

    def sample(self, now_s: float, epoch: int, ended: int) -> None:
        """The counts at this time; neither of them ever goes back."""
        if not self._samples or now_s - self._samples[-1].at_s >= SAMPLE_SECONDS:
            self._samples.append(_Sample(now_s, epoch, ended))

    def per_second(self) -> tuple[float, float]:
        """Epochs and transactions."""
        if len(self._samples) < 2:
            return 0.0, 0.0
        first, last = self._samples[0], self._samples[-1]
        seconds = last.at_s - first.at_s
        # A recovery begins from an older epoch and replays from there.
        return max(0, last.epoch - first.epoch) / seconds, (last.ended - first.ended) / seconds
