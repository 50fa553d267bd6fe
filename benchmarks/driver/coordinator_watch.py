"""Finds the ends of snapshots and recoveries in the coordinator's counters.

It reads the counters more often than the driver, which reads them once a second, and costs a little more. It is for
windows whose latency is shown over time.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from benchmarks.driver.counters import Scrape, fetch
from benchmarks.driver.probe import Mark

LOOK_SECONDS: Final = 0.1
SNAPSHOT: Final = "snapshot"
_SNAPSHOTS: Final = "styx_snapshots_total"
_SNAPSHOT_AGE: Final = "styx_snapshot_age_seconds"
_RECOVERIES: Final = "styx_recoveries_total{cause="


class CoordinatorEvents:
    """The events between two readings of the counters. Pure."""

    def __init__(self) -> None:
        self._before: Scrape | None = None

    def look(self, now: Scrape, at_s: float) -> list[Mark]:
        """Takes the counters of the time `at_s`. A snapshot's time follows from its age. A recovery ended just before
        `at_s`.
        """
        before, self._before = self._before, now
        if before is None:
            return []
        marks = []
        if now.get(_SNAPSHOTS, 0.0) > before.get(_SNAPSHOTS, 0.0):
            marks.append(Mark(at_s=at_s - now.get(_SNAPSHOT_AGE, 0.0), what=SNAPSHOT))
        for name, value in now.items():
            if name.startswith(_RECOVERIES) and value > before.get(name, 0.0):
                marks.append(Mark(at_s=at_s, what=recovered(name.removeprefix(_RECOVERIES).rstrip("}"))))
        return marks


def recovered(cause: str) -> str:
    """The mark at the end of a recovery, by its cause (docs/metrics.md)."""
    return f"recovered ({cause.replace('_', ' ')})"


async def watch(url: str, from_s: float, marks: list[Mark]) -> None:
    """Reads the counters at `url` until it is cancelled. Times of marks count from `from_s`."""
    events = CoordinatorEvents()
    while True:
        scrapes = await asyncio.to_thread(fetch, [url])
        if url in scrapes:
            marks += events.look(scrapes[url], time.monotonic() - from_s)
        await asyncio.sleep(LOOK_SECONDS)
