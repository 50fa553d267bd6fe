"""A snapshot object: the changes, or the whole state, of several slots as bytes, with digests that reveal damage.

Pure encoding. Keys keep their type (str, int, tuple, bytes); values are already bytes. A slot's part of an object can
be read alone. Paper section 7.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec

from styx.errors import EngineFailed
from styx.protocol.manifest import ObjectRef
from styx.state.slot_state import Delta

MAGIC = b"STYXDLT3"
OTHER_FORMATS = (b"STYXDLT2",)
DIGEST_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, list[Any], list[bytes | None]]).decode
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
    body = check_part(ref, data)
    delta: Delta = {}
    position = 0
    while position < len(body):
        end = position + 4 + int.from_bytes(body[position : position + 4], "big")
        operator, keys, values = _decode(body[position + 4 : end])
        if list in map(type, keys):
            keys = [tuple(key) if type(key) is list else key for key in keys]
        delta.setdefault(operator, {}).update(zip(keys, values, strict=True))
        position = end
    return delta


def check_object(refs: Iterable[ObjectRef], data: bytes) -> None:
    """Raises `ObjectCorrupt` if one of these parts is not in the object as it was stored."""
    view = memoryview(data)
    for ref in refs:
        check_part(ref, view[ref.start : ref.start + ref.size])
