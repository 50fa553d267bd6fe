"""Loading a generation's start: all of it, or a reason that an operator can act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.messages import ReplyRecord, encode_reply
from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, SlotBatch, encode
from styx.snapshot.load import Unusable, load_state, read_states
from styx.snapshot.part import store_slots
from styx.state.slot_state import Delta
from styx.store import MemoryStore, Store
from styx.worker.events import LoadState, SlotContent, StateLoaded, StoreSlots


class Deployment:
    """Two slots. Epoch 0 took one request of each and is in the snapshot; epoch 1 took one of slot 1 only."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.store = MemoryStore()
        self.append(Stream.EPOCHS, 0, encode(GenerationMarker(1, -1)))
        for slot in (0, 1):
            self.append(Stream.REQUESTS, slot, b"request")
            self.append_epoch(0, SlotBatch(slot, 0, 1, 1))
            self.append(Stream.REPLIES, slot, encode_reply(ReplyRecord("r", 1 + slot, 1 + slot, 0, 1, b"\x01")))
        parts = self.stored(0, {slot: {"entity": {f"a{slot}": b"\x05"}} for slot in (0, 1)})
        self.manifest = Manifest(1, 0, 1, [SlotManifest(part, _objects(part)) for part in parts])
        self.append(Stream.REQUESTS, 1, b"request")
        self.append_epoch(1, SlotBatch(0, 1, 1, 0))
        self.append_epoch(1, SlotBatch(1, 1, 2, 1))
        self.append(Stream.REPLIES, 1, encode_reply(ReplyRecord("r", 4, 4, 1, 1, b"\x01")))
        self.append(Stream.EPOCHS, 0, encode(GenerationMarker(2, 0)))

    def append(self, stream: Stream, partition: int, payload: bytes) -> None:
        self.log.append(stream, partition, 0, payload)
        self.log.flush()

    def append_epoch(self, epoch: int, batch: SlotBatch) -> None:
        self.append(Stream.EPOCHS, 0, encode(EpochRecord(1, epoch, epoch, [batch])))

    def stored(self, epoch: int, deltas: dict[int, Delta]) -> list[SlotPart]:
        contents = [SlotContent(slot, delta, False, 1, []) for slot, delta in deltas.items()]
        return store_slots(StoreSlots(1, epoch, 0, contents), 3, {slot: {slot: 1} for slot in deltas}, {}, self.store)

    def load(self, slots: list[int], snapshot: bool = True) -> StateLoaded:
        return load_state(LoadState(2, slots, self.manifest if snapshot else None), 2, self.log, self.store)


def _objects(part: SlotPart) -> list[ObjectRef]:
    return [] if part.stored is None else [part.stored]


def tables_of(manifest: Manifest, slots: list[int], store: Store) -> dict[int, dict[str, Mapping[Any, bytes]]]:
    """What a worker would load."""
    return {slot: state.at(manifest.epoch) for slot, state in read_states(manifest, slots, store).items()}


def test_a_worker_loads_its_slots_and_the_epochs_behind_the_snapshot() -> None:
    loaded = Deployment().load([1])
    assert (loaded.generation, loaded.epoch, loaded.counter) == (2, 0, 1)
    assert {slot: (part.state.at(0), part.next_offset) for slot, part in loaded.slots.items()} == {
        1: ({"entity": {"a1": b"\x05"}}, 1)
    }
    assert [(plan.epoch, set(plan.batches)) for plan in loaded.plans] == [(1, {0, 1})]


def test_later_changes_win_and_slots_do_not_mix() -> None:
    deployment = Deployment()
    chains = {slot: list(_objects(part.part)) for slot, part in enumerate(deployment.manifest.slots)}
    history: list[dict[int, Delta]] = [
        {1: {"entity": {"a1": b"\x06", "b1": b"\x01"}}, 0: {"other": {"a0": b"\x07"}}},
        {0: {"entity": {"a0": None}}},
        {1: {"entity": {"b1": None, "c1": b"\x02"}}},
    ]
    for epoch, deltas in enumerate(history, start=10):
        for part in deployment.stored(epoch, deltas):
            chains[part.slot] += _objects(part)
    slots = [SlotManifest(each.part, chains[slot]) for slot, each in enumerate(deployment.manifest.slots)]
    expected = {0: {"entity": {}, "other": {"a0": b"\x07"}}, 1: {"entity": {"a1": b"\x06", "c1": b"\x02"}}}
    manifest = Manifest(1, 12, 1, slots)
    assert tables_of(manifest, [0, 1], deployment.store) == expected
    assert tables_of(manifest, [1], deployment.store) == {1: expected[1]}


