"""How many requests may be under way so that none waits for long: as many as were answered lately in a second.

A sender, which is a client of Kafka, a gateway or an embedded engine, counts what it is answered. A standing queue is
one in which even the quickest reply took long. Only then is there a bound: by Little's law, what is answered in
`QUEUE_SECONDS` waits for `QUEUE_SECONDS`. What is refused beyond it costs nobody anything, the rate stays the highest,
and the queue is empty so soon after the load ends. Each sender is bounded by its own share of the rate, so senders need
not know of each other. Pure: times are the caller's.
"""

from __future__ import annotations

import math
from typing import Final

QUEUE_SECONDS: Final = 1.0
"""How long a request may wait behind others. What functions themselves take comes on top."""
FEW: Final = 128
"""So many requests may always be under way."""
INTERVAL_SECONDS: Final = 0.25
"""How often the bound is looked at."""
INTERVALS: Final = 4
"""The highest rate of the last so many intervals counts, since a snapshot holds replies up."""
STALL_SECONDS: Final = QUEUE_SECONDS
"""A longer time without a reply, as in a recovery or without load, says nothing about the rate. In a shorter one no
more requests come than the bound lets in.
"""


class Backlog:
    """Feed `answered`; `bound` is the number of requests that may be under way."""

    def __init__(self) -> None:
        self.bound = math.inf
        self._began_s = -math.inf
        """When the open interval began, with a reply."""
        self._last_s = -math.inf
        self._count = 0
        self._quickest_s = math.inf
        self._alone = True
        """Few requests were under way in the whole interval."""
        self._alone_s = 0.0
        """How long a reply took lately at the least while few requests were under way."""
        self._rates: list[float] = []

    def answered(self, now_s: float, count: int, quickest_s: float, in_flight: int) -> None:
        """So many replies came just now, the quickest after `quickest_s`; `in_flight` requests are still under way."""
        if in_flight > FEW:
            self._alone = False
        else:
            self.bound = math.inf
        stalled, self._last_s = now_s - self._last_s > STALL_SECONDS, now_s
        if stalled:
            self._begin(now_s, in_flight)
            return
        self._count += count
        self._quickest_s = min(self._quickest_s, quickest_s)
        if now_s - self._began_s >= INTERVAL_SECONDS:
            self._look(now_s, in_flight)

    def _look(self, now_s: float, in_flight: int) -> None:
        self._rates = [*self._rates[1 - INTERVALS :], self._count / (now_s - self._began_s)]
        if self._alone:
            self._alone_s = self._quickest_s
        if in_flight > FEW and self._quickest_s - self._alone_s > QUEUE_SECONDS / 2:
            self.bound = max(float(FEW), max(self._rates) * (QUEUE_SECONDS + self._alone_s))
        else:
            self.bound = math.inf
        self._begin(now_s, in_flight)

    def _begin(self, now_s: float, in_flight: int) -> None:
        self._began_s, self._count, self._quickest_s = now_s, 0, math.inf
        self._alone = in_flight <= FEW
