"""No manifest counts on objects that are in another store than the coordinator's."""

from __future__ import annotations

import pytest

from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.snapshot.stored_parts import check_stored
from styx.store import MemoryStore


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
