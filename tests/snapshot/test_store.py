"""A worker's part of a snapshot: slots share objects, and each slot's part can be read alone."""

from __future__ import annotations

import pytest

from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.snapshot import store as snapshot_io
from styx.snapshot.part import decode_delta
from styx.snapshot.store import check_stored, store_slots
from styx.state.slot_state import Delta
from styx.store import MemoryStore
from styx.worker.events import SlotContent, StoreSlots


def stored(store: MemoryStore, deltas: dict[int, Delta], generation: int = 1, worker: int = 0) -> list[SlotPart]:
    contents = [SlotContent(slot, delta, slot == 9, 40 + slot, []) for slot, delta in deltas.items()]
    replies = {slot: {slot: 60 + slot} for slot in deltas}
    return store_slots(StoreSlots(generation, 7, worker, contents), 50, replies, store)


def content(store: MemoryStore, part: SlotPart) -> Delta:
    ref = part.stored
    assert ref is not None
    return decode_delta(ref, store.get_range(ref.name, ref.start, ref.size))


def changed(value: bytes) -> Delta:
    return {"operator": {"key": value}}


def test_a_part_says_where_everything_goes_on() -> None:
    [part, everything] = stored(MemoryStore(), {3: changed(b"1"), 9: changed(b"2")})
    assert (part.slot, part.next_offset, part.epochs_offset, part.replies, part.pending) == (3, 43, 50, {3: 63}, [])
    assert (part.whole, everything.whole) == (False, True)


def test_slots_share_an_object() -> None:
    store = MemoryStore()
    parts = stored(store, {slot: changed(b"%d" % slot) for slot in (3, 5, 9)})
    assert [content(store, part) for part in parts] == [changed(b"3"), changed(b"5"), changed(b"9")]
    assert len(store.list("")) == 1


def test_no_change_is_no_part_and_no_object() -> None:
    store = MemoryStore()
    assert [part.stored for part in stored(store, {3: {}, 4: {"operator": {}}})] == [None, None]
    assert store.list("") == []
    [_, part] = stored(store, {3: {}, 4: changed(b"4")})
    assert content(store, part) == changed(b"4")


@pytest.mark.parametrize(("limit", "objects"), [(1, 4), (100, 2), (1000, 1)])
def test_an_object_that_is_large_enough_is_the_last_slots(
    monkeypatch: pytest.MonkeyPatch, limit: int, objects: int
) -> None:
    monkeypatch.setattr(snapshot_io, "OBJECT_BYTES", limit)
    store = MemoryStore()
    parts = stored(store, {slot: changed(bytes([slot]) * 20) for slot in range(4)})
    assert [content(store, part) for part in parts] == [changed(bytes([slot]) * 20) for slot in range(4)]
    assert len(store.list("")) == objects


def test_generations_and_workers_have_objects_of_their_own() -> None:
    store = MemoryStore()
    for generation in (1, 2):
        for worker in (0, 1):
            stored(store, {worker: changed(b"1")}, generation, worker)
    assert len(store.list("")) == 4


# No manifest counts on objects that are in another store than the coordinator's --------------------------------


def snapshot(*stored: str | None) -> Manifest:
    refs = [None if name is None else ObjectRef(name, 4, b"") for name in stored]
    older = ObjectRef("slots/older", 4, b"")
    parts = [SlotPart(slot, 0, [], 0, {}, ref) for slot, ref in enumerate(refs)]
    return Manifest(1, 5, 9, [SlotManifest(part, [older]) for part in parts])


def test_what_is_new_must_be_there() -> None:
    store = MemoryStore()
    store.put("slots/a", b"aaaa")
    check_stored(store, snapshot("slots/a", None, "slots/a"))
    with pytest.raises(OSError, match=r"slots/b.*do all workers use the coordinator's store"):
        check_stored(store, snapshot("slots/a", "slots/b"))


def test_slots_without_changes_store_nothing() -> None:
    check_stored(MemoryStore(), snapshot(None, None))
