"""The coordinator's durable metadata: manifests in the object store, each with a checksum, and generations in the log.

Reading skips damaged manifests and names them; writing a manifest is one atomic put. `beginning`, which does no I/O,
says what a coordinator starts from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

import msgspec

from styx.coordinator.events import Started
from styx.log.base import LogReader, Stream
from styx.protocol.manifest import Manifest
from styx.sequencer.epoch_record import EPOCHS_PARTITION, EpochRecord, GenerationMarker
from styx.sequencer.epoch_record import decode as decode_record
from styx.store.base import NotFound, Store, StoreReader

MANIFEST_PREFIX = "manifests/"
_MAGIC = b"STYXMET1"

_encode = msgspec.msgpack.Encoder().encode
_decode_manifest = msgspec.msgpack.Decoder(Manifest).decode


def manifest_name(generation: int, epoch: int) -> str:
    """Sorts by epoch, then generation."""
    return f"{MANIFEST_PREFIX}{epoch:019d}-{generation:010d}"


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Durable when it returns; this put is what makes the snapshot one."""
    store.put(manifest_name(manifest.generation, manifest.epoch), encode_manifest(manifest))


class Generations(NamedTuple):
    """What the epochs stream tells: retained markers with their offsets, oldest first, and the highest generation."""

    markers: list[tuple[int, GenerationMarker]]
    highest: int
    last_epoch: int = -1
    """The last epoch of which there is a record, void or not; -1 without one."""


def read_generations(log: LogReader) -> Generations:
    """Reads all that the log retains."""
    first, _ = log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)
    markers, highest, last_epoch = [], 0, -1
    for record in log.read(Stream.EPOCHS, EPOCHS_PARTITION, first):
        entry = decode_record(record.payload)
        highest = max(highest, entry.generation)
        if isinstance(entry, GenerationMarker):
            markers.append((record.offset, entry))
        elif isinstance(entry, EpochRecord):
            last_epoch = max(last_epoch, entry.epoch)
    return Generations(markers, highest, last_epoch)


def newest_first(manifests: Iterable[Manifest]) -> list[Manifest]:
    """An epoch of an older generation does not count beside any of a newer one."""
    return sorted(manifests, key=lambda m: (m.generation, m.epoch), reverse=True)


def beginning(manifests: list[Manifest], damaged: list[str], generations: Generations) -> Started:
    """What a coordinator starts from; `damaged` are names of further manifests.

    The log is released behind a manifest only, whose generation is at least that of every marker released with it.
    Void is a manifest of a generation whose epoch was not yet whole in the log when a newer one's marker came: a
    coordinator that did not know of its end has stored it.
    """
    markers = generations.markers
    void = [m for m in manifests if any(mark.generation > m.generation and at < _end(m) for at, mark in markers)]
    usable = newest_first(m for m in manifests if m not in void)
    generation, version, since = (0, 0, -1) if not markers else (0, markers[0][1].app_version, -1)
    versions = {m.epoch: m.app_version for m in usable}
    for _, marker in markers:
        # The marker before it may be released already, but not the snapshot that the version began on.
        if marker.app_version != version or versions.get(marker.snapshot_epoch, version) != version:
            since = marker.snapshot_epoch
        generation, version = marker.generation, marker.app_version
    if usable and usable[0].generation > generation:
        generation, version = usable[0].generation, usable[0].app_version
    unusable = [*damaged, *(manifest_name(m.generation, m.epoch) for m in void)]
    return Started(max(generation, generations.highest), usable, version, since, unusable)


class Beginning(NamedTuple):
    """What a coordinator finds when it begins: what its core is told, and what that was made of."""

    started: Started
    damaged: list[str]
    """Names of damaged manifests."""
    generations: Generations


def read_beginning(store: StoreReader, log: LogReader) -> Beginning:
    """For a coordinator that has fenced all older ones: none of their markers can still be on its way."""
    generations = read_generations(log)
    manifests, damaged = read_manifests(store)
    return Beginning(beginning(manifests, damaged, generations), damaged, generations)


def _end(manifest: Manifest) -> int:
    """Every record of the manifest's epoch stands before this offset, and some may stand right before it."""
    return max(slot.part.epochs_offset for slot in manifest.slots)


def read_manifests(store: StoreReader) -> tuple[list[Manifest], list[str]]:
    """(undamaged manifests, newest epoch first; names of damaged ones)."""
    manifests: list[Manifest] = []
    damaged: list[str] = []
    for name in reversed(store.list(MANIFEST_PREFIX)):
        try:
            manifest = decode_manifest(store.get(name))
        except NotFound:
            continue
        if manifest is None:
            damaged.append(name)
        else:
            manifests.append(manifest)
    return manifests, damaged


def encode_manifest(manifest: Manifest) -> bytes:
    """The content of its object."""
    return _sealed(_encode(manifest))


def decode_manifest(data: bytes) -> Manifest | None:
    """From the content of its object; None if that is damaged."""
    body = _unsealed(data)
    try:
        return None if body is None else _decode_manifest(body)
    except msgspec.DecodeError:
        return None


def _sealed(body: bytes) -> bytes:
    return _MAGIC + crc32(body).to_bytes(4, "big") + body


def _unsealed(data: bytes) -> bytes | None:
    body = data[len(_MAGIC) + 4 :]
    if data[: len(_MAGIC)] != _MAGIC or crc32(body).to_bytes(4, "big") != data[len(_MAGIC) : len(_MAGIC) + 4]:
        return None
    return body
