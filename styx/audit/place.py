"""A place that is audited: a cluster's log and store, or an embedded engine's data directory.

It is read beside the processes that write it. Nothing is written, claimed or locked. Blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

import msgspec

from styx.audit.verdict import CannotJudge
from styx.backup.places import persistently
from styx.cluster.event_record import id_of_record
from styx.cluster.options import cluster_limits
from styx.deployment.claim import Claim, read_claim
from styx.deployment.package_format import PackageRefused, unverified_header
from styx.deployment.versions import load_version, version_name
from styx.embedded_engine.app_record import is_code_of, python_version, read_record
from styx.embedded_engine.event_stream import StoredEvent
from styx.embedded_engine.storage import LOG_NAME, OBJECTS_NAME
from styx.errors import ConfigurationError
from styx.kafka.event_topics import event_topic
from styx.kafka.reader import KafkaReader
from styx.log.base import LogReader, LogTruncated, Stream
from styx.log.sqlite_reader import SqliteReader
from styx.model.app import App
from styx.model.event_record import epoch_of
from styx.model.limits import Limits
from styx.protocol.manifest import Manifest
from styx.snapshot.manifest import newest_first, read_manifests
from styx.store.base import StoreReader
from styx.store.directory import DirectoryStore

EventTaken = Callable[[str, int, str, bytes], None]
"""Takes an event of the log: name, slot, id, JSON."""


class Place(Protocol):
    """`reply_partitions` is 0 if a slot's replies are in the partition of its number."""

    app: str
    n_slots: int
    reply_partitions: int
    store: StoreReader
    log: LogReader

    def close(self) -> None:
        """Lets go of the log."""
        ...

    def limits(self, version: int) -> Limits:
        """Those of a version of the app."""
        ...

    def check(self, app: App, version: int) -> None:
        """Raises `CannotJudge` if `app` is not the code of this version."""
        ...

    def replies(self, before: Manifest | None) -> Iterator[tuple[int, int, bytes]]:
        """(partition, sequence, record) of all replies behind a snapshot, each partition in its order. Raises
        `LogTruncated`.
        """
        ...

    def copy_events(self, before: Manifest | None, after: Manifest, take: EventTaken) -> tuple[list[str], list[str]]:
        """Gives the events between two snapshots to `take`; gives the names of those of which all are in the log, and
        notes on the others.
        """
        ...


def snapshots(place: Place) -> list[Manifest]:
    """The complete snapshots that the place has now, the newest first; some may be void."""
    return newest_first(persistently(lambda: read_manifests(place.store))[0])


class _ReplyHead(msgspec.Struct, array_like=True, frozen=True, gc=False):
    request_id: str
    sequence: int


_reply_head = msgspec.msgpack.Decoder(_ReplyHead).decode
_stored_event = msgspec.msgpack.Decoder(StoredEvent).decode

EVENTS_CUT: Final = "events {} were not compared: the log no longer has all of them"


class DirectoryPlace:
    """The data directory of an embedded engine. Raises `ConfigurationError` if it is none, and `LogFailed`."""

    reply_partitions = 0

    def __init__(self, directory: Path, app: App) -> None:
        if not (directory / OBJECTS_NAME).is_dir():
            raise ConfigurationError(
                f"{directory} is no data directory: give the --data-dir of styx dev, or the data_dir of styx.embedded"
            )
        self._directory = directory
        self._app = app
        self.store: StoreReader = DirectoryStore(directory / OBJECTS_NAME, to_read=True)
        claim = _claimed(self.store, app, str(directory))
        self.app, self.n_slots = claim.app, claim.n_slots
        self._reader = SqliteReader(directory / LOG_NAME)
        self.log: LogReader = self._reader

    def close(self) -> None:
        """As `Place.close`."""
        self._reader.close()

    def limits(self, version: int) -> Limits:
        """As `Place.limits`."""
        record = read_record(self.store, version)
        if record is None:
            raise CannotJudge(f"the directory has no record of version {version} of the app", passing=True)
        return record.limits

    def check(self, app: App, version: int) -> None:
        """As `Place.check`."""
        record = read_record(self.store, version)
        if record is None:
            raise CannotJudge(f"the directory has no record of version {version} of the app", passing=True)
        if record.python != python_version():
            raise CannotJudge(f"it was recorded on {record.python}, and this is {python_version()}")
        if not is_code_of(record, app):
            raise CannotJudge(_OTHER_CODE.format(version))

    def replies(self, before: Manifest | None) -> Iterator[tuple[int, int, bytes]]:
        """As `Place.replies`."""
        firsts = {} if before is None else {slot.part.slot: slot.part.replies for slot in before.slots}
        for slot in range(self.n_slots):
            for record in self.log.read(Stream.REPLIES, slot, firsts.get(slot, {}).get(slot, 0)):
                yield slot, _reply_head(record.payload).sequence, record.payload

    def copy_events(self, before: Manifest | None, after: Manifest, take: EventTaken) -> tuple[list[str], list[str]]:
        """As `Place.copy_events`."""
        since = -1 if before is None else before.epoch
        names = sorted(self._app.events)
        if not names:
            return [], []
        for slot in range(self.n_slots):
            first, end = self.log.bounds(Stream.EVENTS, slot)
            begin = self._search(slot, first, end, since)
            if begin == first > 0 and (begin == end or self._event(slot, begin).epoch > since):
                return [], [EVENTS_CUT.format(", ".join(names))]
            for record in self.log.read(Stream.EVENTS, slot, begin):
                event = _stored_event(record.payload)
                if event.epoch > after.epoch:
                    break
                if event.epoch > since:
                    take(event.event, slot, event.id, event.value)
        return names, []

    def _search(self, slot: int, first: int, end: int, since: int) -> int:
        """The offset of the first event of a later epoch than `since`, or the end."""
        while first < end:
            middle = (first + end) // 2
            if self._event(slot, middle).epoch > since:
                end = middle
            else:
                first = middle + 1
        return first

    def _event(self, slot: int, offset: int) -> StoredEvent:
        return _stored_event(next(self.log.read(Stream.EVENTS, slot, offset)).payload)


