"""Storing a worker's part of a snapshot, and the check that it is stored. Blocks; for a background thread.

A request to the store costs more than storing a slot's changes of a second, so slots share objects. Errors of the store
are raised; the caller retries and reports. Paper section 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from styx.protocol.manifest import Manifest, ObjectRef, SlotPart
from styx.snapshot.part import encode_delta, object_name, reference
from styx.store.base import NotFound, Store, StoreReader
from styx.worker.events import StoreSlots

OBJECT_BYTES: Final = 32 * 1024 * 1024
"""An object that has reached this size is stored, and the next slot begins another one."""


def store_slots(
    wanted: StoreSlots, epochs_offset: int, replies: Mapping[int, dict[int, int]], store: Store
) -> list[SlotPart]:
    """Answers `StoreSlots`. The offsets are where the logs stood when the effect was made; `replies` are by slot."""
    parts: list[SlotPart] = []
    number, size, encoded = 0, 0, list[bytes]()
    for content in wanted.slots:
        ref: ObjectRef | None = None
        if any(content.delta.values()):
            name = object_name(wanted.worker, wanted.generation, wanted.epoch, number)
            data = encode_delta(content.delta)
            ref = reference(name, data, size)
            encoded.append(data)
            size += len(data)
            if size >= OBJECT_BYTES:
                store.put(name, b"".join(encoded))
                number, size, encoded = number + 1, 0, []
        slot, offset, pending = content.slot, content.next_offset, content.pending
        given, whole, passed_over = replies[slot], content.whole, content.passed_over
        parts.append(SlotPart(slot, offset, pending, epochs_offset, given, ref, whole, passed_over))
    if encoded:
        store.put(object_name(wanted.worker, wanted.generation, wanted.epoch, number), b"".join(encoded))
    return parts


def check_stored(store: StoreReader, manifest: Manifest) -> None:
    """Raises `OSError` if a part of the snapshot is not in the coordinator's own store, before a manifest names it. A
    worker that uses another store, for example during an upgrade that changes the store's address, stores its parts
    there. One request for each new object.
    """
    names = {slot.part.stored.name for slot in manifest.slots if slot.part.stored is not None}
    for name in sorted(names):
        try:
            store.get_range(name, 0, 1)
        except NotFound as error:
            raise OSError(
                f"{error}, although a worker says that it has stored it: do all workers use the coordinator's store? "
                "See STYX_STORE and the options of the store"
            ) from None
