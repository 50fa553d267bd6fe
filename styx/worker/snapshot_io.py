"""Storing a slot's changes and merging stored objects: the store's side of a snapshot, for a background thread.

Blocking; never on the protocol's thread. Raises what the store raises; the caller retries and reports. Paper
section 7.1.
"""

from __future__ import annotations

from styx.protocol import ObjectRef, SlotPart
from styx.store.base import Store
from styx.worker.events import MergeObjects, StoreSlot
from styx.worker.snapshot_object import decode_delta, encode_delta, merge_objects, object_name, reference


def store_slot(wanted: StoreSlot, epochs_offset: int, replies: dict[int, int], store: Store) -> SlotPart:
    """Answers `StoreSlot`. The offsets are where the logs stood when the effect was made."""
    ref = None
    if any(wanted.delta.values()):
        name = object_name(wanted.slot, wanted.generation, wanted.epoch, "delta")
        ref = _put(name, encode_delta(wanted.delta), store)
    return SlotPart(wanted.slot, wanted.next_offset, wanted.pending, epochs_offset, replies, ref)


def merge_stored(wanted: MergeObjects, store: Store) -> ObjectRef:
    """Answers `MergeObjects`: reads the objects oldest first, writes one with their effect."""
    deltas = [decode_delta(ref, store.get(ref.name)) for ref in wanted.objects]
    newest = wanted.objects[-1].name.rsplit("/", 1)[-1].split("-")[0]
    name = object_name(wanted.slot, wanted.generation, int(newest), f"merged{len(wanted.objects)}")
    return _put(name, encode_delta(merge_objects(deltas, wanted.whole)), store)


def _put(name: str, data: bytes, store: Store) -> ObjectRef:
    store.put(name, data)
    return reference(name, data)
