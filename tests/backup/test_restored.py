"""What a restored manifest looks like, and that a coordinator begins on it."""

from __future__ import annotations

from styx.backup.restored import COUNTERS_PER_SECOND, COUNTERS_SKIPPED, counter_at, restored_manifest
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import AppendMarker, MarkerAppended, MembersFenced, TellWorker, Tick, WorkerJoined
from styx.protocol.messages import Recover
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, LogEntry, SlotBatch, replay_plan
from styx.snapshot.manifest import Generations, beginning
from tests.backup.snapshots import PENDING, SLOTS, Cluster

NOW_S = 1_800_000_000.0


def test_offsets_begin_anew_and_all_else_stays() -> None:
    made = Cluster().snapshot(41, {"ada": b"1"})
    restored = restored_manifest(made, NOW_S)
    assert (restored.generation, restored.epoch, restored.app_version) == (4, 41, 3)
    for before, after in zip(made.slots, restored.slots, strict=True):
        assert after.objects == before.objects
        part = after.part
        assert (part.next_offset, part.epochs_offset, part.replies) == (0, 0, {})
        assert (part.slot, part.stored, part.whole) == (before.part.slot, before.part.stored, before.part.whole)
    (pending,) = restored.slots[0].part.pending
    for field in ("tid", "timestamp_us", "payload", "sequential", "parked", "externals", "repeats"):
        assert getattr(pending, field) == getattr(PENDING, field), field


def test_no_transaction_id_is_given_again() -> None:
    first = counter_at(5_000, NOW_S)
    assert first == NOW_S * COUNTERS_PER_SECOND
    # The cluster goes on for a day, fast, and both it and the restored one are then restored.
    assert counter_at(5_000, NOW_S + 86_400) > first + 86_400 * (COUNTERS_PER_SECOND - 1)
    # A clock that is wrong.
    assert counter_at(first, 0.0) == first + COUNTERS_SKIPPED
    # TIDs stay below the largest integer that a program with doubles only has, with 128 slots for 80 years.
    assert counter_at(0, NOW_S + 80 * 365 * 86_400) * 128 < 2**53


def test_a_coordinator_begins_its_next_generation_on_it() -> None:
    manifest = restored_manifest(Cluster().snapshot(41, {"ada": b"1"}), NOW_S)
    started = beginning([manifest], [], Generations([], 0))
    assert (started.generation, started.manifests, started.app_version, started.unusable) == (4, [manifest], 3, [])
    core = Coordinator(SLOTS)
    core.step(started)
    core.step(WorkerJoined(1))
    assert core.step(MembersFenced(5)) == [AppendMarker(5, 41, 3)]
    (told,) = core.step(MarkerAppended(5))
    assert isinstance(told, TellWorker)
    assert isinstance(told.message, Recover)
    assert told.message.manifest == manifest
    assert (core.epoch, core.step(Tick(1.0))) == (41, [])


def test_the_next_coordinator_begins_on_it_too_before_there_is_another_snapshot() -> None:
    manifest = restored_manifest(Cluster().snapshot(41, {"ada": b"1"}), NOW_S)
    marker = GenerationMarker(5, 41, 3)
    started = beginning([manifest], [], Generations([(0, marker)], 5))
    assert (started.generation, started.manifests, started.app_version, started.unusable) == (5, [manifest], 3, [])
    core = Coordinator(SLOTS)
    core.step(started)
    core.step(WorkerJoined(1))
    assert core.step(MembersFenced(6)) == [AppendMarker(6, 41, 3)]
    records: list[LogEntry] = [
        marker,
        EpochRecord(5, 42, manifest.counter, [SlotBatch(slot, 0, 1, 1) for slot in range(SLOTS)]),
    ]
    (plan,) = replay_plan(records, SLOTS, manifest.epoch, manifest.generation, 6)
    assert (plan.epoch, plan.counter) == (42, manifest.counter)
