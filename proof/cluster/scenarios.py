"""The faults of a cluster under test, each with its repair.

A fault ends when all processes run again. The audit checks the replies, and `proof.cluster.faults` measures how long no
reply came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterUnderTest
from proof.cluster.load import SteadyLoad
from proof.cluster.services import Service

FREEZE_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 10.0
UNREPLACED_SECONDS: Final = 5.0
"""How long a dead worker is not replaced."""
RECOVERING_SECONDS: Final = 0.2
"""The time from a worker's death to the middle of the recovery."""
STORE_AWAY_INTERVALS: Final = 2.5
"""How long the store is down, in snapshot intervals."""


@dataclass(frozen=True)
class Processes:
    """The processes that faults strike. `struck` is called at the moment from which a fault is timed."""

    cluster: ClusterUnderTest
    kafka: Service
    minio: Service
    rng: Random
    struck: Callable[[], None]

    def some_place(self) -> int:
        """The place of a random worker."""
        return self.rng.randrange(len(self.cluster.workers))

    async def kill_worker(self, place: int) -> None:
        """SIGKILL."""
        worker = self.cluster.workers[place]
        assert worker is not None
        self.cluster.workers[place] = None
        await worker.kill()

    async def kill_coordinator(self) -> None:
        """SIGKILL."""
        coordinator, self.cluster.coordinator = self.cluster.coordinator, None
        assert coordinator is not None
        await coordinator.kill()

    async def kill_gateway(self) -> None:
        """SIGKILL."""
        gateway, self.cluster.gateway = self.cluster.gateway, None
        assert gateway is not None
        await gateway.kill()

    async def drain_worker(self, place: int) -> None:
        """Sends SIGTERM, and waits for the end: other workers have the slots then."""
        worker, self.cluster.workers[place] = self.cluster.workers[place], None
        assert worker is not None
        await worker.stop()

    async def stop_coordinator(self) -> None:
        """Sends SIGTERM, and waits for the end: the coordinator has taken a last snapshot then."""
        coordinator, self.cluster.coordinator = self.cluster.coordinator, None
        assert coordinator is not None
        await coordinator.stop()

    async def kill_all_workers(self) -> None:
        """SIGKILL to all, one right after the other."""
        await asyncio.gather(*(self.kill_worker(place) for place in range(len(self.cluster.workers))))

    async def start_workers(self) -> None:
        """Starts the workers that are missing."""
        for place, worker in enumerate(self.cluster.workers):
            if worker is None:
                await self.cluster.start_worker(place)


@dataclass(frozen=True)
class Stage(Processes):
    """As `Processes`, with a load that a fault can pause."""

    load: SteadyLoad = field(kw_only=True)


async def _worker(stage: Processes) -> None:
    stage.struck()
    await stage.kill_worker(stage.some_place())
    await stage.start_workers()


async def _worker_unreplaced(stage: Processes) -> None:
    stage.struck()
    await stage.kill_worker(stage.some_place())
    await asyncio.sleep(UNREPLACED_SECONDS)
    await stage.start_workers()


async def _two_in_a_row(stage: Processes) -> None:
    first = stage.some_place()
    stage.struck()
    await stage.kill_worker(first)
    await stage.start_workers()
    await stage.kill_worker((first + 1) % len(stage.cluster.workers))
    await stage.start_workers()


async def _all_workers(stage: Processes) -> None:
    stage.struck()
    await stage.kill_all_workers()
    await stage.start_workers()


async def _coordinator(stage: Processes) -> None:
    stage.struck()
    await stage.kill_coordinator()
    await stage.cluster.start_coordinator()


async def _coordinator_and_worker(stage: Processes) -> None:
    stage.struck()
    await asyncio.gather(stage.kill_coordinator(), stage.kill_worker(stage.some_place()))
    await stage.cluster.start_coordinator()
    await stage.start_workers()


async def _worker_during_recovery(stage: Processes) -> None:
    first = stage.some_place()
    stage.struck()
    await stage.kill_worker(first)
    await stage.start_workers()
    await asyncio.sleep(RECOVERING_SECONDS)
    await stage.kill_worker((first + 1) % len(stage.cluster.workers))
    await stage.start_workers()


