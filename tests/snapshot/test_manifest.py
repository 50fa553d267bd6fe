"""Manifests and generations: what a coordinator that knows nothing finds out when it starts."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.protocol.manifest import Manifest, ObjectRef, PendingTransaction, SlotManifest, SlotPart
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, encode
from styx.snapshot.manifest import (
    MANIFEST_PREFIX,
    Generations,
    beginning,
    manifest_name,
    read_generations,
    read_manifests,
    write_manifest,
)
from styx.store import MemoryStore


def manifest(generation: int, epoch: int) -> Manifest:
    ref = ObjectRef("slots/0/object", 12, b"d" * 16)
    pending = PendingTransaction(5, 2, 1_000, b"request", True, False, {b"key": b"outcome"}, [("again", 7, 2)])
    part = SlotPart(0, 3, [pending], 10, {0: 11}, ref)
    return Manifest(generation, epoch, 17, [SlotManifest(part, [ref, ref])])


def test_a_part_of_a_release_without_events_is_read() -> None:
    part = manifest(1, 1).slots[0].part
    assert part.events == {}
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(replace(part, events={"paid": 7})))
    assert fields.pop() == {"paid": 7}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=SlotPart) == part


def log_of(*records: EpochRecord | GenerationMarker) -> MemoryLog:
    log = MemoryLog()
    for record in records:
        log.append(Stream.EPOCHS, 0, 0, encode(record))
    log.flush()
    return log


def test_a_manifest_comes_back_whole() -> None:
    store = MemoryStore()
    write_manifest(store, manifest(2, 40))
    assert read_manifests(store) == ([manifest(2, 40)], [])


def test_manifests_are_read_newest_first() -> None:
    store = MemoryStore()
    for generation, epoch in ((1, 9), (2, 100), (3, 10), (4, 9)):
        write_manifest(store, manifest(generation, epoch))
    manifests, _ = read_manifests(store)
    assert [(m.epoch, m.generation) for m in manifests] == [(100, 2), (10, 3), (9, 4), (9, 1)]


def test_any_flipped_bit_or_cut_is_noticed_and_named() -> None:
    store = MemoryStore()
    write_manifest(store, manifest(1, 1))
    name = manifest_name(2, 2)
    write_manifest(store, manifest(2, 2))
    good = store.get(name)
    damaged = [good[:length] for length in range(len(good))]
    for position in range(len(good)):
        flipped = bytearray(good)
        flipped[position] ^= 0x10
        damaged.append(bytes(flipped))
    for data in damaged:
        store.put(name, data)
        assert read_manifests(store) == ([manifest(1, 1)], [name])


def test_other_objects_are_not_manifests() -> None:
    store = MemoryStore()
    store.put("slots/0/object", b"")
    assert read_manifests(store) == ([], [])
    assert manifest_name(1, 1).startswith(MANIFEST_PREFIX)


def test_a_manifest_that_goes_away_while_they_are_read_is_no_error() -> None:
    class Racing(MemoryStore):
        def list(self, prefix: str) -> list[str]:
            return [*super().list(prefix), manifest_name(9, 9)]

    store = Racing()
    write_manifest(store, manifest(1, 1))
    assert read_manifests(store) == ([manifest(1, 1)], [])


# Generations ---------------------------------------------------------------------------------------------------


def last_generation(manifests: list[Manifest], log: MemoryLog) -> int:
    return beginning(manifests, [], read_generations(log)).generation


def test_the_last_generation_is_the_highest_that_has_left_a_trace() -> None:
    assert last_generation([], MemoryLog()) == 0
    assert last_generation([], log_of(GenerationMarker(1, -1), GenerationMarker(2, -1))) == 2
    assert last_generation([], log_of(GenerationMarker(1, -1), EpochRecord(3, 0, 0, []))) == 3
    assert last_generation([manifest(4, 9)], log_of(GenerationMarker(1, -1))) == 4
    assert last_generation([manifest(1, 9)], log_of(GenerationMarker(4, 9), EpochRecord(2, 0, 0, []))) == 4


def test_a_released_log_still_tells_its_last_generation() -> None:
    log = log_of(GenerationMarker(1, -1), GenerationMarker(2, -1), GenerationMarker(3, 5))
    log.truncate(Stream.EPOCHS, 0, 2)
    assert last_generation([], log) == 3


def test_a_manifest_of_a_generation_that_had_ended_is_void() -> None:
    """Its epochs_offset is 10: the newer generation's marker stands at 9, so a record of its epoch may stand behind."""
    whole = Generations([(10, GenerationMarker(2, 4))], 2)
    manifests = [manifest(1, 9), manifest(1, 4)]
    assert beginning(manifests, [], whole).unusable == [], "every record of epoch 9 stands before"
    started = beginning(manifests, ["damaged"], Generations([(9, GenerationMarker(2, 4))], 2))
    assert started.manifests == []
    assert started.unusable == ["damaged", manifest_name(1, 9), manifest_name(1, 4)]


def test_a_newer_generation_has_the_newer_manifest_whatever_its_epoch() -> None:
    assert beginning([manifest(1, 9), manifest(2, 7)], [], Generations([], 0)).manifests == [
        manifest(2, 7),
        manifest(1, 9),
    ]


def test_the_version_is_the_last_marker_s_and_began_where_it_changed() -> None:
    markers = [
        GenerationMarker(1, -1, 1),
        GenerationMarker(2, 3, 1),
        GenerationMarker(3, 8, 2),
        GenerationMarker(4, 9, 2),
    ]
    started = beginning([], [], Generations(list(enumerate(markers)), 4))
    assert (started.app_version, started.app_since) == (2, 8)


def test_where_a_version_began_is_known_when_the_markers_before_it_are_released() -> None:
    """Its first snapshot is damaged, say: the one that it began on must still do."""
    began_on = replace(manifest(2, 8), app_version=1)
    started = beginning(
        [began_on], [], Generations([(10, GenerationMarker(3, 8, 2)), (20, GenerationMarker(4, 8, 2))], 4)
    )
    assert (started.app_version, started.app_since) == (2, 8)
    later = replace(manifest(3, 12), app_version=2)
    started = beginning([later], [], Generations([(20, GenerationMarker(4, 12, 2))], 4))
    assert (started.app_version, started.app_since) == (2, -1)


def test_without_markers_the_newest_manifest_tells_the_version() -> None:
    stored = replace(manifest(3, 9), app_version=4)
    started = beginning([stored], [], Generations([], 0))
    assert (started.generation, started.app_version) == (3, 4)
