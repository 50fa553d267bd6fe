"""The faults that a cluster goes through while its clients are recorded. Each is mended at its end.

The judge needs few of them, and short ones; `proof.cluster.scenarios` has more, for the audit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from proof.cluster.cluster import ClusterUnderTest
from proof.cluster.services import Service

STOPPED_SECONDS: Final = 3.0
"""How long a worker stands still: longer than the silence after which it is given up."""

Fault = Callable[[ClusterUnderTest, Service, Random], Awaitable[None]]
"""Is given the cluster, its broker, and what chooses the victim."""


async def _worker(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    place = rng.randrange(len(cluster.workers))
    worker, cluster.workers[place] = cluster.workers[place], None
    assert worker is not None
    await worker.kill()
    await cluster.start_worker(place)


async def _coordinator(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    coordinator, cluster.coordinator = cluster.coordinator, None
    assert coordinator is not None
    await coordinator.kill()
    await cluster.start_coordinator()


async def _stop(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    worker = rng.choice(cluster.workers)
    assert worker is not None
    worker.freeze()
    await asyncio.sleep(STOPPED_SECONDS)
    worker.thaw()


async def _kafka(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    await asyncio.to_thread(kafka.kill)
    await asyncio.to_thread(kafka.start)


FAULTS: Final[dict[str, Fault]] = {"worker": _worker, "coordinator": _coordinator, "stop": _stop, "kafka": _kafka}
"""SIGKILL, but for `stop`, which is SIGSTOP and SIGCONT of a worker."""
