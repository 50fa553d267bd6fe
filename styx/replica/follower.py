"""Follows the snapshots of a store: takes the newest whole, and of each later one what is new in it.

Reads objects that it has not seen, and nothing else. A snapshot that is damaged, or goes while it is read, is passed
over: what is held stays, until a later one can be read whole. Never writes. `look` blocks, for a thread of its own.
Paper section 7.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec.structs

from styx.backup.index import Damaged
from styx.errors import EngineFailed, StyxError
from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest
from styx.query.relations import Relation, relations
from styx.query.schema import Schema
from styx.query.source import Place
from styx.replica.state import EpochState, SlotChange, TooLarge, after, is_shown, whole
from styx.schema.description import AppDescription
from styx.snapshot.manifest import MANIFEST_PREFIX, decode_manifest
from styx.snapshot.part import blocks, spans
from styx.snapshot.prefetch import PrefetchingStore
from styx.state.slot_state import merge_into
from styx.store.base import NotFound

AGAIN_SECONDS: Final = 60.0
"""The pause until a snapshot that could not be read is tried again, if no later one comes."""
NONE_YET: Final = "the store has no snapshot yet: one is taken every --snapshot-interval seconds while there is work"
_MIB: Final = 2**20


class Moment(NamedTuple):
    """A complete epoch, with what its tables are. `schema` decodes them. `as_of_s`: until when nothing later was known
    of, in seconds since 1970; None if that is when the state came.
    """

    state: EpochState
    schema: Schema
    relations: list[Relation]
    as_of_s: float | None = None

    @property
    def age_s(self) -> float:
        """Seconds since then."""
        return max(0.0, time.time() - (self.state.closed_s if self.as_of_s is None else self.as_of_s))


class Described(NamedTuple):
    """What a version of the app says of its tables."""

    schema: Schema
    relations: list[Relation]


Wanted = Callable[[int, int], bool]
"""Whether the snapshot of a generation and an epoch is."""


def _any(_generation: int, _epoch: int) -> bool:
    return True


class _Mark(NamedTuple):
    """A snapshot by its manifest's name. Those of a newer generation are newer, whatever their epoch."""

    generation: int
    epoch: int
    name: str


class _Bad(NamedTuple):
    """A snapshot that could not be taken: since when, in seconds since 1970, and why."""

    since_s: float
    reason: str


class _Unreadable(Exception):
    """The snapshot cannot be read whole."""


@dataclass
class Followed:
    """What a follower has done: snapshots taken, passed over because they were damaged or gone, bytes read of objects,
    and the seconds that the last one took.
    """

    taken: int = 0
    passed_over: int = 0
    bytes_read: int = 0
    seconds: float = 0.0


