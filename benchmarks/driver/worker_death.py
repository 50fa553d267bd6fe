"""A worker's death in the middle of a run: killed without a word, replaced later, and what clients saw of that.

The load goes on meanwhile, and nobody tells the other processes: they have to find out. Never judges the replies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from benchmarks.driver.coordinator_watch import recovered, watch
from benchmarks.driver.interruption import interruption, normal_p99_us
from benchmarks.driver.probe import Mark
from benchmarks.driver.timeline import Point

KILLED: Final = "worker killed"
REPLACED: Final = "replacement started"
TOOK_OVER: Final = recovered("planned")
"""The replacement, once it is there, gets its share of the slots by a recovery that is planned."""
REPLACE_AFTER_SECONDS_DEFAULT: Final = 2.0
INTERVAL_SECONDS: Final = 0.1
"""The resolution of the time line if none is asked for: how exactly a pause is known."""
PATIENCE_SECONDS: Final = 120.0
"""How long replies are waited for if nothing else is asked for: requests under way are answered after the recovery."""


class Workers(Protocol):
    """Worker processes, each with its place from 0 on."""

    async def kill_worker(self, place: int) -> None:
        """SIGKILL; returns when it is gone."""

    async def start_worker(self, place: int) -> None:
        """A new one in a place that is free; returns before it serves. Raises `ChildFailed`."""


class WorkerDeath(NamedTuple):
    """What is to happen, and when: seconds after the window's start."""

    place: int
    killed_s: float
    replaced_s: float


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of it; times in seconds after the window's start, latencies in microseconds.

    `joined_s`: when the new worker had been given its slots by a recovery of its own; None where it had none: it came
    too late, or took part in the recovery from the death. `pause_s` is the longest time without replies, as exact as
    the time line's intervals are short; `back_s` how long after the death p99 was as before for good, `normal_us` that
    p99. None: that never came.
    """

    killed_s: float
    replaced_s: float | None
    joined_s: float | None
    pause_s: float | None
    worst_us: int
    back_s: float | None
    normal_us: float


async def kill_and_replace(
    workers: Workers, coordinator_url: str, death: WorkerDeath, from_s: float, marks: list[Mark]
) -> None:
    """Company for a run. Never ends by itself: it goes on watching the coordinator."""

    def mark(what: str) -> None:
        marks.append(Mark(at_s=time.monotonic() - from_s, what=what))

    watching = asyncio.create_task(watch(coordinator_url, from_s, marks))
    try:
        await _sleep_until(from_s + death.killed_s)
        mark(KILLED)
        await workers.kill_worker(death.place)
        await _sleep_until(from_s + death.replaced_s)
        mark(REPLACED)
        await workers.start_worker(death.place)
        await watching
    finally:
        watching.cancel()


def death_of(points: Sequence[Point], marks: Sequence[Mark], interval_s: float) -> Death | None:
    """None if nobody was killed."""
    at = {mark.what: mark.at_s for mark in reversed(marks)}
    killed_s = at.get(KILLED)
    if killed_s is None:
        return None
    normal_us = normal_p99_us(points, killed_s)
    seen = interruption(points, interval_s, killed_s, float("inf"), normal_us)
    return Death(
        killed_s=killed_s,
        replaced_s=at.get(REPLACED),
        joined_s=at.get(TOOK_OVER),
        pause_s=seen.pause_s,
        worst_us=seen.worst_us,
        back_s=seen.back_s,
        normal_us=normal_us,
    )


async def _sleep_until(at_s: float) -> None:
    await asyncio.sleep(max(at_s - time.monotonic(), 0))
