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
"""Between the beginnings of two epochs, for each other worker: so that an epoch's cost stays in proportion."""
INTERVAL_SECONDS_MAX: Final = 0.03
"""The same, however many workers there are: requests wait half of it, on average."""
EXPECTED_MIN: Final = 2.0
"""Requests that this worker expects in an interval; with fewer, holding them back would save next to nothing."""
RATE_SECONDS: Final = 0.5
"""Over about how long the rate of arrivals is averaged."""
TURN_SECONDS: Final = 0.003
"""So much longer all workers but the first wait, to be told to join instead of all beginning at once."""
FETCH_AHEAD_SECONDS: Final = 0.002
"""So long before an epoch its requests are fetched."""


class ArrivalGate:
    """One generation's. `deliver` gets requests by slot; `place` is the worker's among `members`."""

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
        """Requests were fetched, by slot."""
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
        """Hands on everything that is held: an epoch begins anyway."""
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
        """How long nothing more needs to be fetched; 0 if requests are not held back."""
        if not self._holds:
            return 0.0
        fetch_s, now_s = self._began_s + self._interval_s - FETCH_AHEAD_SECONDS, self._loop.time()
        if now_s < fetch_s:
            return fetch_s - now_s
        # This epoch's are here.
        return self._interval_s if now_s < fetch_s + FETCH_AHEAD_SECONDS else 0.0

    def stop(self) -> None:
        """Hands on nothing any more."""
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
