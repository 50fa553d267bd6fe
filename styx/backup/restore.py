"""Restoring a backup into an empty store, for a log in which the app has no topics yet.

Everything is verified before anything is written. The store's claim says that a restore is under way until the restore
is complete, so that no coordinator begins on a part of it. An interrupted restore can be run again. The backup is never
changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from styx.backup.copying import for_each, persistently
from styx.backup.index import Damaged, Entry, Index, is_whole, object_name
from styx.backup.restored import restored_manifest
from styx.deployment.claim import NAME as CLAIM_NAME
from styx.deployment.claim import Claim, decode_claim, encode_claim, read_claim
from styx.deployment.package_format import PackageHeader, PackageRefused, seal, unseal
from styx.deployment.versions import PREFIX as VERSIONS_PREFIX
from styx.deployment.versions import note_running, version_name
from styx.errors import ConfigurationError
from styx.kafka.address import KafkaAddress
from styx.kafka.topics import existing_topics, topics_of
from styx.protocol.manifest import Manifest
from styx.snapshot.manifest import decode_manifest, encode_manifest, manifest_name
from styx.snapshot.part import SLOT_PREFIX, ObjectCorrupt, check_object
from styx.snapshot.spans import parts_of
from styx.store.base import NotFound, Store, StoreReader


@dataclass(frozen=True)
class Backup:
    """A backup whose every object was found whole; `packages` are the versions of the app, with their payloads."""

    name: str
    index: Index
    claim: Claim
    manifest: Manifest
    packages: dict[int, tuple[PackageHeader, bytes]]


def app_of(store: StoreReader) -> str:
    """The app whose data is in the store; empty if there is none, or a part of it that a restore has left."""
    claim = persistently(lambda: read_claim(store))
    return "" if claim is None or claim.restoring else claim.app


def check_store(store: Store, backup: str) -> None:
    """Raises `ConfigurationError` unless it is empty, or has what an interrupted restore of this backup left."""
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
    """Raises `ConfigurationError` if the app has topics, which the restored state would not fit, and `OSError`."""
    there = await existing_topics(address, topics_of(app))
    if there:
        raise ConfigurationError(
            f"{address.bootstrap} has the topics {', '.join(there)}. What they hold does not fit the restored state: "
            "use another Kafka, or delete them if no cluster uses them any more. An app's name is part of its package, "
            "and of its topics' names, and cannot be changed by a restore"
        )


def verify(place: StoreReader, name: str, index: Index, secret: bytes) -> Backup:
    """Reads all of the backup, whose cluster had `secret`. Raises `Damaged`, `ConfigurationError` and `OSError`."""
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
    return Backup(name, index, claim, manifest, packages)


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
        persistently(partial(note_running, store, number))
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