class ClusterPlace:
    """A cluster's store, and its log in Kafka. Raises `ConfigurationError` for a store that is no cluster's."""

    def __init__(self, store: StoreReader, reader: KafkaReader, app: App) -> None:
        claim = _claimed(store, app, "the store")
        self._app = app
        self._reader = reader
        self._limits = claim.limits or cluster_limits()
        self.store = store
        self.log: LogReader = reader
        self.app, self.n_slots, self.reply_partitions = claim.app, claim.n_slots, claim.reply_partitions

    def close(self) -> None:
        """As `Place.close`."""
        self._reader.close()

    def limits(self, version: int) -> Limits:
        """As `Place.limits`: all versions have the same."""
        return self._limits

    def check(self, app: App, version: int) -> None:
        """As `Place.check`."""
        from styx.deployment.package import check_surroundings, pack

        package = persistently(lambda: load_version(self.store, version))
        if package is None:
            raise CannotJudge(f"the store lacks {version_name(version)}, the version of the app that ran")
        try:
            header = unverified_header(package)
            check_surroundings(header)
            # What it is signed with does not matter: the two are compared, and none is run.
            own = unverified_header(pack(app, b"compared"))
        except PackageRefused as error:
            raise CannotJudge(str(error)) from None
        if own.fingerprint != header.fingerprint:
            raise CannotJudge(_OTHER_CODE.format(version))

    def replies(self, before: Manifest | None) -> Iterator[tuple[int, int, bytes]]:
        """As `Place.replies`."""
        bounds = self._reader.bounds_of(Stream.REPLIES)
        parts = [] if before is None else [slot.part.replies for slot in before.slots]
        firsts = {}
        for partition, (first, _) in bounds.items():
            wanted = min((part.get(partition, 0) for part in parts), default=0)
            if 0 < wanted < first or (before is None and first > 0):
                raise LogTruncated(f"replies partition {partition} begins at offset {first}, not {wanted}.")
            firsts[partition] = wanted
        for partition, _, sequence, record in self._reader.replies_of(firsts):
            yield partition, sequence, record

    def copy_events(self, before: Manifest | None, after: Manifest, take: EventTaken) -> tuple[list[str], list[str]]:
        """As `Place.copy_events`."""
        since = -1 if before is None else before.epoch
        parts = {} if before is None else {slot.part.slot: slot.part.events for slot in before.slots}
        names, notes = [], []
        for name in sorted(self._app.events):
            topic = event_topic(self.app, name)
            firsts = {slot: parts.get(slot, {}).get(name, 0) for slot in range(self.n_slots)}
            retained = self._reader.firsts_of(topic)
            if any(0 < firsts[slot] < first or (before is None and first) for slot, first in retained.items()):
                notes.append(EVENTS_CUT.format(name))
                continue
            names.append(name)
            for slot, record in self._reader.committed_of(topic, firsts, fenced=False):
                its_id = id_of_record(record)
                if its_id is not None and since < epoch_of(its_id) <= after.epoch:
                    take(name, slot, its_id, record.value or b"")
        return names, notes


_OTHER_CODE: Final = (
    "the app that was given is not the code of version {}, which ran: give the app as it was deployed, from the same "
    "files, as the same module"
)


def _claimed(store: StoreReader, app: App, where: str) -> Claim:
    claim = persistently(lambda: read_claim(store))
    if claim is None:
        raise ConfigurationError(
            f"{where} has no deployment's data: --store is that of the coordinator, --data-dir an embedded engine's"
        )
    if claim.restoring:
        raise ConfigurationError(f"the restore of backup {claim.restoring} into this store has not ended")
    if claim.app != app.name:
        raise ConfigurationError(f"{where} has the data of app {claim.app!r}, and the given one is {app.name!r}")
    return claim
