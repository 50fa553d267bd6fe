"""Snapshot objects come back as they were, and any change to them is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.snapshot import part as snapshot_io
from styx.snapshot.part import (
    ObjectCorrupt,
    Span,
    blocks,
    check_stored,
    decode_delta,
    encode_delta,
    object_name,
    reference,
    spans,
    store_slots,
    written_at,
)
from styx.state.slot_state import Delta
from styx.store import MemoryStore
from styx.worker.events import SlotContent, StoreSlots

scalars = st.text(max_size=3) | st.integers(-(2**63), 2**63 - 1)
keys = scalars | st.tuples(scalars, scalars) | st.binary(max_size=3)
deltas: st.SearchStrategy[Delta] = st.dictionaries(
    st.text(min_size=1, max_size=3), st.dictionaries(keys, st.none() | st.binary(max_size=4), min_size=1), max_size=3
)


@given(deltas)
def test_a_delta_comes_back_with_its_key_types(delta: Delta) -> None:
    data = encode_delta(delta)
    assert decode_delta(reference("name", data), data) == delta


@given(deltas, st.text(min_size=1, max_size=3))
def test_some_tables_of_a_part(delta: Delta, wanted: str) -> None:
    data = encode_delta(delta)
    found = list(blocks(reference("name", data), data, wanted.__ge__))
    assert {name: dict(zip(keys, values, strict=True)) for name, keys, values in found} == {
        name: entries for name, entries in delta.items() if wanted >= name
    }


def test_blocks_that_are_not_wanted_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_io, "BLOCK_ENTRIES", 2)
    data = encode_delta({"a": dict.fromkeys(range(5), b"x"), "b": {1: b"y"}})
    decoded: list[str] = []
    decode = snapshot_io._decode

    def counted(block: memoryview) -> tuple[str, list[object], list[bytes | None]]:
        decoded.append(decode(block)[0])
        return decode(block)

    monkeypatch.setattr(snapshot_io, "_decode", counted)
    assert [keys for _, keys, _ in blocks(reference("name", data), data, "b".__eq__)] == [[1]]
    assert decoded == ["b"]


def test_tables_without_a_change_take_no_room() -> None:
    assert encode_delta({"operator": {}}) == encode_delta({})


def test_any_flipped_bit_is_noticed() -> None:
    data = encode_delta({"operator": {"key": b"value", ("a", 1): None}})
    ref = reference("slots/0/object", data)
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(ObjectCorrupt, match="slots/0/object"):
                decode_delta(ref, bytes(damaged))


def test_any_truncation_or_extension_is_noticed() -> None:
    data = encode_delta({"operator": {"key": b"value"}})
    ref = reference("name", data)
    for damaged in [data + b"\0", *(data[:length] for length in range(len(data)))]:
        with pytest.raises(ObjectCorrupt, match="is damaged"):
            decode_delta(ref, damaged)


def test_another_good_object_is_not_this_one() -> None:
    one, other = encode_delta({"operator": {"key": b"1"}}), encode_delta({"operator": {"key": b"2"}})
    with pytest.raises(ObjectCorrupt):
        decode_delta(reference("one", one), other)


def test_an_older_format_is_named_as_such() -> None:
    data = encode_delta({"operator": {"key": b"value"}})
    older = b"STYXDLT2" + data[8:]
    with pytest.raises(ObjectCorrupt, match="written by an older version of styx"):
        decode_delta(reference("name", data), older)


def test_names_sort_by_epoch_and_are_unique() -> None:
    drawn = [
        (worker, generation, epoch, number)
        for epoch in (3, 20, 100)
        for generation in (1, 2, 11)
        for worker in (0, 9)
        for number in (0, 1)
    ]
    names = [object_name(*each) for each in drawn]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    assert [written_at(name) for name in names] == [(epoch, generation) for _, generation, epoch, _ in drawn]


OLD, MIDDLE, NEW = (object_name(0, generation, epoch, 0) for generation, epoch in ((1, 5), (1, 7), (2, 30)))


def part(name: str, start: int, size: int) -> ObjectRef:
    return ObjectRef(name, size, b"", start)


def manifest(*chains: list[ObjectRef]) -> Manifest:
    parts = [SlotPart(slot, 0, [], 0, {}, None) for slot in range(len(chains))]
    return Manifest(2, 30, 1, [SlotManifest(each, chain) for each, chain in zip(parts, chains, strict=True)])


def test_parts_of_several_slots_are_fetched_at_once() -> None:
    first, second, third = part(OLD, 0, 10), part(OLD, 10, 5), part(OLD, 15, 20)
    whole = manifest([first], [second], [third])
    assert spans(whole, [0, 1, 2]) == [Span(OLD, 0, 35, [(0, first), (1, second), (2, third)])]
    assert spans(whole, [1, 2]) == [Span(OLD, 10, 25, [(1, second), (2, third)])]
    assert spans(whole, [1]) == [Span(OLD, 10, 5, [(1, second)])]


def test_objects_come_in_the_order_in_which_they_were_written() -> None:
    whole = manifest([part(NEW, 0, 1)], [part(OLD, 0, 1), part(NEW, 1, 1)], [], [part(OLD, 1, 1), part(MIDDLE, 0, 1)])
    assert [span.name for span in spans(whole, [0, 1, 2, 3])] == [OLD, MIDDLE, NEW]
    assert spans(whole, [2]) == []


def test_without_a_snapshot_there_is_nothing_to_fetch() -> None:
    assert spans(None, [0]) == []


def test_a_chain_in_another_order_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="not in the order"):
        spans(manifest([part(NEW, 0, 1), part(OLD, 0, 1)]), [0])


def stored(store: MemoryStore, deltas: dict[int, Delta], generation: int = 1, worker: int = 0) -> list[SlotPart]:
    contents = [SlotContent(slot, delta, slot == 9, 40 + slot, []) for slot, delta in deltas.items()]
    replies = {slot: {slot: 60 + slot} for slot in deltas}
    return store_slots(StoreSlots(generation, 7, worker, contents), 50, replies, {}, store)


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