def test_only_replies_behind_the_snapshot_can_be_given_again() -> None:
    assert Deployment().load([0, 1]).answered.keys() == {4}
    assert Deployment().load([0]).answered == {}
    assert Deployment().load([0, 1], snapshot=False).answered.keys() == {1, 2, 4}


def test_without_a_snapshot_everything_is_replayed_from_nothing() -> None:
    loaded = Deployment().load([0], snapshot=False)
    assert (loaded.epoch, loaded.counter) == (-1, 0)
    assert (loaded.slots[0].state.at(0), loaded.slots[0].next_offset) == ({}, 0)
    assert [plan.epoch for plan in loaded.plans] == [0, 1]


def test_nothing_at_all_is_a_start_too() -> None:
    loaded = load_state(LoadState(1, [0], None), 1, MemoryLog(), MemoryStore())
    assert (loaded.epoch, loaded.plans, loaded.answered) == (-1, [], {})


def test_a_slot_that_the_snapshot_does_not_know_is_empty() -> None:
    deployment = Deployment()
    deployment.append(Stream.EPOCHS, 0, encode(GenerationMarker(3, 0)))
    assert deployment.load([0, 1]).slots.keys() == {0, 1}


# What cannot be used -------------------------------------------------------------------------------------------


def test_a_missing_object_is_named() -> None:
    deployment = Deployment()
    name = deployment.manifest.slots[1].objects[0].name
    deployment.store.delete(name)
    with pytest.raises(Unusable, match=f"{name} is missing from the store"):
        deployment.load([0, 1])


def test_a_damaged_object_is_named() -> None:
    deployment = Deployment()
    name = deployment.manifest.slots[1].objects[0].name
    deployment.store.put(name, deployment.store.get(name)[:-1])
    with pytest.raises(Unusable, match=f"{name} is damaged"):
        deployment.load([0, 1])


def test_a_log_that_starts_too_late_is_explained() -> None:
    deployment = Deployment()
    deployment.log.truncate(Stream.EPOCHS, 0, 4)
    with pytest.raises(Unusable, match=r"(?s)recover on the snapshot of epoch 0: .*Restore the whole data directory"):
        deployment.load([0])
    with pytest.raises(Unusable, match="recover without a snapshot: "):
        deployment.load([0], snapshot=False)


def test_a_log_that_lacks_recorded_requests_is_explained() -> None:
    deployment = Deployment()
    deployment.append(Stream.EPOCHS, 0, b"")
    deployment.log = _without_last_request(deployment.log)
    with pytest.raises(Unusable, match=r"requests partition 1 ends at offset 1, .* up to offset 2 .* are missing"):
        deployment.load([0, 1])


def test_garbage_in_the_epochs_stream_is_no_silent_end() -> None:
    deployment = Deployment()
    log = MemoryLog()
    for payload in (encode(GenerationMarker(1, -1)), b"\xc1"):
        log.append(Stream.EPOCHS, 0, 0, payload)
    log.flush()
    deployment.log = log
    with pytest.raises(Unusable):
        deployment.load([0], snapshot=False)


def test_an_unreachable_store_is_not_a_damaged_one() -> None:
    class Unreachable(MemoryStore):
        def get_range(self, name: str, start: int, size: int) -> bytes:
            raise OSError("no route to host")

    deployment = Deployment()
    deployment.store = Unreachable()
    with pytest.raises(OSError, match="no route"):
        deployment.load([0])


def _without_last_request(log: MemoryLog) -> MemoryLog:
    """The same log, of which a backup has missed slot 1's last request."""
    shorter = MemoryLog()
    for stream in Stream:
        for partition in (0, 1):
            records = list(log.read(stream, partition, 0))
            kept = records[:-1] if (stream, partition) == (Stream.REQUESTS, 1) else records
            for record in kept:
                shorter.append(stream, partition, 0, record.payload)
    shorter.flush()
    return shorter
