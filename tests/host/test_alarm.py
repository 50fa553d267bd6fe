"""An alarm whose clock is set forward and back while it sleeps."""

from __future__ import annotations

import asyncio

import pytest

from styx.host import alarm
from styx.host.alarm import Alarm, wall_clock_us

pytestmark = pytest.mark.anyio
HOUR_US = 3_600_000_000


class Clock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.now_us = 10**15

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def short_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm, "SLEEP_SECONDS_MAX", 0.001)


async def told(alarm: Alarm, due_us: int) -> int:
    """What the alarm tells next."""
    heard = asyncio.get_running_loop().create_future()
    alarm.wake(due_us, heard.set_result)
    result: int = await heard
    return result


async def test_what_is_due_is_told_at_once(clock: Clock) -> None:
    assert await told(Alarm(clock), clock.now_us) == clock.now_us
    assert await told(Alarm(clock), clock.now_us - HOUR_US) == clock.now_us


async def test_a_clock_that_is_set_forward_is_noticed_within_a_sleep(clock: Clock) -> None:
    wakes = Alarm(clock)
    due_us = clock.now_us + HOUR_US
    assert await told(wakes, due_us) < due_us
    clock.now_us += 2 * HOUR_US
    assert await told(wakes, due_us) == clock.now_us > due_us


async def test_a_clock_that_is_set_back_is_told_as_it_is(clock: Clock) -> None:
    wakes, due_us = Alarm(clock), clock.now_us
    clock.now_us -= HOUR_US
    for _ in range(3):
        assert await told(wakes, due_us) == clock.now_us < due_us
    clock.now_us += HOUR_US
    assert await told(wakes, due_us) == due_us


async def test_the_last_order_counts_and_a_stopped_alarm_tells_nothing(clock: Clock) -> None:
    wakes, heard = Alarm(clock), list[int]()
    wakes.wake(clock.now_us, heard.append)
    assert await told(wakes, clock.now_us) == clock.now_us
    wakes.wake(clock.now_us, heard.append)
    wakes.stop()
    await asyncio.sleep(0.005)
    assert heard == []


def test_the_wall_clock_is_in_microseconds() -> None:
    assert 10**15 < wall_clock_us() < 10**16
