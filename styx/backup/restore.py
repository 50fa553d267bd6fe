"""Restoring a backup into an empty store, for a log in which the app has no topics yet.

Everything is verified before anything is written. The store's claim says that a restore is under way until the restore
is complete, so that no coordinator begins on a part of it. An interrupted restore can be run again. The backup is never
changed.

The restored snapshot has the same state. Offsets belong to the log of the old cluster; in the new log everything begins
at 0. Epochs, generation, version of the app and unfinished transactions stay, so that a coordinator begins its next
generation on the snapshot as after any restart: `beginning` finds no marker, and takes both numbers from the manifest.

The TID counters go up, beyond every TID that the old cluster can have given since: TIDs determine `ctx.uuid()` and the
idempotency keys of external calls, so no TID may be given to two transactions. Unfinished transactions keep their TIDs.
An external call that one of them waits for is made again, with its old key, because its outcome may stand only in the
old log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from styx.backup.index import Damaged, Entry, Index, is_whole, object_name
from styx.backup.places import for_each, persistently
from styx.deployment.claim import NAME as CLAIM_NAME
from styx.deployment.claim import Claim, decode_claim, encode_claim, read_claim
from styx.deployment.package_format import PackageHeader, PackageRefused, seal, unseal
from styx.deployment.versions import PREFIX as VERSIONS_PREFIX
from styx.deployment.versions import note_running, ran_name, version_name
from styx.errors import ConfigurationError
from styx.kafka.address import KafkaAddress
from styx.kafka.event_topics import existing_event_topics
from styx.kafka.topics import existing_topics, topics_of
from styx.protocol.manifest import Manifest, SlotManifest
from styx.snapshot.manifest import decode_manifest, encode_manifest, manifest_name
from styx.snapshot.part import SLOT_PREFIX, ObjectCorrupt, check_object, parts_of
from styx.store.base import NotFound, Store, StoreReader

COUNTERS_SKIPPED: Final = 2**32
"""TIDs of each slot that a restore skips at least, also when the clock is wrong."""
COUNTERS_PER_SECOND: Final = 10_000
"""Above the requests of a slot per second, on average over a cluster's life."""


@dataclass(frozen=True)
class Backup:
    """A verified backup. `packages` are the versions of the app by number, with their payloads; `published` is what the
    store said of the types of events.
    """

    name: str
    index: Index
    claim: Claim
    manifest: Manifest
    packages: dict[int, tuple[PackageHeader, bytes]]
    published: bytes = b""


def app_of(store: StoreReader) -> str:
    """The app whose data is in the store. Empty if there is none, or only a part of it, of an interrupted restore."""
    claim = persistently(lambda: read_claim(store))
    return "" if claim is None or claim.restoring else claim.app


def check_store(store: Store, backup: str) -> None:
    """Raises `ConfigurationError` unless the store is empty, or an interrupted restore of this backup began there."""
    claim = persistently(lambda: read_claim(store))
    if claim is not None and claim.restoring == backup:
        return
    if claim is not None and claim.restoring:
        raise ConfigurationError(
            f"the restore of backup {claim.restoring} into the store has not ended: run it again with "
            f"--backup {claim.restoring}, or empty the store"
        )
    names = persistently(lambda: store.list(""))
    if names:
        raise ConfigurationError(
            f"the store is not empty, {names[0]!r} is there: restore into another bucket or prefix, or empty this one "
            "if nothing in it is needed"
        )


async def check_log(address: KafkaAddress, app: str) -> None:
    """Raises `ConfigurationError` if the app has topics there: their records would not fit the restored state. Raises
    `OSError` for a Kafka out of reach.
    """
    there = await existing_topics(address, topics_of(app)) + await existing_event_topics(address, app)
    if there:
        raise ConfigurationError(
            f"{address.bootstrap} has the topics {', '.join(there)}. What they hold does not fit the restored state: "
            "use another Kafka, or delete them if no cluster uses them any more. An app's name is part of its package, "
            "and of its topics' names, and cannot be changed by a restore"
        )


