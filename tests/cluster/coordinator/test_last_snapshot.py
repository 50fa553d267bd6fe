"""The snapshot of an orderly stop: one that was under way is enough only if it has everything."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.cluster.coordinator.process import CoordinatorProcess

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Process:
    """With a snapshot of some epoch under way; `wanted` is how often another one was asked for."""

    def __init__(self, epoch: int) -> None:
        ledger = SimpleNamespace(stored_epoch=-1)
        members = SimpleNamespace(members={1})
        self.core = SimpleNamespace(snapshots_completed=3, epoch=epoch, live=True, ledger=ledger, membership=members)
        self.session = self
        self.wanted = 0

    def want_snapshot(self) -> None:
        self.wanted += 1

    def complete(self, epoch: int) -> None:
        self.core.snapshots_completed += 1
        self.core.ledger.stored_epoch = epoch

    def last_snapshot(self) -> asyncio.Task[bool]:
        return asyncio.create_task(CoordinatorProcess.last_snapshot(cast(Any, self)))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr("styx.cluster.coordinator.process.asyncio.sleep", lambda _: sleep(0))


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_one_that_has_everything_is_enough() -> None:
    process = Process(epoch=9)
    taken = process.last_snapshot()
    await turns()
    assert process.wanted == 1
    assert not taken.done()
    process.complete(9)
    assert await taken


async def test_an_earlier_one_is_not() -> None:
    process = Process(epoch=9)
    taken = process.last_snapshot()
    await turns()
    process.complete(8)
    await turns()
    assert not taken.done()
    process.complete(10)
    assert await taken


async def test_without_a_generation_there_is_none() -> None:
    process = Process(epoch=9)
    taken = process.last_snapshot()
    await turns()
    process.core.live = False
    assert not await taken
