"""The target of a client process for several clusters. It passes each request to the target of its cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.driver.target import Target, TargetFactory
from benchmarks.driver.workload import Planned
from benchmarks.experiments.spread.operators import operators
from styx.host.waiters import Receiver


class SpreadTarget:
    """A `Target`; `each` are the clusters', in their order."""

    def __init__(self, each: Sequence[Target]) -> None:
        self._of = dict(zip(operators(len(each)), each, strict=True))

    async def connect(self) -> None:
        """See `Target.connect`."""
        await asyncio.gather(*(target.connect() for target in self._of.values()))

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """See `Target.submit`."""
        self._of[planned.operator].submit(planned, receiver)

    async def close(self) -> None:
        """See `Target.close`."""
        await asyncio.gather(*(target.close() for target in self._of.values()))


@dataclass(frozen=True)
class SpreadTargets:
    """A `TargetFactory`; `each` may have as many requests under way as all of them together, so that none refuses."""

    each: tuple[TargetFactory, ...]

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        return SpreadTarget([make(timeout_s, in_flight_max) for make in self.each])
