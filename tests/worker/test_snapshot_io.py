"""A slot's part of a snapshot: stored under a name of its own, merged without a loss."""

from __future__ import annotations

from typing import Any

from styx.protocol import ObjectRef, SlotPart
from styx.store import MemoryStore
from styx.worker.events import MergeObjects, StoreSlot
from styx.worker.slot import Delta
from styx.worker.snapshot_io import merge_stored, store_slot
from styx.worker.snapshot_object import decode_delta


def stored(store: MemoryStore, epoch: int, delta: Delta, generation: int = 1) -> SlotPart:
    return store_slot(StoreSlot(generation, epoch, 3, delta, 40, []), 50, {3: 60}, store)


def content(store: MemoryStore, ref: ObjectRef | None) -> Any:
    assert ref is not None
    return decode_delta(ref, store.get(ref.name))


def test_a_part_says_where_everything_goes_on() -> None:
    store = MemoryStore()
    part = stored(store, 7, {"operator": {"key": b"1"}})
    assert (part.slot, part.next_offset, part.epochs_offset, part.replies, part.pending) == (3, 40, 50, {3: 60}, [])
    assert content(store, part.stored) == {"operator": {"key": b"1"}}


def test_no_change_is_no_object() -> None:
    store = MemoryStore()
    assert stored(store, 7, {}).stored is None
    assert stored(store, 7, {"operator": {}}).stored is None
    assert store.list("") == []


def test_the_same_epoch_of_two_generations_has_two_objects() -> None:
    store = MemoryStore()
    for generation in (1, 2):
        stored(store, 7, {"operator": {"key": b"1"}}, generation)
    assert len(store.list("")) == 2


def test_a_merge_has_the_effect_of_its_parts_oldest_first() -> None:
    store = MemoryStore()
    deltas: list[Delta] = [{"operator": {"a": b"1", "b": b"1"}}, {"operator": {"a": b"2", "b": None}}]
    refs = [ref for epoch, delta in enumerate(deltas) if (ref := stored(store, epoch, delta).stored) is not None]
    assert content(store, merge_stored(MergeObjects(1, 3, refs, False), store)) == {"operator": {"a": b"2", "b": None}}
    assert content(store, merge_stored(MergeObjects(1, 3, refs, True), store)) == {"operator": {"a": b"2"}}


def test_a_merged_object_takes_its_place_in_the_order_of_names() -> None:
    store = MemoryStore()
    refs = []
    for epoch in (5, 6, 8):
        ref = stored(store, epoch, {"operator": {"a": b"%d" % epoch}}).stored
        assert ref is not None
        refs.append(ref)
    merged = merge_stored(MergeObjects(2, 3, refs[:2], True), store)
    assert merged.name not in {ref.name for ref in refs}
    assert refs[1].name < merged.name < refs[2].name
    again = merge_stored(MergeObjects(2, 3, [merged, refs[2]], True), store)
    assert len({merged.name, again.name, *(ref.name for ref in refs)}) == 5
