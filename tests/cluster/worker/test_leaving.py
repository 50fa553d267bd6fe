"""A worker process that is told to end waits until others have its slots, and never for a coordinator that is gone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.cluster.worker.node import Departure
from styx.cluster.worker.process import WorkerProcess

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Process:
    """With a registration, whose end is `_over`."""

    def __init__(self) -> None:
        self.node = SimpleNamespace(departure=Departure())
        self.session: Any = self
        self._over = asyncio.get_running_loop().create_future()
        self.asked = 0

    def leave(self) -> None:
        self.asked += 1

    def leaves(self, seconds_max: float = 60.0) -> asyncio.Task[str]:
        return asyncio.create_task(WorkerProcess.leave(cast(Any, self), seconds_max))


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_it_waits_until_it_is_let_go() -> None:
    process = Process()
    leaving = process.leaves()
    await turns()
    assert process.asked == 1
    assert process.node.departure.leaving
    assert not leaving.done()
    process.node.departure.let_go()
    assert await leaving == "others have its slots"


async def test_without_a_registration_it_ends_at_once() -> None:
    process = Process()
    process.session = None
    assert await process.leaves() == "no coordinator counts on it: it has nothing to hand over"
    assert process.asked == 0


async def test_a_coordinator_that_is_gone_is_not_waited_for() -> None:
    process = Process()
    leaving = process.leaves()
    await turns()
    process._over.set_result("closed by the peer")
    assert (await leaving).startswith("the coordinator is away: closed by the peer")


async def test_its_patience_ends() -> None:
    process = Process()
    assert await process.leaves(0.0) == "still there after 0 s; what it has not stored is replayed from the log"
