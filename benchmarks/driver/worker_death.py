"""A worker's death in the middle of a run: SIGKILL, a later replacement, and the effect on clients.

The load goes on meanwhile. The other processes must notice the death themselves.
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
"""The cause of the recovery in which the replacement gets its share of the slots."""
REPLACE_AFTER_SECONDS_DEFAULT: Final = 2.0
INTERVAL_SECONDS: Final = 0.1
"""The default resolution of the time line, and so of the pause."""
PATIENCE_SECONDS: Final = 120.0
"""The default time to wait for replies: requests under way are answered after the recovery."""


class Workers(Protocol):
    """Worker processes, each with its place from 0 on."""

    async def kill_worker(self, place: int) -> None:
        """Sends SIGKILL to the worker, and returns when the process has ended."""

    async def start_worker(self, place: int) -> None:
        """Starts a new worker in a free place, and returns before it serves. Raises `ChildFailed`."""


class WorkerDeath(NamedTuple):
    """The plan; times are seconds after the window's start."""

    place: int
    killed_s: float
    replaced_s: float


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of the death. Times are seconds after the window's start, latencies microseconds. `joined_s` is the
    end of the planned recovery that gave the new worker its slots. It is None if there was none: the worker came too
    late, or took part in the recovery from the death. `pause_s` is the longest time without replies, as exact as the
    intervals of the time line. `back_s` is the time from the death until p99 was as before and stayed so, or None.
    `normal_us` is that p99.
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
    """Company for a run. It watches the coordinator until it is cancelled."""

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
    """The effect; None if no worker was killed."""
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
