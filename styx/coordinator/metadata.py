"""The coordinator's durable metadata in the object store: the generation number and the manifests, each with a checksum.

Reading skips damaged manifests and says which; writing is one atomic put each. Decides nothing about what they mean.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from styx.errors import EngineFailed
from styx.protocol import Manifest
from styx.store.base import NotFound, Store

GENERATION_NAME = "coordinator/generation"
MANIFEST_PREFIX = "manifests/"
_MAGIC = b"STYXMET1"

_encode = msgspec.msgpack.Encoder().encode
_decode_manifest = msgspec.msgpack.Decoder(Manifest).decode
_decode_generation = msgspec.msgpack.Decoder(int).decode


class MetadataCorrupt(EngineFailed):
    """The generation number in the store is damaged: going on could let an older generation back in."""


def manifest_name(generation: int, epoch: int) -> str:
    """Sorts by epoch, then generation."""
    return f"{MANIFEST_PREFIX}{epoch:019d}-{generation:010d}"


def write_generation(store: Store, generation: int) -> None:
    """Durable when it returns."""
    store.put(GENERATION_NAME, _sealed(_encode(generation)))


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Durable when it returns; this put is what makes the snapshot one."""
    store.put(manifest_name(manifest.generation, manifest.epoch), _sealed(_encode(manifest)))


def read(store: Store) -> tuple[int, list[Manifest], list[str]]:
    """(last generation, 0 for none; usable manifests, newest first; names of damaged manifests)."""
    try:
        body = _unsealed(store.get(GENERATION_NAME))
    except NotFound:
        generation = 0
    else:
        if body is None:
            raise MetadataCorrupt(
                f"{GENERATION_NAME} in the store is damaged. Nothing was changed. Restore it, or the whole "
                "directory, from a copy."
            )
        generation = _decode_generation(body)
    manifests: list[Manifest] = []
    damaged: list[str] = []
    for name in reversed(store.list(MANIFEST_PREFIX)):
        try:
            body = _unsealed(store.get(name))
            if body is None:
                damaged.append(name)
            else:
                manifests.append(_decode_manifest(body))
        except NotFound:
            continue
        except msgspec.DecodeError:
            damaged.append(name)
    return generation, manifests, damaged


def _sealed(body: bytes) -> bytes:
    return _MAGIC + crc32(body).to_bytes(4, "big") + body


def _unsealed(data: bytes) -> bytes | None:
    body = data[len(_MAGIC) + 4 :]
    if data[: len(_MAGIC)] != _MAGIC or crc32(body).to_bytes(4, "big") != data[len(_MAGIC) : len(_MAGIC) + 4]:
        return None
    return body
