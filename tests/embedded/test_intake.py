"""Requests that come faster than they are answered: the gateway's are refused, those of the process itself wait."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from styx.embedded_engine.drive import Drive
from styx.embedded_engine.engine_log import EngineLog
from styx.embedded_engine.intake import COUNTED_TOGETHER, RequestIntake
from styx.errors import RequestRejected
from styx.host.backlog import FEW, INTERVAL_SECONDS
from styx.messages import ReplyRecord
from styx.model.request import Placed

pytestmark = pytest.mark.anyio


class Log:
    backlog_bytes = 0
    log: Any = None

    def __init__(self) -> None:
        self.log = self

    def now_us(self) -> int:
        return 1

    def append(self, *_: Any) -> int:
        return 1


class Driven:
    def request(self, *_: Any) -> None: ...


class Clock:
    """An event loop whose time is told."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self._loop = asyncio.get_running_loop()

    def time(self) -> float:
        return self.now_s

    def create_future(self) -> asyncio.Future[Any]:
        return self._loop.create_future()

    def call_at(self, *_: Any) -> None:
        return None


def placed(number: int) -> Placed:
    return Placed(f"r{number}", 0, b"x", False)


async def test_past_the_limit_the_gateway_refuses_and_the_process_itself_waits() -> None:
    clock = Clock()
    intake = RequestIntake(cast(EngineLog, Log()), cast(Drive, Driven()), 10_000)
    intake._loop = cast(asyncio.AbstractEventLoop, clock)
    for waiters in (intake.taken, intake.held):
        waiters._loop = intake._loop
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    for number in range(5_000):
        intake.take_or_refuse(placed(number), 1e9, future)
    # 640 a second are answered from 2 s on: what is behind them would wait for 6 s more.
    clock.now_s += 2.0
    for number in range(320):
        if number % COUNTED_TOGETHER == 0:
            clock.now_s += INTERVAL_SECONDS / 10
        intake.answer(ReplyRecord(f"r{number}", number, number, 1, 1, b"\x01", None, 0))
    with pytest.raises(RequestRejected, match="overloaded"):
        intake.take_or_refuse(placed(6_000), 1e9, future)
    waits = intake.take_or_hold(placed(6_001), 1e9)
    assert not waits.done()
    assert [*intake.held.by_id] == ["r6001"]
    # When few are left, everybody is let in again.
    for number in range(320, 5_000 - FEW // 2):
        intake.answer(ReplyRecord(f"r{number}", number, number, 1, 1, b"\x01", None, 0))
    intake.admit_held()
    assert not intake.held.by_id
    intake.take_or_refuse(placed(6_002), 1e9, future)
