"""The snapshot of an orderly stop: the process waits for the core's word, and no longer than its life lasts."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.cluster.coordinator.process import TICK_SILENCE_SECONDS, CoordinatorProcess
from styx.cluster.coordinator.session import CoordinatorSession
from styx.coordinator.events import Event, StopEnded, StopWanted
from styx.host.event_log import EventLog

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Session(CoordinatorSession):
    """One life whose core is told events, and does nothing by itself; `given` are those events."""

    def __init__(self) -> None:
        self.given: list[Event] = []
        self._timer = self._stop_ended = None
        self._stopped = False
        self._events = deque()
        self._log = EventLog()
        self.journal = self.snapshots = cast(Any, SimpleNamespace(stop=lambda: None))
        self.links = cast(Any, SimpleNamespace(close=lambda: None))

    def give(self, event: Any) -> None:
        self.given.append(event)


def last_snapshot(session: CoordinatorSession | None) -> asyncio.Task[bool]:
    process = SimpleNamespace(session=session)
    return asyncio.create_task(CoordinatorProcess.last_snapshot(cast(Any, process)))


@pytest.mark.parametrize("stored", [True, False])
async def test_the_core_says_when_the_stop_is_over_and_what_is_stored(stored: bool) -> None:
    session = Session()
    taken = last_snapshot(session)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not taken.done()
    assert session.given == [StopWanted()]
    session.stopped(StopEnded(stored))
    assert await taken is stored


async def test_a_life_that_ends_meanwhile_stores_nothing_more() -> None:
    session = Session()
    taken = last_snapshot(session)
    await asyncio.sleep(0)
    session.stop()
    assert await taken is False


async def test_without_a_life_there_is_none() -> None:
    assert await last_snapshot(None) is False


async def test_a_clock_that_has_stopped_is_told_and_waiting_for_log_or_store_is_well() -> None:
    session = SimpleNamespace(ticked_at_s=time.monotonic())
    process = SimpleNamespace(session=session)
    assert CoordinatorProcess.stuck(cast(Any, process)) is None
    session.ticked_at_s -= TICK_SILENCE_SECONDS + 1
    told = CoordinatorProcess.stuck(cast(Any, process))
    assert told is not None
    assert told.startswith("its clock has not ticked for 6")
    process.session = None
    assert CoordinatorProcess.stuck(cast(Any, process)) is None
