"""How fast a worker checks its state beside what it serves."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from styx.cluster.worker.check_pace import ENTITIES_MAX, SHARE, SLICE_SECONDS, STALL_SECONDS, CheckPace
from styx.worker.events import CheckFurther, Event


class Core:
    """A worker as far as the pace looks at it."""

    checking = True


class Loop:
    """Remembers what is to be called later."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Any]] = []

    def call_later(self, delay_s: float, call: Any) -> Loop:
        self.later.append((delay_s, call))
        return self

    def cancel(self) -> None:
        self.later.clear()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


class Paced:
    def __init__(self, loop: Loop) -> None:
        self.given: list[Event] = []
        self.core = Core()
        self.pace = CheckPace(cast(Any, self.core), self.given.append)
        self._loop = loop

    def slice(self, entity_s: float, processor_share: float = 1.0) -> tuple[float, int]:
        """A slice that takes so long for each entity: how long it was waited for, and for how many entities it was."""
        self.pace.go_on()
        ((delay_s, call),) = self._loop.later
        self._loop.later.clear()
        call()
        event = self.given.pop()
        assert isinstance(event, CheckFurther)
        self.pace.took(event.entities * entity_s, event.entities * entity_s * processor_share)
        return delay_s, event.entities


def test_slices_are_short_and_leave_time_for_others(loop: Loop) -> None:
    paced = Paced(loop)
    entity_s = 10e-6
    entities, delay_s = 0, 0.0
    for _ in range(10):
        delay_s, entities = paced.slice(entity_s)
    assert entities == pytest.approx(SLICE_SECONDS / entity_s, rel=0.1)
    assert entities * entity_s / (entities * entity_s + delay_s) == pytest.approx(SHARE, rel=0.1)


@pytest.mark.parametrize(("entity_s", "entities"), [(1e-3, 1), (1e-9, ENTITIES_MAX)])
def test_slices_have_limits(loop: Loop, entity_s: float, entities: int) -> None:
    paced = Paced(loop)
    assert [paced.slice(entity_s)[1] for _ in range(20)][-1] == entities


def test_a_migration_that_takes_long_stalls_nobody_for_long(loop: Loop) -> None:
    """No slice begins with many entities: nobody knows yet what one costs."""
    paced = Paced(loop)
    assert [paced.slice(0.02)[1] for _ in range(5)] == [1] * 5


def test_a_migration_that_waits_stalls_nobody_for_long(loop: Loop) -> None:
    paced = Paced(loop)
    taken = [paced.slice(0.1, processor_share=1e-4)[1] for _ in range(40)]
    assert max(taken) * 0.1 <= 4 * STALL_SECONDS


def test_one_slice_at_a_time(loop: Loop) -> None:
    paced = Paced(loop)
    paced.pace.go_on()
    paced.pace.go_on()
    assert len(loop.later) == 1
    loop.later.pop()[1]()
    paced.pace.go_on()
    assert loop.later == [], "the one that was given has not been taken"


def test_nothing_to_check(loop: Loop) -> None:
    paced = Paced(loop)
    paced.core.checking = False
    paced.pace.go_on()
    assert loop.later == []
    paced.core.checking = True
    paced.pace.go_on()
    paced.pace.stop()
    assert loop.later == []


def test_a_machine_that_has_other_things_to_do(loop: Loop) -> None:
    paced = Paced(loop)
    for _ in range(10):
        paced.slice(10e-6)
    entities = paced.slice(10e-6)[1]
    paced.pace.took(10.0, entities * 10e-6)
    delay_s, after = paced.slice(10e-6)
    assert delay_s == pytest.approx(10.0 * (1 - SHARE) / SHARE)
    assert after == entities
