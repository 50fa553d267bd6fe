"""Strikes a cluster and its provider while a load goes on: one fault in each period, healed before the next. It never
touches the load.

The faults of the cluster and its servers are those of `proof.cluster`; only those of the provider are here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple

from benchmarks.marketplace.faults.kinds import Drawn
from benchmarks.marketplace.provider.own import OwnProvider
from proof.cluster.scenarios import OF_PROCESSES
from proof.cluster.timed_faults import OF_SERVERS, OnServers

LATEST_SHARE: Final = 0.2
"""A fault begins within this first part of its period, so that the rest is for healing."""
PROVIDER_AWAY_SECONDS: Final = 5.0
SLOW_MS: Final = 2_500.0
"""More than a payment waits for an answer: the provider decides, and nobody hears it."""


class Struck(NamedTuple):
    """A fault that has struck. `at_s` is when (`time.monotonic`), `healed_s` how many seconds later all processes were
    back, all workers shared the slots, and the gateway was ready.
    """

    kind: str
    fault: str
    at_s: float
    healed_s: float


async def _killed(provider: OwnProvider) -> None:
    await asyncio.to_thread(provider.kill)
    await asyncio.sleep(PROVIDER_AWAY_SECONDS)
    await asyncio.to_thread(provider.start)


async def _down(provider: OwnProvider) -> None:
    await asyncio.to_thread(provider.behave, down=True)
    await asyncio.sleep(PROVIDER_AWAY_SECONDS)
    await asyncio.to_thread(provider.behave)


async def _slow(provider: OwnProvider) -> None:
    await asyncio.to_thread(provider.behave, delay_ms=SLOW_MS)
    await asyncio.sleep(PROVIDER_AWAY_SECONDS)
    await asyncio.to_thread(provider.behave)


OF_PROVIDER: Final[dict[str, Callable[[OwnProvider], Awaitable[None]]]] = {
    "provider-killed": _killed,
    "provider-down": _down,
    "provider-slow": _slow,
}
"""By name."""


class Striker:
    """Strikes with `faults`, in the order in which they come. `healed` is called when a fault has healed."""

    def __init__(
        self,
        processes: OnServers,
        provider: OwnProvider,
        faults: Iterator[Drawn],
        healed: Callable[[Struck], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.struck: list[Struck] = []
        self._processes = processes
        self._provider = provider
        self._faults = faults
        self._healed = healed
        self._clock = clock

    async def run(self, from_s: float, until_s: float, every_s: float) -> None:
        """One fault in each whole period between two times of the clock; in none that the fault before it has
        used up. It returns when the last one has healed. Raises `ChildFailed` if a process ends by itself, or does not
        come back.
        """
        for period in range(int((until_s - from_s) / every_s + 1e-9)):
            begin_s = from_s + period * every_s
            if self._clock() > begin_s + every_s:
                continue
            share = self._processes.rng.uniform(0, LATEST_SHARE)
            await asyncio.sleep(max(begin_s + share * every_s - self._clock(), 0))
            struck = await self._strike(next(self._faults))
            self.struck.append(struck)
            await self._healed(struck)

    async def _strike(self, drawn: Drawn) -> Struck:
        processes, fault = self._processes, drawn.fault
        at_s = self._clock()
        if fault in OF_PROVIDER:
            await OF_PROVIDER[fault](self._provider)
        elif fault in OF_SERVERS:
            await OF_SERVERS[fault](processes)
        else:
            await OF_PROCESSES[fault](processes)
        await processes.cluster.settled()
        await processes.cluster.ready()
        processes.cluster.check()
        return Struck(drawn.kind, fault, at_s, self._clock() - at_s)