async def _same_address(stage: Processes) -> None:
    place = stage.some_place()
    stage.struck()
    await stage.kill_worker(place)
    await stage.cluster.start_worker(place, same_port=True)


async def _frozen_worker(stage: Processes) -> None:
    worker = stage.cluster.workers[stage.some_place()]
    assert worker is not None
    stage.struck()
    worker.freeze()
    await asyncio.sleep(FREEZE_SECONDS)
    worker.thaw()


async def _frozen_coordinator(stage: Processes) -> None:
    coordinator = stage.cluster.coordinator
    assert coordinator is not None
    stage.struck()
    coordinator.freeze()
    await asyncio.sleep(FREEZE_SECONDS)
    coordinator.thaw()


async def _gateway(stage: Processes) -> None:
    stage.struck()
    await stage.kill_gateway()
    await stage.cluster.start_gateway()


async def _kafka(stage: Processes) -> None:
    stage.struck()
    await asyncio.to_thread(stage.kafka.kill)
    await asyncio.to_thread(stage.kafka.start)


async def _store(stage: Processes) -> None:
    stage.struck()
    await asyncio.to_thread(stage.minio.kill)
    await asyncio.sleep(STORE_AWAY_INTERVALS * stage.cluster.options.snapshot_interval_s)
    await asyncio.to_thread(stage.minio.start)


async def _idle(stage: Stage) -> None:
    stage.load.pause()
    await asyncio.sleep(IDLE_SECONDS)
    await stage.kill_worker(stage.some_place())
    stage.struck()
    stage.load.start()
    await stage.start_workers()


async def _everything(stage: Processes) -> None:
    stage.struck()
    await asyncio.gather(
        stage.kill_coordinator(),
        stage.kill_all_workers(),
        stage.kill_gateway(),
        asyncio.to_thread(stage.kafka.kill),
        asyncio.to_thread(stage.minio.kill),
    )
    await asyncio.gather(asyncio.to_thread(stage.kafka.start), asyncio.to_thread(stage.minio.start))
    await stage.cluster.start_coordinator()
    await stage.start_workers()
    await stage.cluster.start_gateway()


async def _rolling_restart(stage: Processes) -> None:
    cluster = stage.cluster
    await cluster.settled()
    before = await cluster.replayed()
    stage.struck()
    for place in range(len(cluster.workers)):
        await stage.drain_worker(place)
        await cluster.start_worker(place)
        await cluster.settled()
    _replayed_none("rolling restart of the workers", await cluster.replayed() - before)
    await stage.stop_coordinator()
    await cluster.start_coordinator()
    await cluster.settled()
    _replayed_none("restart of the coordinator", await cluster.replayed())


async def _none_left(stage: Processes) -> None:
    cluster = stage.cluster
    await cluster.settled()
    before = await cluster.replayed()
    stage.struck()
    await asyncio.gather(*(stage.drain_worker(place) for place in range(len(cluster.workers))))
    await stage.start_workers()
    await cluster.settled()
    _replayed_none("stop of all workers at once", await cluster.replayed() - before)


def _replayed_none(what: str, epochs: int) -> None:
    if epochs:
        raise ChildFailed(f"the {what} made workers run {epochs} recorded epochs again")


EARLY: Final = "before-first-snapshot"
OF_PROCESSES: Final[dict[str, Callable[[Processes], Awaitable[None]]]] = {
    "worker": _worker,
    "worker-unreplaced": _worker_unreplaced,
    "two-in-a-row": _two_in_a_row,
    "all-workers": _all_workers,
    "coordinator": _coordinator,
    "coordinator-and-worker": _coordinator_and_worker,
    "worker-during-recovery": _worker_during_recovery,
    "same-address": _same_address,
    "frozen-worker": _frozen_worker,
    "frozen-coordinator": _frozen_coordinator,
    "gateway": _gateway,
    "kafka": _kafka,
    "store": _store,
    "everything": _everything,
    "rolling-restart": _rolling_restart,
    "none-left": _none_left,
}
"""Those that any load may go on through, by name."""
SCENARIOS: Final[dict[str, Callable[[Stage], Awaitable[None]]]] = {EARLY: _worker, **OF_PROCESSES, "idle": _idle}
"""The faults by name, in the order of a run. The first one strikes at once, before there is a snapshot."""
