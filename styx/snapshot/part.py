"""A worker's part of a snapshot: objects that hold the changes, or the whole state, of several slots.

How an object is encoded, with digests that reveal damage; how a worker stores its part and the coordinator checks that
it is stored; which bytes of which objects a load reads, in the order in which it applies them. Keys keep their type
(str, int, tuple, bytes); values are already bytes. A slot's part of an object can be read alone. A request to the store
costs more than storing a slot's changes of a second, so slots share objects, and one request fetches the slots of a
worker from an object. `store_slots` and `check_stored` block, for a background thread, and raise the store's errors;
all else is pure. Paper section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import EngineFailed
from styx.protocol.manifest import Manifest, ObjectRef, SlotPart
from styx.state.slot_state import Delta
from styx.store.base import NotFound, Store, StoreReader
from styx.worker.events import StoreSlots

MAGIC = b"STYXDLT3"
OTHER_FORMATS = (b"STYXDLT2",)
DIGEST_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, list[Any], list[bytes | None]]).decode
_decode_name = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw, msgspec.Raw]).decode
BLOCK_ENTRIES = 4096
"""Entries that are encoded and decoded at once: other threads, the protocol's above all, run in between."""


class ObjectCorrupt(EngineFailed):
    """A snapshot object is not what was stored."""


def object_name(worker: int, generation: int, epoch: int, number: int) -> str:
    """Unique for every object ever written: a generation takes at most one snapshot of an epoch.

    `number` counts the objects that the worker needs for it.
    """
    return f"{SLOT_PREFIX}{epoch:019d}-{generation:010d}.{worker}-{number}"


SLOT_PREFIX = "slots/"


def written_at(name: str) -> tuple[int, int]:
    """(epoch, generation) of the snapshot that the object of this name was made for, as `object_name` made it."""
    epoch, generation = name.rpartition("/")[2].split(".")[0].split("-")
    return int(epoch), int(generation)


def unneeded(names: Iterable[str], keep: Collection[str], before: int) -> list[str]:
    """Of stored objects, those that no manifest in use names, and that generations before this one wrote.

    A newer generation's are none of its business, should it no longer be the newest.
    """
    return [name for name in names if name not in keep and written_at(name)[1] < before]


def encode_delta(delta: Delta) -> bytes:
    """A part's bytes: magic, digest of the rest, blocks of entries, each with its length in 4 bytes before it.

    A block is its operator, keys, and values: with a pair for each entry it would take twice as long.
    """
    parts: list[bytes] = []
    for operator, entries in delta.items():
        keys, values = iter(entries), iter(entries.values())
        while block := list(islice(keys, BLOCK_ENTRIES)):
            data = _encode((operator, block, list(islice(values, BLOCK_ENTRIES))))
            parts += (len(data).to_bytes(4, "big"), data)
    body = b"".join(parts)
    return MAGIC + blake2b(body, digest_size=DIGEST_BYTES).digest() + body


def reference(name: str, data: bytes, start: int = 0) -> ObjectRef:
    """What a manifest says of a part, which begins at `start` in its object."""
    return ObjectRef(name, len(data), data[len(MAGIC) : len(MAGIC) + DIGEST_BYTES], start)


def check_part(ref: ObjectRef, data: bytes | memoryview) -> memoryview:
    """The entries of a part, still encoded; raises `ObjectCorrupt` if `data` is not exactly what `ref` refers to."""
    body = memoryview(data)[len(MAGIC) + DIGEST_BYTES :]
    digest = blake2b(body, digest_size=DIGEST_BYTES).digest()
    header = data[: len(MAGIC) + DIGEST_BYTES]
    if len(data) == ref.size and digest == ref.digest and header[:-DIGEST_BYTES] in OTHER_FORMATS:
        raise ObjectCorrupt(f"snapshot object {ref.name} was written by an older version of styx, in another format")
    if header != MAGIC + ref.digest or len(data) != ref.size or digest != ref.digest:
        raise ObjectCorrupt(f"snapshot object {ref.name} is damaged: its checksum does not match its manifest's")
    return body


def decode_delta(ref: ObjectRef, data: bytes | memoryview) -> Delta:
    """Raises `ObjectCorrupt` if `data` is not exactly what `ref` refers to."""
    delta: Delta = {}
    for operator, keys, values in blocks(ref, data):
        delta.setdefault(operator, {}).update(zip(keys, values, strict=True))
    return delta


def blocks(
    ref: ObjectRef, data: bytes | memoryview, wanted: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, list[Any], list[bytes | None]]]:
    """The operator or table, keys and values of each block of the part, or of those blocks only whose name is `wanted`;
    of all others nothing but the name is decoded. Raises `ObjectCorrupt` as `decode_delta`, before the first one.
    """
    body = check_part(ref, data)
    position = 0
    while position < len(body):
        end = position + 4 + int.from_bytes(body[position : position + 4], "big")
        block = body[position + 4 : end]
        position = end
        if wanted is not None and not wanted(_decode_name(block)[0]):
            continue
        operator, keys, values = _decode(block)
        if list in map(type, keys):
            keys = [tuple(key) if type(key) is list else key for key in keys]
        yield operator, keys, values


def check_object(refs: Iterable[ObjectRef], data: bytes) -> None:
    """Raises `ObjectCorrupt` if one of these parts is not in the object as it was stored."""
    view = memoryview(data)
    for ref in refs:
        check_part(ref, view[ref.start : ref.start + ref.size])


Parts = dict[str, list[ObjectRef]]
"""By name of the object."""


class Span(NamedTuple):
    """`size` bytes of an object from `start` on; `parts` are what these slots have in it."""

    name: str
    start: int
    size: int
    parts: list[tuple[int, ObjectRef]]


def spans(manifest: Manifest | None, slots: Collection[int]) -> list[Span]:
    """One for each object that these slots need, the oldest snapshot's first, which is the order of every chain."""
    by_name: dict[str, list[tuple[int, ObjectRef]]] = {}
    for slot in () if manifest is None else manifest.slots:
        if slot.part.slot in slots:
            written = [written_at(ref.name) for ref in slot.objects]
            assert written == sorted(set(written)), "a slot's objects are not in the order in which they were written"
            for ref in slot.objects:
                by_name.setdefault(ref.name, []).append((slot.part.slot, ref))
    return [_span(name, by_name[name]) for name in sorted(by_name, key=written_at)]


def _span(name: str, parts: list[tuple[int, ObjectRef]]) -> Span:
    start = min(ref.start for _, ref in parts)
    return Span(name, start, max(ref.start + ref.size for _, ref in parts) - start, parts)


def parts_of(manifest: Manifest) -> Parts:
    """All that a recovery would read, by object, the oldest object first."""
    parts: Parts = {}
    for slot in manifest.slots:
        for ref in slot.objects:
            parts.setdefault(ref.name, []).append(ref)
    return dict(sorted(parts.items()))


OBJECT_BYTES: Final = 32 * 1024 * 1024
"""An object that has reached this size is stored, and the next slot begins another one."""


def store_slots(
    wanted: StoreSlots,
    epochs_offset: int,
    replies: Mapping[int, dict[int, int]],
    events: Mapping[int, dict[str, int]],
    store: Store,
) -> list[SlotPart]:
    """Answers `StoreSlots`. The offsets are where the logs stood when the effect was made; `replies` and `events` are
    by slot, the latter with nothing for a slot without any.
    """
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
        emitted = events.get(slot, {})
        parts.append(SlotPart(slot, offset, pending, epochs_offset, given, ref, whole, passed_over, emitted))
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
