"""Taking a backup: the newest snapshot of a cluster that may be running, copied out of its store.

Only the store is read, and nothing is changed there. The coordinator deletes objects that its last two snapshots do not
need: when an object has gone, the backup goes on with the snapshot that is newest by then. A backup needs no
coordinator and no log, so it lacks all that was recorded after its snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Final

from styx.backup.index import (
    Damaged,
    Entry,
    Index,
    backup_name,
    encode_index,
    entry_of,
    index_name,
    object_name,
)
from styx.backup.places import check_place, for_each, persistently
from styx.deployment.claim import NAME as CLAIM_NAME
from styx.deployment.claim import Claim, encode_claim, read_claim
from styx.deployment.package_format import PackageRefused, unseal
from styx.deployment.versions import load_published, load_version, ran_name, version_before, version_name
from styx.errors import ConfigurationError
from styx.protocol.manifest import Manifest
from styx.snapshot.manifest import encode_manifest, manifest_name, newest_first, read_manifests
from styx.snapshot.part import ObjectCorrupt, Parts, check_object, parts_of
from styx.store.base import NotFound, Store, StoreReader
from styx.version import __version__

FRUITLESS_MAX: Final = 10
"""Snapshots in a row that may be deleted during the backup while the bytes left to copy reach no new minimum."""


@dataclass(frozen=True)
class Taken:
    """A backup that was taken. `pending` counts the unfinished requests in it, which a restored cluster finishes."""

    name: str
    index: Index
    pending: int


def take_backup(
    source: StoreReader,
    target: Store,
    taken_at: datetime,
    secret: bytes | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Taken:
    """Copies the newest snapshot, its app and the deployment's claim; `tell` gets lines about the progress.

    With the cluster's `secret` the app's signature is checked too. Raises `Damaged`, `ConfigurationError` if one of the
    stores is not what it should be, and `OSError` if one is out of reach.
    """
    claim = _claim_of(source)
    check_place(target, claim.app)
    backup = _Backup(source, target, taken_at, tell)
    manifest = backup.copy_snapshot()
    if claim.n_slots != len(manifest.slots):
        raise Damaged(
            f"the object {CLAIM_NAME} tells of {claim.n_slots} slots, and the snapshot of epoch {manifest.epoch} has "
            f"{len(manifest.slots)}: one of them is of another cluster, or damaged"
        )
    backup.put(CLAIM_NAME, encode_claim(claim))
    for number in versions_needed(source, manifest.app_version):
        backup.put(version_name(number), _package(source, number, secret))
    published = persistently(lambda: load_published(source, manifest.app_version))
    if published:
        backup.put(ran_name(manifest.app_version), published)
    name = manifest_name(manifest.generation, manifest.epoch)
    backup.put(name, encode_manifest(manifest))
    index = Index(
        styx=__version__,
        app=claim.app,
        taken_at=taken_at.isoformat(timespec="seconds"),
        generation=manifest.generation,
        epoch=manifest.epoch,
        app_version=manifest.app_version,
        manifest=name,
        objects=sorted(backup.entries.values(), key=lambda entry: entry.name),
    )
    persistently(lambda: target.put(index_name(backup.name), encode_index(index)))
    return Taken(backup.name, index, sum(len(slot.part.pending) for slot in manifest.slots))


def versions_needed(store: StoreReader, version: int) -> list[int]:
    """Numbers of the app's versions that a cluster on `version` needs: this one, and the one before for a rollback."""
    before = persistently(lambda: version_before(store, version))
    return [before, version] if before else [version]


class _Backup:
    def __init__(self, source: StoreReader, target: Store, taken_at: datetime, tell: Callable[[str], None]) -> None:
        self.name = backup_name(taken_at)
        self.entries: dict[str, Entry] = {}
        self._source = source
        self._target = target
        self._tell = tell
        self._lock = Lock()

    def put(self, name: str, data: bytes) -> None:
        """Stores an object of the backup; any thread."""
        persistently(lambda: self._target.put(object_name(self.name, name), data))
        with self._lock:
            self.entries[name] = entry_of(name, data)

    def copy_snapshot(self) -> Manifest:
        """Copies the objects of the snapshot that is the newest at the end of the copying."""
        least: int | None = None
        fruitless = 0
        manifest = self._newest()
        while True:
            parts = parts_of(manifest)
            # What was copied for an older snapshot holds: an object never changes, and later ones need less of it.
            missing = {name: refs for name, refs in parts.items() if name not in self.entries}
            left = sum(ref.size for refs in missing.values() for ref in refs)
            if least is None or left < least:
                least, fruitless = left, 0
            else:
                fruitless += 1
            if fruitless > FRUITLESS_MAX:
                raise OSError(
                    f"{FRUITLESS_MAX} snapshots were replaced faster than they could be copied: {left} bytes are left. "
                    "Run the backup nearer to both stores, or give the coordinator a longer --snapshot-interval"
                )
            self._tell(f"epoch {manifest.epoch}: {len(missing)} objects with {left} bytes to copy")
            try:
                for_each(missing, partial(self._copy, missing))
            except NotFound as gone:
                manifest = self._after(manifest, gone)
                continue
            self._drop(self.entries.keys() - parts.keys())
            return manifest

    def _copy(self, parts: Parts, name: str) -> None:
        data = persistently(lambda: self._source.get(name))
        try:
            check_object(parts[name], data)
        except ObjectCorrupt as error:
            raise Damaged(f"{error}. There is no backup of a snapshot that is damaged") from None
        self.put(name, data)

    def _after(self, manifest: Manifest, gone: NotFound) -> Manifest:
        newest = self._newest()
        if newest == manifest:
            raise Damaged(
                f"the store lacks the object {gone.name}, which its newest snapshot, of epoch {manifest.epoch}, needs. "
                "There is no backup of a snapshot that is damaged"
            )
        return newest

    def _newest(self) -> Manifest:
        manifests, damaged = persistently(lambda: read_manifests(self._source))
        for name in damaged:
            self._tell(f"the manifest {name} is damaged: its checksum does not match; trying the one before it")
        if manifests:
            # Without the log it cannot be known whether the coordinator that stored it had been replaced just then. Its
            # state is a serial one even so, and has everything that was acknowledged before it.
            return newest_first(manifests)[0]
        if damaged:
            raise Damaged(f"all manifests in the store are damaged: {', '.join(damaged)}")
        raise OSError(
            "the store has no snapshot yet: the coordinator takes one every --snapshot-interval seconds while there is "
            "work, and at an orderly stop"
        )

    def _drop(self, names: set[str]) -> None:
        for name in sorted(names):
            del self.entries[name]
            persistently(partial(self._target.delete, object_name(self.name, name)))


def _claim_of(source: StoreReader) -> Claim:
    claim = persistently(lambda: read_claim(source))
    if claim is None:
        raise ConfigurationError("no cluster has its data in this store: give the --store of its coordinator")
    if claim.restoring:
        raise ConfigurationError(f"the restore of backup {claim.restoring} into this store has not ended")
    return claim


def _package(source: StoreReader, number: int, secret: bytes | None) -> bytes:
    package = persistently(lambda: load_version(source, number))
    if package is None:
        raise Damaged(f"the store lacks {version_name(number)}, version {number} of the app, which the snapshot needs")
    if secret is not None:
        try:
            unseal(package, secret)
        except PackageRefused as error:
            raise Damaged(f"{version_name(number)}, version {number} of the app, cannot be used: {error}") from None
    return package