def verify(place: StoreReader, name: str, index: Index, secret: bytes) -> Backup:
    """Reads and checks all objects of a backup; `secret` is that of its cluster. Raises `Damaged`,
    `ConfigurationError` and `OSError`.
    """
    entries = {entry.name: entry for entry in index.objects}
    manifest = decode_manifest(_whole(place, name, _entry(entries, index.manifest)))
    if manifest is None:
        raise Damaged(f"the manifest {index.manifest} in backup {name} is damaged: its checksum does not match")
    claim = decode_claim(_whole(place, name, _entry(entries, CLAIM_NAME)))
    packages: dict[int, tuple[PackageHeader, bytes]] = {}
    for entry in index.objects:
        if entry.name.startswith(VERSIONS_PREFIX):
            number = int(entry.name.removeprefix(VERSIONS_PREFIX))
            packages[number] = _package(number, _whole(place, name, entry), secret)
    if manifest.app_version not in packages:
        raise Damaged(f"backup {name} lacks {version_name(manifest.app_version)}, the app that its snapshot ran on")
    parts = parts_of(manifest)

    def check(object: str) -> None:
        data = _whole(place, name, _entry(entries, object))
        try:
            check_object(parts[object], data)
        except ObjectCorrupt as error:
            raise Damaged(f"{error} (in backup {name})") from None

    for_each(parts, check)
    noted = entries.get(ran_name(manifest.app_version))  # older releases have none
    published = b"" if noted is None else _whole(place, name, noted)
    return Backup(name, index, claim, manifest, packages, published)


def restore(
    place: StoreReader,
    backup: Backup,
    store: Store,
    secret: bytes,
    now_s: float,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Copies a backup into an empty store; `secret` is the new cluster's, `now_s` the time in seconds since 1970.

    Raises `ConfigurationError` if the store is not empty, `Damaged`, and `OSError`.
    """
    check_store(store, backup.name)
    under_way = encode_claim(replace(backup.claim, restoring=backup.name))
    if not persistently(lambda: store.put_new(CLAIM_NAME, under_way)):
        raise ConfigurationError("another process has begun to use the store")
    tell(f"copying {len(backup.index.objects)} objects with {backup.index.size} bytes")
    entries = {entry.name: entry for entry in backup.index.objects if entry.name.startswith(SLOT_PREFIX)}

    def copy(name: str) -> None:
        data = _whole(place, backup.name, entries[name])
        persistently(lambda: store.put(name, data))

    for_each(entries, copy)
    for number, (header, payload) in backup.packages.items():
        package = seal(header, payload, secret)
        persistently(partial(store.put, version_name(number), package))
        published = backup.published if number == backup.manifest.app_version else b""
        persistently(partial(note_running, store, number, published))
    manifest = restored_manifest(backup.manifest, now_s)
    # If there is one, a restore at the same time, or an interrupted one, has stored it. With the first of these a
    # coordinator may be at work: what it has recorded since must be replayed from the same counters.
    persistently(lambda: store.put_new(manifest_name(manifest.generation, manifest.epoch), encode_manifest(manifest)))
    persistently(lambda: store.put(CLAIM_NAME, encode_claim(backup.claim)))


def _entry(entries: dict[str, Entry], name: str) -> Entry:
    entry = entries.get(name)
    if entry is None:
        raise Damaged(f"the index of the backup does not name {name}, which its snapshot needs")
    return entry


def _whole(place: StoreReader, backup: str, entry: Entry) -> bytes:
    try:
        data = persistently(lambda: place.get(object_name(backup, entry.name)))
    except NotFound:
        raise Damaged(f"backup {backup} lacks the object {entry.name}. Restore another backup") from None
    if not is_whole(entry, data):
        raise Damaged(
            f"the object {entry.name} in backup {backup} is damaged: its checksum does not match the index's. "
            "Restore another backup"
        )
    return data


def _package(number: int, package: bytes, secret: bytes) -> tuple[PackageHeader, bytes]:
    try:
        return unseal(package, secret)
    except PackageRefused as error:
        raise ConfigurationError(
            f"version {number} of the app cannot be used: {error}. If the cluster of the backup had another secret, "
            "give it with --from-secret-file"
        ) from None


def restored_manifest(manifest: Manifest, now_s: float) -> Manifest:
    """The manifest for an empty log; `now_s` is the time in seconds since 1970."""
    return replace(
        manifest, counter=counter_at(manifest.counter, now_s), slots=[_restored(slot) for slot in manifest.slots]
    )


def counter_at(counter: int, now_s: float) -> int:
    """A TID counter above that of any cluster that began on this snapshot, at a restart or a restore before now.

    Every restore sets the counters by the clock, and until the next restore no counter runs ahead of the clock.
    """
    return max(counter + COUNTERS_SKIPPED, int(now_s * COUNTERS_PER_SECOND))


def _restored(slot: SlotManifest) -> SlotManifest:
    pending = [replace(transaction, offset=0) for transaction in slot.part.pending]
    part = replace(slot.part, next_offset=0, epochs_offset=0, replies={}, events={}, pending=pending, passed_over=None)
    return replace(slot, part=part)
