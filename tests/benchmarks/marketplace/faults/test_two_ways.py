"""Requests go both ways in: most through Kafka, every fourth through the gateway."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from benchmarks.driver.styx_target import HttpTargets, KafkaTargets
from benchmarks.driver.workload import Planned
from benchmarks.marketplace.faults.two_ways import THROUGH_GATEWAY, BothTargets, TwoWays
from benchmarks.marketplace.services.cart.rows import cart

pytestmark = pytest.mark.anyio


class Way:
    """A target that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def connect(self) -> None:
        self.told.append("connect")

    def submit(self, planned: Planned, receiver: Any) -> None:
        self.told.append(planned.kind)

    async def close(self) -> None:
        self.told.append("close")


async def test_every_fourth_request_goes_through_the_gateway() -> None:
    kafka, gateway = Way(), Way()
    both = BothTargets(kafka, gateway)
    await both.connect()
    for number in range(1, 2 * THROUGH_GATEWAY + 1):
        both.submit(Planned(str(number), cart, 1, "seal", ()), Way())  # type: ignore[arg-type]  # nobody answers
    await both.close()
    assert gateway.told == ["connect", "4", "8", "close"]
    assert kafka.told == ["connect", "1", "2", "3", "5", "6", "7", "close"]


def test_client_processes_can_make_it() -> None:
    ways = TwoWays(KafkaTargets("kafka://127.0.0.1:1", "shop"), HttpTargets("http://127.0.0.1:1"))
    assert pickle.loads(pickle.dumps(ways)) == ways  # noqa: S301 - as the driver starts its processes
    assert isinstance(ways(5.0, 10), BothTargets)
