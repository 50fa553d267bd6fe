"""The snapshot that is looked at: one of a cluster's store, of a place for backups, or of an embedded engine's data
directory.

Only the store is read; neither a coordinator, nor the log, nor a lock of the directory is needed, so an engine may be
running. What was acknowledged after the snapshot is not in it. Blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from styx.backup.index import Damaged, object_name
from styx.backup.places import persistently, read_index
from styx.deployment.claim import read_claim
from styx.deployment.package_format import PackageRefused, unseal, unverified_header
from styx.deployment.versions import load_version, version_name
from styx.embedded_engine.app_record import read_record
from styx.embedded_engine.storage import LOG_NAME, OBJECTS_NAME
from styx.errors import ConfigurationError
from styx.protocol.manifest import Manifest
from styx.schema.description import AppDescription
from styx.snapshot.load import Objects
from styx.snapshot.manifest import decode_manifest, newest_first, read_manifests
from styx.store.base import StoreReader
from styx.store.directory import DirectoryStore

LATEST: Final = "latest"
"""The newest snapshot, or backup."""


@dataclass(frozen=True)
class Source:
    """A snapshot: its manifest, the store that has the objects which that names, and what the app declares that made
    it. `named`: as messages name it. `again`: what to do if objects of it go while it is being read.
    """

    named: str
    manifest: Manifest
    objects: Objects
    description: AppDescription
    again: str = ""

    @property
    def n_slots(self) -> int:
        """Over how many slots the entities are spread."""
        return len(self.manifest.slots)


class Place(NamedTuple):
    """A store in which one snapshot follows another. `describe`: what a version of the app declares; it raises
    `Damaged` and `OSError`.
    """

    store: StoreReader
    describe: Callable[[int], AppDescription]


def place_of_cluster(store: StoreReader, secret: bytes | None = None) -> Place:
    """A cluster's store. Raises as `of_cluster`."""
    claim = persistently(lambda: read_claim(store))
    if claim is not None and claim.restoring:
        raise ConfigurationError(f"the restore of backup {claim.restoring} into this store has not ended")
    if claim is None:
        raise ConfigurationError(
            "no cluster has its data in this store: give the --store of its coordinator; a place for backups is given "
            "with --from, an embedded engine's directory with --data-dir"
        )

    def describe(version: int) -> AppDescription:
        return _described(persistently(lambda: load_version(store, version)), version_name(version), secret)

    return Place(store, describe)


def place_of_directory(directory: Path) -> Place:
    """An embedded engine's data directory. Raises `ConfigurationError`."""
    if not (directory / OBJECTS_NAME).is_dir():
        raise ConfigurationError(
            f"{directory} is no data directory: give the --data-dir of styx dev, or the data_dir of styx.embedded"
        )
    store = DirectoryStore(directory / OBJECTS_NAME, to_read=True)

    def describe(version: int) -> AppDescription:
        record = read_record(store, version)
        if record is None:
            raise Damaged(f"{directory} lacks the record of version {version} of the app, which made it")
        return record.description

    return Place(store, describe)


def of_cluster(store: StoreReader, snapshot: str = LATEST, secret: bytes | None = None) -> Source:
    """A snapshot of a cluster's store: the newest, or that of an epoch. With the cluster's `secret` the signature of
    the app's package is checked, too.

    Raises `ConfigurationError` for a store that is no cluster's and a snapshot that is not there, `Damaged`, and
    `OSError` for a store out of reach, or without a snapshot yet.
    """
    place = place_of_cluster(store, secret)
    manifest = _chosen(store, snapshot)
    description = place.describe(manifest.app_version)
    again = "Run it again; if the store's snapshots go faster than they are read, take a styx backup and look at that."
    return Source(f"the snapshot of epoch {manifest.epoch}", manifest, store, description, again)


def of_backup(place: StoreReader, backup: str = LATEST, secret: bytes | None = None) -> Source:
    """A backup, the newest or the one of that name. Raises as `of_cluster`."""
    name, index = read_index(place, "" if backup == LATEST else backup)
    objects = _BackupObjects(place, name)
    manifest = decode_manifest(objects.get(index.manifest))
    if manifest is None:
        raise Damaged(f"the manifest {index.manifest} in backup {name} is damaged: its checksum does not match")
    package = objects.get(version_name(manifest.app_version))
    description = _described(package, version_name(manifest.app_version), secret)
    return Source(f"backup {name}, epoch {manifest.epoch}", manifest, objects, description)


def of_directory(directory: Path, snapshot: str = LATEST) -> Source:
    """A snapshot of an embedded engine's data directory, as `of_cluster`."""
    place = place_of_directory(directory)
    manifest = _chosen(place.store, snapshot, directory / LOG_NAME)
    description = place.describe(manifest.app_version)
    return Source(
        f"the snapshot of epoch {manifest.epoch}",
        manifest,
        place.store,
        description,
        "A newer one took its place: run it again.",
    )


class _BackupObjects:
    """Reads a backup's objects by the names that they have in the store."""

    def __init__(self, place: StoreReader, backup: str) -> None:
        self._place = place
        self._backup = backup

    def get(self, name: str) -> bytes:
        return persistently(lambda: self._place.get(object_name(self._backup, name)))

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """As `StoreReader.get_range`."""
        return self._place.get_range(object_name(self._backup, name), start, size)


def _chosen(store: StoreReader, snapshot: str, log: Path | None = None) -> Manifest:
    manifests, damaged = persistently(lambda: read_manifests(store))
    # As for a backup: without the log it cannot be known whether the newest is void. Its state is a serial one anyway.
    manifests = newest_first(manifests)
    if not manifests and damaged:
        raise Damaged(f"all manifests in the store are damaged: {', '.join(damaged)}")
    if not manifests:
        raise OSError(
            "there is no snapshot yet: one is taken every --snapshot-interval seconds while there is work, and at an "
            "orderly stop" + ("" if log is None else f". {log} has what was recorded: start the app, and stop it")
        )
    if snapshot == LATEST:
        return manifests[0]
    for manifest in manifests:
        if snapshot == str(manifest.epoch):
            return manifest
    epochs = ", ".join(str(manifest.epoch) for manifest in manifests)
    raise ConfigurationError(
        f"there is no snapshot {snapshot!r}: a snapshot is {LATEST}, or one of the epochs {epochs}"
    )


def _described(package: bytes | None, name: str, secret: bytes | None) -> AppDescription:
    if package is None:
        raise Damaged(f"the store lacks {name}, the version of the app that made the snapshot")
    try:
        header = unverified_header(package) if secret is None else unseal(package, secret)[0]
    except PackageRefused as error:
        raise Damaged(f"{name}, the version of the app that made the snapshot, cannot be used: {error}") from None
    return header.description
