"""The snapshot of an orderly stop: it is waited for until nothing runs behind it, unless nobody could take it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.cluster.coordinator.process import CoordinatorProcess
from styx.coordinator.coordinator import Phase

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Process:
    """With one worker that takes part; `wanted` is how often a stop was asked for."""

    def __init__(self) -> None:
        members = SimpleNamespace(members={1})
        self.core = SimpleNamespace(phase=Phase.RUNNING, live=True, membership=members)
        self.session = self
        self.wanted = 0

    def want_stop(self) -> None:
        self.wanted += 1

    def last_snapshot(self) -> asyncio.Task[bool]:
        return asyncio.create_task(CoordinatorProcess.last_snapshot(cast(Any, self)))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr("styx.cluster.coordinator.process.asyncio.sleep", lambda _: sleep(0))


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_it_is_waited_for_until_nothing_runs() -> None:
    process = Process()
    taken = process.last_snapshot()
    for phase in (Phase.RUNNING, Phase.LOADING, Phase.RUNNING):
        process.core.phase = phase
        await turns()
        assert not taken.done()
    assert process.wanted == 1
    process.core.phase = Phase.STOPPED
    assert await taken


async def test_without_workers_there_is_none() -> None:
    process = Process()
    taken = process.last_snapshot()
    await turns()
    process.core.live = False
    assert not await taken


async def test_without_a_generation_there_is_none() -> None:
    process = Process()
    process.core.membership.members = set()
    assert not await process.last_snapshot()
    assert process.wanted == 0
