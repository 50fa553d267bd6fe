"""The worker's own decisions: whom it listens to, and how much it takes into an epoch.

The steps of an epoch, with other workers and the coordinator, are in the transcripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from styx.log.base import Record
from styx.messages import Request, encode_request
from styx.model.limits import Limits
from styx.protocol.frames import Drop, Frame
from styx.protocol.manifest import Manifest, PendingTransaction, SlotManifest, SlotPart
from styx.protocol.messages import (
    Commit,
    Conflicts,
    Done,
    EpochStarted,
    Join,
    Recover,
    Resume,
    SlotsStored,
    SnapshotEnded,
    ToWorker,
    Validate,
)
from styx.sequencer import epoch_record
from styx.sequencer.epoch_record import EpochPlan, EpochRecord, SlotBatch
from styx.state.slot_state import SlotState
from styx.state.table import NEWEST
from styx.values.codec import encode_strict
from styx.worker.events import (
    AppendEpochRecord,
    CoordinatorSaid,
    Effect,
    EmitReplies,
    Event,
    ExternalAppended,
    ExternalReturned,
    FrameArrived,
    Halted,
    LoadedSlot,
    LoadState,
    LogLags,
    Proceed,
    RecordDurable,
    RepliesDurable,
    ReportEnds,
    RequestsArrived,
    SlotPartsStored,
    StateLoaded,
    StateUnusable,
    Step,
    Tell,
)
from styx.worker.notes import Notes
from styx.worker.worker import Worker
from tests.protocol.cluster import script_request
from tests.protocol.scripted_app import app

KEYS = ("a0", "a1", "a2")


class Alone:
    """A worker that owns all slots, loaded and idle in generation 1."""

    def __init__(
        self,
        n_slots: int = 1,
        limits: Limits | None = None,
        pending: Sequence[PendingTransaction] = (),
        notes: Notes | None = None,
        plans: Sequence[EpochPlan] = (),
    ) -> None:
        self.worker = Worker(0, app, n_slots, limits or Limits(), notes)
        self.told: list[object] = []
        self.records: list[EpochRecord] = []
        self.say(Recover(1, dict.fromkeys(range(n_slots), 0), None))
        slots = {slot: LoadedSlot(SlotState(), 0, list(pending) if slot == 0 else []) for slot in range(n_slots)}
        self.step(StateLoaded(1, -1, 0, slots, list(plans), {}))

    def step(self, event: Event) -> list[Effect]:
        effects = self.worker.step(event)
        self.told += [effect.message for effect in effects if isinstance(effect, Tell)]
        for effect in effects:
            if isinstance(effect, AppendEpochRecord):
                record = epoch_record.decode(effect.payload)
                assert isinstance(record, EpochRecord)
                self.records.append(record)
        return effects

    def say(self, message: ToWorker) -> list[Effect]:
        return self.step(CoordinatorSaid(message))

    def arrive(self, slot: int, *scripts: str, first: int = 0) -> list[Effect]:
        requests = [script_request(f"r{n}", KEYS[slot], script, "") for n, script in enumerate(scripts)]
        arrivals = [Record(first + n, 0, encode_request(request)) for n, request in enumerate(requests)]
        return self.step(RequestsArrived(self.worker.generation, slot, arrivals))

    def finish_epoch(self) -> list[Effect]:
        """Runs the open epoch to its end, as a coordinator of one worker does; gives what that causes."""
        while self.worker.runnable:
            self.step(Proceed())
        self.step(RecordDurable(1, self.worker.epoch))
        done = self.told[-1]
        assert isinstance(done, Done)
        lists = (done.aborted, done.collided, done.deferred, done.large)
        self.say(Validate(1, done.epoch, done.new_max, *lists))
        conflicts = self.told[-1]
        assert isinstance(conflicts, Conflicts)
        assert conflicts.tids == []
        return self.say(Commit(1, done.epoch, [], False))

    def counts(self) -> dict[int, int]:
        """Requests that the newest epoch record takes, by slot."""
        return {batch.slot: batch.count for batch in self.records[-1].batches}


# Generations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", [0, 2])
@pytest.mark.parametrize(
    "event",
    [
        CoordinatorSaid(Resume(1)),
        CoordinatorSaid(Join(1, 0)),
        CoordinatorSaid(Validate(1, 0, 0, [], [], [], [])),
        CoordinatorSaid(Commit(1, 0, [], False)),
        FrameArrived(Frame(1, 0, 1, [Drop(1)])),
        RecordDurable(1, 0),
        StateLoaded(1, 5, 5, {}, [], {}),
        StateUnusable(1, "damaged"),
        SlotPartsStored(1, 0, None),
        ExternalAppended(1, b"", b""),
        ExternalReturned(1, b"", b""),
    ],
    ids=lambda event: type(getattr(event, "message", event)).__name__,
)
def test_other_generations_are_void(event: Event, generation: int) -> None:
    alone = Alone()
    inner: Any = event.message if isinstance(event, CoordinatorSaid) else getattr(event, "frame", event)
    inner.generation = generation
    before = (alone.worker.reached, alone.worker.epoch)
    assert alone.step(event) == []
    assert (alone.worker.reached, alone.worker.epoch) == before


def test_a_recovery_of_an_older_or_the_same_generation_is_void() -> None:
    alone = Alone()
    for generation in (0, 1):
        assert alone.say(Recover(generation, {0: 0}, None)) == []
    assert alone.say(Recover(2, {0: 0}, None)) == [LoadState(2, [0], None, set())]
    assert alone.worker.reached is Step.LOADING


def test_a_worker_without_slots_takes_part_all_the_same() -> None:
    alone = Alone()
    alone.say(Recover(2, {0: 7}, None))
    alone.step(StateLoaded(2, -1, 0, {}, [], {}))
    alone.say(Resume(2))
    alone.say(Join(2, 0))
    assert alone.records[-1] == EpochRecord(2, 0, 0, [])


def test_who_was_told_to_join_does_not_tell_that_the_epoch_has_begun() -> None:
    alone = Alone()
    alone.say(Resume(1))
    alone.arrive(0, "get")
    assert alone.told[-1] == EpochStarted(1, 0)
    alone.say(Recover(2, {0: 0}, None))
    alone.step(StateLoaded(2, -1, 0, {0: LoadedSlot(SlotState(), 0, [])}, [], {}))
    alone.say(Resume(2))
    alone.say(Join(2, 0))
    assert alone.worker.epoch == 0
    assert EpochStarted(2, 0) not in alone.told


def test_requests_of_slots_that_it_does_not_own_are_not_its_business() -> None:
    alone = Alone()
    alone.say(Resume(1))
    assert alone.step(RequestsArrived(alone.worker.generation, 2, [Record(0, 0, b"")])) == []


@pytest.mark.parametrize("generation", [0, 2])
def test_requests_of_another_generation_count_for_nothing(generation: int) -> None:
    alone = Alone()
    alone.say(Resume(1))
    request = encode_request(script_request("r", KEYS[0], "get", ""))
    assert alone.step(RequestsArrived(generation, 0, [Record(0, 0, request)])) == []
    assert (alone.worker.backlog, alone.worker.reached) == (0, Step.IDLE)


def test_requests_that_were_set_aside_are_refused_wherever_they_are_met() -> None:
    """One comes with the snapshot, one with the log, and one of another slot has the same offset."""
    held, other = (encode_request(script_request(name, KEYS[0], "get", "")) for name in ("held", "other"))
    places = ((1, 0, held), (3, 7, other))
    pending = [PendingTransaction(tid, offset, 0, data, False, False, None, []) for tid, offset, data in places]
    alone = Alone()
    alone.say(Recover(2, {0: 0, 1: 0}, None))
    slots = {0: LoadedSlot(SlotState(), 10, pending), 1: LoadedSlot(SlotState(), 10, [])}
    alone.step(StateLoaded(2, -1, 9, slots, [], {}, aside=frozenset({(0, 7), (1, 10)})))
    for slot in range(2):
        request = encode_request(script_request(f"new {slot}", KEYS[slot], "get", ""))
        alone.step(RequestsArrived(2, slot, [Record(10, 0, request)]))
    alone.say(Resume(2))
    roots = alone.worker.executor.roots.values()
    refused = {root.request_id for root in roots if root.failure is not None and root.failure.type == "RequestSetAside"}
    assert {root.request_id for root in roots} - refused == {"held", "new 0"}
    assert refused == {"other", "new 1"}


def test_a_log_that_lags_and_a_halt_hold_in_the_generations_that_follow() -> None:
    alone = Alone()
    alone.step(LogLags(True))
    alone.step(Halted(True))
    alone.say(Recover(2, {0: 0}, None))
    assert (alone.worker.pressure.congested, alone.worker.pressure.halted) == (True, True)
    alone.step(StateLoaded(2, -1, 0, {0: LoadedSlot(SlotState(), 0, [])}, [], {}))
    alone.say(Resume(2))
    request = encode_request(script_request("r", KEYS[0], "get", ""))
    alone.step(RequestsArrived(2, 0, [Record(0, 0, request)]))
    alone.step(Halted(False))
    assert (alone.worker.reached, alone.worker.backlog) == (Step.IDLE, 1)
    alone.step(LogLags(False))
    assert alone.worker.reached is Step.EXECUTING


def test_ends_are_told_before_the_replies_that_say_them() -> None:
    alone = Alone(notes=Notes(all_aborts=True))
    alone.say(Resume(1))
    alone.arrive(0, "fail why")
    effects = alone.finish_epoch()
    kinds = [type(effect) for effect in effects]
    assert kinds.index(ReportEnds) < kinds.index(EmitReplies)
    assert kinds.count(ReportEnds) == 1


def test_nothing_begins_before_all_workers_are_loaded() -> None:
    alone = Alone()
    alone.arrive(0, "get")
    assert (alone.worker.reached, alone.worker.backlog, alone.records) == (Step.LOADED, 1, [])
    alone.say(Resume(1))
    assert alone.worker.reached is Step.EXECUTING


# Epochs --------------------------------------------------------------------------------------------------------


def test_new_tids_are_greater_than_all_of_the_epoch_before() -> None:
    alone = Alone(2)
    alone.arrive(0, "get", "get", "get")
    alone.arrive(1, "get")
    alone.say(Resume(1))
    assert sorted(alone.worker.executor.roots) == [1, 2, 3, 5]
    alone.finish_epoch()
    alone.arrive(1, "get", first=1)
    assert sorted(alone.worker.executor.roots) == [8]


def test_requests_that_arrived_together_begin_one_epoch() -> None:
    alone = Alone(2)
    alone.say(Resume(1))
    one, other = ([Record(0, 0, encode_request(script_request("r", KEYS[slot], "get", "")))] for slot in range(2))
    assert alone.step(RequestsArrived(alone.worker.generation, 0, one, more=True)) == []
    alone.step(RequestsArrived(alone.worker.generation, 1, other))
    assert [[batch.count for batch in record.batches] for record in alone.records] == [[1, 1]]


def test_it_counts_what_is_waiting_and_what_has_ended() -> None:
    alone = Alone(1, Limits(epoch_transactions_max=1))
    alone.arrive(0, "get", "get")
    alone.say(Resume(1))
    assert (alone.worker.backlog, alone.worker.unfinished, alone.worker.transactions_ended) == (1, 1, 0)
    alone.finish_epoch()
    assert (alone.worker.backlog, alone.worker.unfinished, alone.worker.transactions_ended) == (0, 1, 1)


def test_a_record_that_is_durable_for_another_epoch_is_not_this_ones() -> None:
    alone = Alone()
    alone.say(Resume(1))
    alone.arrive(0, "get")
    alone.step(Proceed())
    alone.say(Validate(1, 0, 1, [], [], [], []))
    alone.step(RecordDurable(1, 5))
    assert not any(isinstance(message, Conflicts) for message in alone.told)
    alone.step(RecordDurable(1, 0))
    assert isinstance(alone.told[-1], Conflicts)


def test_conflicts_of_a_record_that_is_durable_early_are_told_at_once() -> None:
    alone = Alone()
    alone.say(Resume(1))
    alone.arrive(0, "get")
    alone.step(RecordDurable(1, 0))
    alone.step(Proceed())
    assert isinstance(alone.told[-1], Done)
    alone.say(Validate(1, 0, 1, [], [], [], []))
    assert isinstance(alone.told[-1], Conflicts)


def test_in_a_replay_it_tells_who_takes_no_part_in_the_lock_phase() -> None:
    alone = Alone(plans=[EpochPlan(0, 0, {0: SlotBatch(0, 0, 2, 2)}, unlocked=[2])])
    alone.say(Resume(1))
    alone.arrive(0, "put(1)", "put(2)")
    alone.step(Proceed())
    alone.say(Validate(1, 0, 2, [], [], [], []))
    assert alone.told[-1] == Conflicts(1, 0, [2], [2])


# Held snapshots ------------------------------------------------------------------------------------------------


def held_epoch(alone: Alone) -> Manifest:
    """An epoch that writes, closed with a held snapshot; the manifest of it."""
    alone.say(Resume(1))
    alone.arrive(0, "add 5")
    while alone.worker.runnable:
        alone.step(Proceed())
    alone.step(RecordDurable(1, 0))
    alone.say(Validate(1, 0, 1, [], [], [], []))
    alone.say(Commit(1, 0, [], snapshot=True, hold=True))
    assert alone.worker.reached is Step.HOLDING
    return Manifest(1, 0, 1, [SlotManifest(SlotPart(0, 1, [], 1, {}, None), [])])


def test_no_epoch_begins_while_a_snapshot_is_held() -> None:
    alone = Alone()
    held_epoch(alone)
    alone.arrive(0, "add 1", first=1)
    assert len(alone.records) == 1
    alone.say(SnapshotEnded(1, 0, complete=False))
    assert len(alone.records) == 2, "it has failed, and work goes on"


def test_a_generation_on_the_held_snapshot_loads_only_what_the_worker_lacks() -> None:
    alone = Alone()
    manifest = held_epoch(alone)
    [load] = alone.say(Recover(2, {0: 0, 1: 0}, manifest))
    assert load == LoadState(2, [0, 1], manifest, {0})
    slots = {0: LoadedSlot(SlotState(), 1, []), 1: LoadedSlot(SlotState(), 0, [])}
    alone.step(StateLoaded(2, 0, 1, slots, [], {}))
    assert alone.worker.slots[0].state.entities(NEWEST) == {("entity", "a0"): b"\x05"}
    [again] = alone.say(Recover(3, {0: 0, 1: 0}, manifest))
    assert again == LoadState(3, [0, 1], manifest, {0, 1}), "no epoch has begun since"


def test_what_is_held_is_forgotten_with_the_next_epoch_and_for_another_snapshot() -> None:
    alone = Alone()
    manifest = held_epoch(alone)
    [load] = alone.say(Recover(2, {0: 0}, replace(manifest, epoch=7)))
    assert load == LoadState(2, [0], replace(manifest, epoch=7), set())
    alone = Alone()
    manifest = held_epoch(alone)
    alone.say(SnapshotEnded(1, 0, complete=False))
    alone.arrive(0, "add 1", first=1)
    effects = alone.say(Recover(2, {0: 0}, manifest))
    assert effects == [LoadState(2, [0], manifest, set())]


# Versions of the app -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parked", [False, True])
@pytest.mark.parametrize(
    ("operator", "function", "code"), [("gone", "run", "unknown_operator"), ("entity", "gone", "unknown_function")]
)
def test_what_a_snapshot_holds_is_rejected_if_the_new_version_lacks_its_operator_or_function(
    operator: str, function: str, code: str, parked: bool
) -> None:
    # The arguments are those of a bulk load, which is no registered function either.
    request = Request("r", operator, "a0", function, encode_strict([True, [["a0", 5]]]), "once")
    repeats = [("again", 2, 0)]
    pending = PendingTransaction(1, 0, 0, encode_request(request), parked, parked, None, repeats)
    alone = Alone(pending=[pending])
    alone.say(Resume(1))
    [given] = [effect for effect in alone.finish_epoch() if isinstance(effect, EmitReplies)]
    assert [(reply.request_id, reply.phase, (reply.error or ("",))[0]) for reply in given.replies] == [
        ("r", 0, code),
        ("again", 0, code),
    ]
    assert alone.worker.holdings() == (0, [])
    assert alone.worker.unfinished == 0


def test_a_late_answer_for_a_failed_snapshot_does_not_displace_that_for_the_next_one() -> None:
    alone = Alone()
    alone.step(SlotPartsStored(1, 5, []))
    alone.step(SlotPartsStored(1, 1, []))
    alone.step(RepliesDurable(1, 5))
    assert alone.told[-1] == SlotsStored(1, 5, [])
