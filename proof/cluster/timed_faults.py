"""The faults of a run of events and time: those of `proof.cluster.scenarios`, servers that stop or stand still, and
clocks that are set forward and back by an hour.

A fault ends when all processes run again. What a clock has done stays done: an engine's time does not go back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

from proof.cluster.scenarios import EARLY, FREEZE_SECONDS, SCENARIOS, STORE_AWAY_INTERVALS, Processes, Stage
from proof.cluster.services import Server
from proof.cluster.skewed_worker import set_clocks

HOUR: Final = timedelta(hours=1)
WRONG_SECONDS: Final = 8.0
"""How long clocks are wrong; at least one look of an alarm that sleeps may fall into it or not."""
SERVER_FROZEN_SECONDS: Final = 4.0
PLANNED: Final = ("rolling-restart", "none-left")
"""They ask that nothing is replayed, which a busy machine cannot promise."""


class Clocks:
    """The clocks of all workers in a directory, which run as `proof.cluster.skewed_worker`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._base = timedelta(0)
        self._wrong = timedelta(0)

    @property
    def ahead_us(self) -> int:
        """By how much they are ahead of this process's clock, in microseconds."""
        return (self._base + self._wrong) // timedelta(microseconds=1)

    def set(self, wrong: timedelta) -> None:
        """Sets them forward, back, or (0) right again."""
        self._wrong = wrong
        set_clocks(self._directory, self._base + wrong)

    def move_on(self, by: timedelta) -> None:
        """Time goes on by so much, for good."""
        self._base += by
        self.set(self._wrong)


@dataclass(frozen=True)
class OnServers(Processes):
    """As `Processes`, with servers that can stop and stand still."""

    kafka: Server
    minio: Server


@dataclass(frozen=True)
class TimedStage(OnServers, Stage):
    """As `Stage`, with such servers, and with clocks."""

    clocks: Clocks = field(kw_only=True)


async def _clocks_forward(stage: TimedStage) -> None:
    """By an hour, and back again."""
    stage.struck()
    stage.clocks.set(HOUR)
    await asyncio.sleep(WRONG_SECONDS)
    stage.clocks.set(timedelta(0))


async def _clocks_back(stage: TimedStage) -> None:
    """By an hour: timers wait until the clocks are right again."""
    stage.struck()
    stage.clocks.set(-HOUR)
    await asyncio.sleep(WRONG_SECONDS)
    stage.clocks.set(timedelta(0))


async def _clocks_while_workers_die(stage: TimedStage) -> None:
    """Workers that begin with a clock that is an hour behind that of the workers before them."""
    stage.struck()
    stage.clocks.set(HOUR)
    await asyncio.sleep(WRONG_SECONDS)
    await stage.kill_all_workers()
    stage.clocks.set(timedelta(0))
    await stage.start_workers()


async def _kafka_stops(stage: OnServers) -> None:
    stage.struck()
    await asyncio.to_thread(stage.kafka.stop)
    await asyncio.to_thread(stage.kafka.start)


async def _kafka_frozen(stage: OnServers) -> None:
    stage.struck()
    stage.kafka.freeze()
    await asyncio.sleep(SERVER_FROZEN_SECONDS)
    stage.kafka.thaw()


async def _store_frozen(stage: OnServers) -> None:
    stage.struck()
    stage.minio.freeze()
    await asyncio.sleep(STORE_AWAY_INTERVALS * stage.cluster.options.snapshot_interval_s)
    stage.minio.thaw()


async def _gateway_frozen(stage: OnServers) -> None:
    gateway = stage.cluster.gateway
    assert gateway is not None
    stage.struck()
    gateway.freeze()
    await asyncio.sleep(FREEZE_SECONDS / 2)
    gateway.thaw()


OF_SERVERS: Final[dict[str, Callable[[OnServers], Awaitable[None]]]] = {
    "kafka-stops": _kafka_stops,
    "kafka-frozen": _kafka_frozen,
    "store-frozen": _store_frozen,
    "gateway-frozen": _gateway_frozen,
}
"""Servers that stop in order, and processes that stand still, by name."""
FAULTS: Final[dict[str, Callable[[TimedStage], Awaitable[None]]]] = {
    **{name: fault for name, fault in SCENARIOS.items() if name not in PLANNED},
    **OF_SERVERS,
    "clocks-forward": _clocks_forward,
    "clocks-back": _clocks_back,
    "clocks-while-workers-die": _clocks_while_workers_die,
}
"""By name."""


def endless(rng: Random) -> Iterator[str]:
    """All faults in random order, again and again; the early one comes first, and only once."""
    yield EARLY
    names = [name for name in FAULTS if name != EARLY]
    while True:
        yield from rng.sample(names, len(names))
