"""Workers without a given number: all that are there share the slots, and those that join together are one change."""

from __future__ import annotations

from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    Started,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLost,
)
from styx.coordinator.generation import Phase
from styx.coordinator.membership import SETTLE_S
from styx.protocol.messages import Join, Loaded
from tests.coordinator.office import Office


def test_a_start_waits_until_nobody_joins_any_more() -> None:
    office = Office(workers=None)
    office.step(Tick(10.0))
    office.step(WorkerJoined(0))
    assert office.step(Tick(10.0 + 0.9 * SETTLE_S)) == []
    assert office.step(WorkerJoined(1)) == [AppendMarker(1, -1)], "there are no more slots"
    office = Office(workers=None, grace_s=5.0)
    office.step(WorkerJoined(0))
    assert office.step(Tick(SETTLE_S)) == [AppendMarker(1, -1)]


def test_workers_that_join_near_each_other_are_one_change() -> None:
    office = Office(workers=None)
    office.core = Coordinator(4, None)
    office.step(Started(0, []))
    office.step(WorkerJoined(0))
    office.step(Tick(SETTLE_S))
    office.loaded()
    assert office.step(WorkerJoined(1)) == []
    office.step(Tick(1.9 * SETTLE_S))
    assert office.step(WorkerJoined(2)) == []
    assert not office.core.changing
    assert office.step(Tick(2 * SETTLE_S)) == [TellWorker(0, Join(1, 0))], "so long after the first of them"
    assert office.core.changing
    office.step(WorkerJoined(3))
    assert office.core.changing, "others that join do not put it off"
    assert office.core.workers_wanted == 4


def test_one_that_joins_while_slots_are_loaded_does_not_begin_that_anew() -> None:
    office = Office(workers=None)
    office.step(WorkerJoined(0))
    office.step(Tick(SETTLE_S))
    office.marked()
    assert office.step(WorkerJoined(1)) == []
    office.said(0, Loaded(1, -1))
    assert office.core.phase is Phase.RUNNING


def test_survivors_go_on_at_once_and_strangers_wait_for_each_other() -> None:
    office = Office(workers=None)
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.loaded()
    assert office.step(WorkerLost(0)) == [AppendMarker(2, -1)]
    office.loaded()
    office.step(WorkerLost(1))
    assert office.step(WorkerJoined(2)) == []
    assert office.step(Tick(SETTLE_S)) == [AppendMarker(3, -1)]


def test_more_than_there_are_slots_stand_by() -> None:
    office = Office(workers=None)
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.loaded()
    office.step(WorkerJoined(2))
    assert office.step(Tick(SETTLE_S)) == []
    assert not office.core.changing
