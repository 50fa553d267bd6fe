"""A worker's events: handed on once, in serial order, and held against what stands in their logs."""

from __future__ import annotations

import pytest

from styx import Event
from styx.messages import EventRecord
from styx.model.agenda import FIRST_RUN, entry_key
from styx.model.event import EmittedEvent, encode_emitted
from styx.model.serial_id import event_id
from styx.state.slot_state import SlotState
from styx.state.table import NEWEST
from styx.worker.emissions import Emissions, event_digest
from styx.worker.events import EmitEvents, EventDiffers, StandingEvent
from styx.worker.slot import Slot

PAID: Event[int] = Event("paid", int)
TABLE = "shop/<events>"


class World:
    """One slot, number 2."""

    def __init__(self) -> None:
        self.slot = Slot(2)
        self.emissions = Emissions({"paid": PAID}, {2: self.slot})
        self.emissions.begin(5)

    def emit(self, tid: int, value: int, number: int = 1, key: str = "a") -> str:
        its_id = event_id(5, FIRST_RUN, tid, b"", number)
        data = encode_emitted(EmittedEvent("paid", 1, "shop", 7, PAID.encode(value)))
        self.slot.table(TABLE).write(5, entry_key(key, its_id), data)
        return its_id

    def events(self) -> list[EventRecord]:
        taken = self.emissions.take()
        return [record for effect in taken if isinstance(effect, EmitEvents) for record in effect.events]


@pytest.fixture
def world() -> World:
    return World()


def test_events_leave_once_in_order_of_phase_and_id(world: World) -> None:
    world.emit(12, 1)
    world.emit(4, 2)
    world.emissions.collect(1)
    world.emit(3, 3)
    world.emissions.collect(2)
    assert [(record.phase, record.tid) for record in world.events()] == [(1, 4), (1, 12), (2, 3)]
    assert world.events() == []


def test_a_slot_keeps_no_event(world: World) -> None:
    world.emit(4, 2)
    state = world.slot.state
    assert len(state.emitted) == 1
    assert state.at(NEWEST) == {}
    assert state.take_delta() == {}
    assert state.copied() == {}
    assert world.slot.table(TABLE).read(NEWEST, ("a", "x")) is None


def test_a_state_that_begins_anew_has_emitted_nothing(world: World) -> None:
    world.emit(4, 2)
    world.slot.state.as_stored()
    world.emissions.collect(1)
    assert world.events() == []


def test_what_stands_in_the_log_is_not_handed_on_again(world: World) -> None:
    stands = world.emit(4, 2)
    world.emit(8, 3)
    world.emissions.load({stands: StandingEvent(2, "paid", event_digest(b"2"))}, 4)
    world.emissions.collect(1)
    assert [record.tid for record in world.events()] == [8]
    assert world.emissions.replayed(5) == []


def test_another_value_than_stands_is_told_and_does_not_leave(world: World) -> None:
    stands = world.emit(4, 2)
    world.emissions.load({stands: StandingEvent(2, "paid", event_digest(b"9"))}, 4)
    world.emissions.collect(1)
    [differs] = world.emissions.take()
    assert isinstance(differs, EventDiffers)
    assert (differs.slot, differs.event, differs.id) == (2, "paid", stands)
    assert differs.record is not None


def test_what_no_replay_emits_is_told_when_the_replay_has_ended(world: World) -> None:
    lost, old = event_id(6, FIRST_RUN, 4, b"", 1), event_id(4, FIRST_RUN, 4, b"", 1)
    world.emissions.load({lost: StandingEvent(2, "paid", b""), old: StandingEvent(2, "paid", b"")}, 4)
    world.emissions.collect(1)
    assert world.emissions.take() == []
    told = [EventDiffers(2, "paid", lost, None)]
    assert world.emissions.replayed(6) == told, "what the snapshot has is not emitted again"
    assert world.emissions.replayed(6) == []


def test_what_a_later_generation_emitted_is_not_told_by_who_does_not_know_of_it(world: World) -> None:
    recorded, later = event_id(6, FIRST_RUN, 4, b"", 1), event_id(7, FIRST_RUN, 4, b"", 1)
    world.emissions.load({recorded: StandingEvent(2, "paid", b""), later: StandingEvent(2, "paid", b"")}, 4)
    assert world.emissions.replayed(6) == [EventDiffers(2, "paid", recorded, None)]
    assert list(world.emissions.standing) == [later]


def test_a_replaced_state_hands_on_as_well() -> None:
    state = SlotState().replaced({"shop": {"a": b"\x01"}})
    state.table(TABLE).commit(5, {entry_key("a", event_id(5, FIRST_RUN, 1, b"", 1)): b"\x90"})
    assert len(state.emitted) == 1
    assert set(state.tables) == {"shop"}
