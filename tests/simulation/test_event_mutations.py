"""Mutation proof for events: each rule, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from proof.simulation import event_log
from proof.simulation.worker_journal import SimulatedJournal
from styx.log.base import Stream
from styx.model import emitting, event_place, event_write
from styx.model.agenda import entry_key
from styx.model.context import Context
from styx.model.event import EmittedEvent, encode_emitted, events_of
from styx.model.serial_id import event_id
from styx.worker import emissions
from styx.worker.emissions import Emissions
from styx.worker.epoch import EpochLog
from styx.worker.event_marks import EventMarks
from styx.worker.events import EmitEvents, StandingEvent
from styx.worker.footprint import Footprint
from styx.worker.generation import Generation
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"emits": 1.0}
SLOW_LOG = {"log_delay_s": 0.05, "snapshot_interval_s": 0.01}
"""Snapshots that are often stored before the events of their epoch are."""


def a_recovery_emits_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Emissions, "_stands", lambda self, record: False)


def a_recovery_looks_behind_the_last_event(patch: pytest.MonkeyPatch) -> None:
    """It takes the offsets where the log ends for those where the snapshot was taken."""
    original = event_log.standing

    def standing(log: Any, app: Any, firsts: dict[int, int]) -> dict[str, StandingEvent]:
        return original(log, app, {slot: log.bounds(Stream.EVENTS, slot)[1] for slot in firsts})

    patch.setattr(event_log, "standing", standing)


def what_the_lock_phase_commits_is_lost(patch: pytest.MonkeyPatch) -> None:
    original = Emissions.collect

    def collect(self: Emissions, phase: int) -> None:
        if phase == 2:
            for slot in self._slots.values():
                slot.state.emitted.clear()
        original(self, phase)

    patch.setattr(Emissions, "collect", collect)


def phase_3_counts_as_phase_2(patch: pytest.MonkeyPatch) -> None:
    original = Emissions.collect
    patch.setattr(Emissions, "collect", lambda self, phase: original(self, min(phase, 2)))


def functions_emit_before_they_commit(patch: pytest.MonkeyPatch) -> None:
    """So do those of a transaction that aborts, or runs again."""

    def emit_here(context: Context, emitted: EmittedEvent) -> None:
        env = context._env
        if not isinstance(env, Footprint):  # the serial reference's
            original(context, emitted)
            return
        context._ids += 1
        its_id = event_id(*env.place(), env.tid, context._path, context._ids)
        assert env.here is not None
        table = env.here.state.table(events_of(context._spec.operator))
        table.write(env.here.epoch, entry_key(context._key, its_id), encode_emitted(emitted))

    original = event_write.emit_here
    patch.setattr(event_place, "emit_here", emit_here)
    patch.setattr(emitting, "emit_here", emit_here)


def events_do_not_wait_for_the_records(patch: pytest.MonkeyPatch) -> None:
    original = EpochLog.composition

    def composition(self: EpochLog, counter: int, batches: Any) -> Any:
        record = original(self, counter, batches)
        self.undurable -= 1
        return record

    patch.setattr(EpochLog, "composition", composition)
    patch.setattr("styx.worker.epoch.Epoch.durable", lambda self: None)


def a_snapshot_does_not_wait_for_events(patch: pytest.MonkeyPatch) -> None:
    def emit_events(self: SimulatedJournal, effect: EmitEvents) -> None:
        def arrived() -> None:
            _, self.event_ends[effect.slot] = log.records.bounds(Stream.EVENTS, effect.slot)

        payloads = [event_log.encode(record) for record in effect.events]
        host = self._host
        log, generation = host.world.log, host.core.generation
        place = (host.name, generation, Stream.EVENTS, effect.slot)
        log.append(*place, payloads, arrived, host.identity, host.refused(generation))

    patch.setattr(SimulatedJournal, "emit_events", emit_events)


def events_leave_as_they_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(emissions, "_its_id", lambda record: 0)


def an_id_says_no_more_than_the_call_path(patch: pytest.MonkeyPatch) -> None:
    """So what a function emits behind a call has its place before what the callee has emitted, in a replay as well."""
    patch.setattr(event_write, "serial_place", lambda context: context._path)


def a_mark_does_not_wait_for_its_epoch(patch: pytest.MonkeyPatch) -> None:
    original = EventMarks.wanted

    def wanted(self: EventMarks, epoch: int) -> Any:
        closed, self._closed = self._closed, epoch + 1
        try:
            return original(self, epoch + 1)
        finally:
            self._closed = closed

    patch.setattr(EventMarks, "wanted", wanted)


def a_generation_asks_for_no_mark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generation, "begin_marks", lambda self: [])


MUTATIONS = [
    a_recovery_emits_again,
    a_recovery_looks_behind_the_last_event,
    what_the_lock_phase_commits_is_lost,
    phase_3_counts_as_phase_2,
    functions_emit_before_they_commit,
    events_do_not_wait_for_the_records,
    a_snapshot_does_not_wait_for_events,
    events_leave_as_they_come,
    an_id_says_no_more_than_the_call_path,
    a_mark_does_not_wait_for_its_epoch,
    a_generation_asks_for_no_mark,
]
NOTICED_BY: dict[Mutation, int] = {
    phase_3_counts_as_phase_2: 1,
    a_snapshot_does_not_wait_for_events: 369,
    a_generation_asks_for_no_mark: 1,
}
"""Seeds that notice what few do."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    pace = BUSY | SLOW_LOG if mutation is a_snapshot_does_not_wait_for_events else BUSY
    assert_caught(mutation, pace, cluster=False, first=NOTICED_BY.get(mutation, 0))
