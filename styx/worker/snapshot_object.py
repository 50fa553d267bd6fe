"""A snapshot object: one slot's changes as bytes, with a digest that tells a damaged object from a good one.

Pure encoding; never touches a store. Keys keep their type (str, int, tuple, bytes); values are already bytes.
Paper section 7.1.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from styx.errors import EngineFailed
from styx.protocol import ObjectRef
from styx.worker.slot import Delta, merge

MAGIC = b"STYXDLT1"
DIGEST_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, list[tuple[Any, bytes | None]]]).decode


class ObjectCorrupt(EngineFailed):
    """A snapshot object is not what was stored."""


def object_name(slot: int, generation: int, epoch: int, kind: str) -> str:
    """Unique for every object ever written: a generation takes at most one snapshot of an epoch."""
    return f"{SLOT_PREFIX}{slot:05d}/{epoch:019d}-{generation:010d}.{kind}"


SLOT_PREFIX = "slots/"


def generation_of(name: str) -> int:
    """The generation that wrote the object of this name, as `object_name` made it."""
    return int(name.rpartition("/")[2].split(".")[0].split("-")[1])


def encode_delta(delta: Delta) -> bytes:
    """The object's bytes: magic, digest of the rest, entries."""
    body = _encode({operator: list(entries.items()) for operator, entries in delta.items() if entries})
    return MAGIC + blake2b(body, digest_size=DIGEST_BYTES).digest() + body


def reference(name: str, data: bytes) -> ObjectRef:
    """What a manifest says of an object."""
    return ObjectRef(name, len(data), data[len(MAGIC) : len(MAGIC) + DIGEST_BYTES])


def decode_delta(ref: ObjectRef, data: bytes) -> Delta:
    """Raises `ObjectCorrupt` if `data` is not exactly what `ref` refers to."""
    body = memoryview(data)[len(MAGIC) + DIGEST_BYTES :]
    digest = blake2b(body, digest_size=DIGEST_BYTES).digest()
    header = data[: len(MAGIC) + DIGEST_BYTES]
    if header != MAGIC + ref.digest or len(data) != ref.size or digest != ref.digest:
        raise ObjectCorrupt(f"snapshot object {ref.name} is damaged: its checksum does not match its manifest's")
    return {
        operator: {(tuple(key) if isinstance(key, list) else key): value for key, value in entries}
        for operator, entries in _decode(body).items()
    }


def merge_objects(deltas: list[Delta], whole: bool) -> Delta:
    """One delta with the effect of `deltas`, oldest first; `whole`: nothing older exists, so deletions need no
    record.
    """
    merged = merge(deltas)
    if not whole:
        return merged
    return {
        operator: {key: value for key, value in entries.items() if value is not None}
        for operator, entries in merged.items()
    }
