"""A target with two ways in: most requests go through Kafka, every n-th through the gateway. So the requests of one
session go both ways, and what came by one way is seen by the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.driver.target import Target, TargetFactory
from benchmarks.driver.workload import Planned
from styx.host.waiters import Receiver

THROUGH_GATEWAY: Final = 4
"""Every so many requests of a client."""


@dataclass(frozen=True)
class TwoWays:
    """A `TargetFactory`."""

    kafka: TargetFactory
    gateway: TargetFactory

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        return BothTargets(self.kafka(timeout_s, in_flight_max), self.gateway(timeout_s, in_flight_max))


class BothTargets:
    """A `Target` over two."""

    def __init__(self, kafka: Target, gateway: Target) -> None:
        self._kafka = kafka
        self._gateway = gateway
        self._count = 0

    async def connect(self) -> None:
        """See `Target.connect`."""
        await self._kafka.connect()
        await self._gateway.connect()

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """See `Target.submit`."""
        self._count += 1
        target = self._gateway if self._count % THROUGH_GATEWAY == 0 else self._kafka
        target.submit(planned, receiver)

    async def close(self) -> None:
        """See `Target.close`."""
        await self._kafka.close()
        await self._gateway.close()
