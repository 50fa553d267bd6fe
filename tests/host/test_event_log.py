"""The log of the last events: its bounds, what it keeps of a load, and where a generation begins in it."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from styx.coordinator.control_events import Package, PackageOffered, VersionFound, VersionRead
from styx.coordinator.events import Started, WorkerSaid
from styx.host import passes
from styx.host.event_log import ENTRY_BYTES, EventLog, KeptLoad
from styx.host.passes import settle
from styx.protocol.manifest import Manifest, PendingTransaction, SlotManifest, SlotPart
from styx.protocol.messages import Join, Recover, SlotsStored
from styx.schema.description import AppDescription
from styx.sequencer.epoch_record import EpochPlan, SlotBatch
from styx.state.slot_state import SlotState
from styx.worker.events import (
    CheckFurther,
    CoordinatorSaid,
    Event,
    ExternalAppended,
    ExternalReturned,
    Halted,
    LoadedSlot,
    LogLags,
    SlotPartsStored,
    StateLoaded,
)

RECOVER = CoordinatorSaid(Recover(1, {0: 0}, None))
PART = SlotPart(0, 7, [PendingTransaction(1, 2, 3, b"request", False, False, None, [])], 0, {}, None)
MANIFEST = Manifest(1, 4, 9, [SlotManifest(PART, [])])
DESCRIPTION = AppDescription(name="app", operators={})


def step(event: Any) -> None:
    """The worker's."""


def another(event: Any) -> None:
    """The coordinator's."""


def take(log: EventLog, event: Event, n_bytes: int = 0) -> None:
    settle(deque([(step, event, n_bytes)]), log)


def log_of(*events: Any) -> EventLog:
    log = EventLog()
    settle(deque([(step, event, 0) for event in events]), log)
    return log


def test_it_keeps_as_many_events_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "EVENTS_MAX", 3)
    monkeypatch.setattr(passes, "BYTES_MAX", 10)
    log = EventLog()
    kept: list[list[int]] = []
    for number, n_bytes in enumerate([1, 1, 1, 1, 9, 20, 0, 1]):
        take(log, CheckFurther(number), n_bytes)
        kept.append([event.entities for _, event, _ in log.items])
    assert kept == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [3, 4], [5], [6], [6, 7]]
    assert log.n_bytes == 1
    log.clear()
    assert (len(log.items), log.n_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("event", "n_bytes"),
    [
        (ExternalReturned(0, b"call", b"12345"), 5),
        (ExternalAppended(0, b"call", b"123"), 3),
        (ExternalAppended(0, b"", None), 0),
        (SlotPartsStored(0, 4, [PART, PART]), 14),
        (SlotPartsStored(0, 4, None), 0),
        (RECOVER, 0),
        (CoordinatorSaid(Recover(1, {0: 0}, MANIFEST)), 7),
        (WorkerSaid(0, SlotsStored(1, 4, [PART])), 7),
        (WorkerSaid(0, SlotsStored(1, 4, None)), 0),
        (Started(1, [MANIFEST, MANIFEST]), 14),
        (PackageOffered(1, Package(b"package", DESCRIPTION, "print")), 7),
        (VersionFound(1, Package(b"code", DESCRIPTION, "print")), 4),
        (VersionRead(1, "it is damaged"), 0),
        (CheckFurther(1), 0),
    ],
    ids=range(14),
)
def test_bytes_that_an_event_holds_count(event: Any, n_bytes: int) -> None:
    assert log_of(event).n_bytes == n_bytes


def test_a_load_is_kept_as_it_came_and_without_its_state() -> None:
    answered: dict[int, bytes | int] = {5: b"reply", 6: 77}
    plan = EpochPlan(5, 9, {0: SlotBatch(0, 0, 1, 1)})
    load = StateLoaded(1, 4, 9, {0: LoadedSlot(SlotState(), 7, [])}, [plan], answered, (4, 1), {b"k": b"out"}, {(0, 3)})
    log = log_of(load)
    answered.clear()
    (item,) = log.items
    n_bytes = 5 * ENTRY_BYTES + len(b"reply") + len(b"out")
    assert item == (step, KeptLoad(1, [plan], {5: b"reply", 6: 77}, (4, 1), {b"k": b"out"}, {(0, 3)}), n_bytes)
    assert log.n_bytes == n_bytes


def test_a_large_load_makes_way_for_the_next_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "BYTES_MAX", 1_000)
    log = log_of(RECOVER, StateLoaded(1, 4, 9, {}, [], {5: b"r" * 1_000}), CheckFurther(1))
    assert (log.of(step), log.n_bytes) == (([CheckFurther(1)], False), 0)


def test_a_worker_s_generation_begins_with_the_last_recover() -> None:
    log = log_of(RECOVER, CheckFurther(1), RECOVER, CoordinatorSaid(Join(1, 0)))
    settle(deque([(another, CheckFurther(2), 0)]), log)
    assert log.of(step) == ([RECOVER, CoordinatorSaid(Join(1, 0))], True)


def test_without_a_generation_all_events_go_back_to_the_core_s_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "EVENTS_MAX", 2)
    log = log_of(CheckFurther(1), CheckFurther(2))
    assert log.of(step) == ([CheckFurther(1), CheckFurther(2)], True)
    take(log, CheckFurther(3))
    assert log.of(step) == ([CheckFurther(2), CheckFurther(3)], False)


def test_it_begins_as_pressed_as_the_worker_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the events that said so are not kept any more, and not as it became later."""
    monkeypatch.setattr(passes, "EVENTS_MAX", 3)
    log = log_of(LogLags(False), Halted(True), LogLags(True), CheckFurther(1), CheckFurther(2), RECOVER)
    assert log.of(step) == ([LogLags(True), Halted(True), RECOVER], True)
    take(log, LogLags(False))
    assert log.of(step) == ([LogLags(True), Halted(True), RECOVER, LogLags(False)], True)
