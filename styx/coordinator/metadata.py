"""The coordinator's durable metadata: manifests in the object store, each with a checksum, and generations in the log.

Reading skips damaged manifests and says which; writing one is one atomic put. Decides nothing about what they mean.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from styx.log.base import LogReader, Stream
from styx.protocol import Manifest
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from styx.sequencer.epoch_record import decode as decode_record
from styx.store.base import NotFound, Store

MANIFEST_PREFIX = "manifests/"
_MAGIC = b"STYXMET1"

_encode = msgspec.msgpack.Encoder().encode
_decode_manifest = msgspec.msgpack.Decoder(Manifest).decode


def manifest_name(generation: int, epoch: int) -> str:
    """Sorts by epoch, then generation."""
    return f"{MANIFEST_PREFIX}{epoch:019d}-{generation:010d}"


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Durable when it returns; this put is what makes the snapshot one."""
    store.put(manifest_name(manifest.generation, manifest.epoch), _sealed(_encode(manifest)))


def last_generation(manifests: list[Manifest], log: LogReader) -> int:
    """The highest generation that ever had a marker, 0 for none.

    The log is released behind a manifest only, whose generation is at least that of every marker released with it.
    """
    first, _ = log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)
    markers = (decode_record(record.payload) for record in log.read(Stream.EPOCHS, EPOCHS_PARTITION, first))
    return max([0, *(m.generation for m in manifests), *(m.generation for m in markers)])


def read_manifests(store: Store) -> tuple[list[Manifest], list[str]]:
    """(usable manifests, newest first; names of damaged ones)."""
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
    return manifests, damaged


def _sealed(body: bytes) -> bytes:
    return _MAGIC + crc32(body).to_bytes(4, "big") + body


def _unsealed(data: bytes) -> bytes | None:
    body = data[len(_MAGIC) + 4 :]
    if data[: len(_MAGIC)] != _MAGIC or crc32(body).to_bytes(4, "big") != data[len(_MAGIC) : len(_MAGIC) + 4]:
        return None
    return body