class Follower:
    """Follows the snapshots of the store that `open_place` opens, which raises as `place_of_cluster`. `schema_of` makes
    of what a version declares the schema by which it is shown.

    `moment` is the newest complete epoch, None before the first. `trouble` says why there is none, or no newer one.
    """

    def __init__(
        self,
        open_place: Callable[[], Place],
        schema_of: Callable[[AppDescription], Schema],
        bytes_max: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.moment: Moment | None = None
        self.trouble: str | None = "the store has not been read yet"
        self.followed = Followed()
        self._open_place = open_place
        self._schema_of = schema_of
        self._bytes_max = bytes_max
        self._clock = clock
        self._place: Place | None = None
        self._held: _Mark | None = None
        self._objects: dict[int, list[ObjectRef]] = {}
        self._bad: dict[str, _Bad] = {}
        self._described: tuple[int, Described] | None = None

    @property
    def generation(self) -> int:
        """That which has stored what is held; -1 before the first."""
        return -1 if self._held is None else self._held.generation

    def look(self, wanted: Wanted = _any) -> bool:
        """Takes the newest snapshot that there is and that is `wanted`, if it is not held: an older one than what is
        held if that is not wanted. Returns whether it did. Never raises for what a store has or lacks: that is
        `trouble`.
        """
        try:
            return self._looked(self._opened(), wanted)
        except (StyxError, OSError) as error:
            self._place = None  # opened anew: the address may have moved
            self.trouble = f"the store cannot be read: {error}"
            return False

    def described(self, version: int) -> Described:
        """The schema of a version of the app, and its tables. Raises `StyxError` and `OSError`."""
        if self._described is None or self._described[0] != version:
            schema = self._schema_of(self._opened().describe(version))
            self._described = (version, Described(schema, relations(schema)))
        return self._described[1]

    def release(self) -> None:
        """Holds no snapshot any more, and no version's schema: the next one is read whole."""
        self.moment, self._held, self._objects, self._described = None, None, {}, None

    def _opened(self) -> Place:
        if self._place is None:
            self._place = self._open_place()
        return self._place

    def _looked(self, place: Place, wanted: Wanted) -> bool:
        marks = sorted(filter(None, map(_mark, place.store.list(MANIFEST_PREFIX))), reverse=True)
        newer = [mark for mark in marks if wanted(mark.generation, mark.epoch)]
        if self._held is not None and wanted(self._held.generation, self._held.epoch):
            newer = [mark for mark in newer if mark[:2] > self._held[:2]]  # else what is held is of no use
        now = self._clock()
        self._bad = {name: bad for name, bad in self._bad.items() if any(mark.name == name for mark in newer)}
        trouble = NONE_YET if not marks else None
        for mark in newer:
            bad = self._bad.get(mark.name)
            if bad is None or now - bad.since_s >= AGAIN_SECONDS:
                bad = self._tried(place, mark, now)
            if bad is None:
                self.trouble = trouble
                return True
            self._bad[mark.name] = bad
            trouble = trouble or bad.reason
        self.trouble = trouble
        return False

    def _tried(self, place: Place, mark: _Mark, now: float) -> _Bad | None:
        """Takes the snapshot. Returns why it could not."""
        try:
            self._take(place, mark, now)
        except (_Unreadable, EngineFailed, Damaged) as error:
            self.followed.passed_over += 1
            return _Bad(now, f"the snapshot of epoch {mark.epoch} cannot be read: {error}")
        except TooLarge as error:
            return _Bad(
                now,
                f"the state of epoch {mark.epoch} takes {error.bytes // _MIB + 1} MiB, and --memory allows "
                f"{self._bytes_max // _MIB}",
            )
        return None

    def _take(self, place: Place, mark: _Mark, now: float) -> None:
        began = time.monotonic()
        try:
            manifest = decode_manifest(place.store.get(mark.name))
        except NotFound:
            raise _Unreadable("a later one has taken its place") from None
        if manifest is None:
            raise _Unreadable("its manifest is damaged: the checksum does not match")
        objects = {slot.part.slot: slot.objects for slot in manifest.slots}
        # An epoch can be below the one held: that one was not whole in the log when its generation ended.
        held = self._held
        goes_on = held is not None and manifest.epoch >= held.epoch and objects.keys() == self._objects.keys()
        changes = self._read(place, manifest, self._objects if goes_on else {})
        described = self.described(manifest.app_version)
        if goes_on:
            assert self.moment is not None, "what is held is there"
            before = self.moment.state
            state = after(before, manifest.epoch, manifest.app_version, now, changes, self._bytes_max)
        else:
            contents = {slot: change.delta for slot, change in changes.items()}
            state = whole(manifest.epoch, manifest.app_version, now, contents, self._bytes_max)
        self.moment = Moment(state, *described)
        self._held, self._objects = mark, objects
        self.followed.taken += 1
        self.followed.seconds = time.monotonic() - began

    def _read(self, place: Place, manifest: Manifest, held: Mapping[int, list[ObjectRef]]) -> dict[int, SlotChange]:
        """What is in the snapshot beyond the `held` objects of each slot: all of a slot whose objects do not go on from
        them.
        """
        unseen, changes = [], {}
        for slot in manifest.slots:
            known = held.get(slot.part.slot)
            goes_on = known is not None and slot.objects[: len(known)] == known
            left = slot.objects[len(known) :] if known is not None and goes_on else slot.objects
            unseen.append(SlotManifest(slot.part, left))
            if left or not goes_on:
                changes[slot.part.slot] = SlotChange({}, whole=not goes_on)
        wanted = spans(msgspec.structs.replace(manifest, slots=unseen), changes)
        size = sum(span.size for span in wanted)
        if size > self._bytes_max:
            raise TooLarge(size)
        with PrefetchingStore(place.store, wanted) as store:
            for name, start, length, parts in wanted:
                try:
                    data = memoryview(store.get_range(name, start, length))
                except NotFound:
                    raise _Unreadable(f"the store does not have {name} any more") from None
                self.followed.bytes_read += length
                for slot_number, ref in parts:
                    part = data[ref.start - start : ref.start - start + ref.size]
                    for table, keys, values in blocks(ref, part, is_shown):
                        merge_into(changes[slot_number].delta, {table: dict(zip(keys, values, strict=True))})
        return changes


def _mark(name: str) -> _Mark | None:
    epoch, _, generation = name.removeprefix(MANIFEST_PREFIX).partition("-")
    return _Mark(int(generation), int(epoch), name) if epoch.isdigit() and generation.isdigit() else None
