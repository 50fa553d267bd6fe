"""Lets requests wait for each other before they begin an epoch: group commit, for clusters of several workers.

An epoch costs every worker a frame to each of the others, a record and two messages to the coordinator, whatever its
size. So under load the next epoch begins only some time after the last one; the more workers there are, the longer that
time. Single requests do not wait. Fetched requests are only held back, never dropped or reordered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from styx.log.base import Arrival

INTERVAL_SECONDS_PER_PEER: Final = 0.004
"""Between the beginnings of two epochs, for each other worker, because an epoch's cost grows with their number."""
INTERVAL_SECONDS_MAX: Final = 0.03
"""The same for any number of workers. On average a request waits half of it."""
EXPECTED_MIN: Final = 2.0
"""Requests are held back only if this worker expects at least this number of them in an interval."""
RATE_SECONDS: Final = 0.5
"""The rate of arrivals is averaged over about this time."""
TURN_SECONDS: Final = 0.003
"""All workers but the first wait this much longer, so that they join its epoch instead of beginning one each."""
FETCH_AHEAD_SECONDS: Final = 0.002
"""The time between the fetch of an epoch's requests and the epoch's beginning."""


class ArrivalGate:
    """The gate of one generation. `deliver` gets requests by slot. `place` is the worker's place among `members`."""

    def __init__(self, place: int, members: int, deliver: Callable[[dict[int, list[Arrival]]], None]) -> None:
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._interval_s = min(INTERVAL_SECONDS_MAX, INTERVAL_SECONDS_PER_PEER * (members - 1))
        self._turn_s = TURN_SECONDS if place else 0.0
        self._held: dict[int, list[Arrival]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._began_s = -RATE_SECONDS
        self._arrived = 0
        self._rate = 0.0

    @property
    def _holds(self) -> bool:
        return self._rate * self._interval_s >= EXPECTED_MIN

    def arrive(self, fetched: dict[int, list[Arrival]]) -> None:
        """Takes fetched requests by slot, and holds them back or delivers them."""
        for slot, arrivals in fetched.items():
            self._arrived += len(arrivals)
            self._held.setdefault(slot, []).extend(arrivals)
        if self._timer is not None:
            return
        opens_s = self._began_s + self._interval_s + self._turn_s
        if self._holds and self._loop.time() < opens_s:
            self._timer = self._loop.call_at(opens_s, self.open)
        else:
            self.open()

    def open(self) -> None:
        """Delivers all requests that are held back, because an epoch begins anyway."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held:
            held, self._held = self._held, {}
            self._deliver(held)

    def epoch_began(self) -> None:
        """The worker has begun an epoch."""
        now_s = self._loop.time()
        passed_s = now_s - self._began_s
        if passed_s > 0:
            self._rate += (self._arrived / passed_s - self._rate) * min(1.0, passed_s / RATE_SECONDS)
            self._began_s, self._arrived = now_s, 0

    def fetch_pause_s(self) -> float:
        """How long no further request needs to be fetched, in seconds; 0 if requests are not held back."""
        if not self._holds:
            return 0.0
        fetch_s, now_s = self._began_s + self._interval_s - FETCH_AHEAD_SECONDS, self._loop.time()
        if now_s < fetch_s:
            return fetch_s - now_s
        # The requests of this epoch have been fetched.
        return self._interval_s if now_s < fetch_s + FETCH_AHEAD_SECONDS else 0.0

    def stop(self) -> None:
        """Delivers no further request."""
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
