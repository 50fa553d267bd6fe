"""The snapshot of an orderly stop: it is waited for until nothing runs behind it, unless nobody could take it."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.cluster.coordinator.process import TICK_SILENCE_SECONDS, CoordinatorProcess

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Process:
    """With one worker that takes part; `wanted` is how often a stop was asked for."""

    def __init__(self) -> None:
        members = SimpleNamespace(members={1})
        self.core = SimpleNamespace(all_stored=False, live=True, membership=members)
        self.session: Process | None = self
        self.ticked_at_s = 0.0
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
    await turns()
    assert not taken.done()
    assert process.wanted == 1
    process.core.all_stored = True
    assert await taken


async def test_without_workers_there_is_none() -> None:
    process = Process()
    taken = process.last_snapshot()
    await turns()
    process.core.live = False
    await turns()
    assert taken.done()
    assert not taken.result()


async def test_without_a_generation_there_is_none() -> None:
    process = Process()
    process.core.membership.members = set()
    assert not await process.last_snapshot()
    assert process.wanted == 0


async def test_where_everything_is_stored_already_nothing_is_to_begin() -> None:
    process = Process()
    process.core.membership.members = set()
    process.core.all_stored = True
    assert await process.last_snapshot()
    assert process.wanted == 1


async def test_a_clock_that_has_stopped_is_told_and_waiting_for_log_or_store_is_well() -> None:
    process = Process()
    process.ticked_at_s = time.monotonic()
    assert CoordinatorProcess.stuck(cast(Any, process)) is None
    process.ticked_at_s -= TICK_SILENCE_SECONDS + 1
    told = CoordinatorProcess.stuck(cast(Any, process))
    assert told is not None
    assert told.startswith("its clock has not ticked for 6")
    process.session = None
    assert CoordinatorProcess.stuck(cast(Any, process)) is None
