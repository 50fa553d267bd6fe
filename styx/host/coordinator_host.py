"""The coordinator's effects, carried out. It keeps no order of its own: each step follows from an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    AppendNote,
    DeleteManifest,
    DeleteObjects,
    Effect,
    Event,
    Expel,
    FenceMembers,
    ManifestStored,
    MarkerAppended,
    MembersFenced,
    NoteAppended,
    Refuse,
    ReleaseLog,
    ReleaseWorker,
    StateFound,
    StopEnded,
    StoreManifest,
    SweepObjects,
    TellWorker,
)
from styx.host.ports import CoordinatorJournal, Identity, Members, Objects, Operator
from styx.sequencer.epoch_record import GenerationMarker, SnapshotNote
from styx.snapshot.manifest import manifest_name, write_manifest
from styx.snapshot.part import SLOT_PREFIX, check_stored, unneeded


class CoordinatorHost:
    """The host of `core`. The results of its effects come back through `give`, as events."""

    def __init__(
        self,
        core: Coordinator,
        members: Members,
        journal: CoordinatorJournal,
        objects: Objects,
        operator: Operator,
        give: Callable[[Event], None],
    ) -> None:
        self.core = core
        self._members = members
        self._journal = journal
        self._objects = objects
        self._operator = operator
        self._give = give
        self._do: dict[type, Callable[[Any], None]] = {
            TellWorker: self._tell,
            FenceMembers: self._fence,
            AppendMarker: self._append_marker,
            AppendNote: self._append_note,
            Expel: members.expel,
            ReleaseWorker: self._release_worker,
            StoreManifest: self._store_manifest,
            DeleteManifest: self._delete_manifest,
            DeleteObjects: self._delete_objects,
            SweepObjects: self._sweep,
            ReleaseLog: journal.release_records,
            StateFound: operator.found,
            StopEnded: operator.stopped,
            Refuse: self._refuse,
        }

    def step(self, event: Event) -> None:
        """Gives the core an event and begins what it wants done."""
        for effect in self.core.step(event):
            self.do(effect)

    def do(self, effect: Effect) -> None:
        """Begins what the core wants done."""
        self._do[type(effect)](effect)

    def _tell(self, effect: TellWorker) -> None:
        self._members.tell(effect.worker, effect.message)

    def _release_worker(self, effect: ReleaseWorker) -> None:
        self._members.let_go(effect.worker)

    def _refuse(self, effect: Refuse) -> None:
        self._operator.refuse(effect.reason)

    # The log -----------------------------------------------------------------------------------------------

    def _fence(self, effect: FenceMembers) -> None:
        generation = effect.generation

        def fenced(producers: list[Identity]) -> None:
            self._give(MembersFenced(generation, producers))

        self._journal.fence(generation, fenced)

    def _append_marker(self, effect: AppendMarker) -> None:
        generation = effect.generation
        marker = GenerationMarker(generation, effect.snapshot_epoch, effect.app_version)
        self._journal.mark(marker, lambda: self._give(MarkerAppended(generation)))

    def _append_note(self, effect: AppendNote) -> None:
        generation, epoch = effect.generation, effect.epoch
        note = SnapshotNote(generation, epoch)
        self._journal.note(note, lambda: self._give(NoteAppended(generation, epoch)))

    # The store ---------------------------------------------------------------------------------------------

    def _store_manifest(self, effect: StoreManifest) -> None:
        manifest, store = effect.manifest, self._objects.store

        def write() -> None:
            check_stored(store, manifest)
            write_manifest(store, manifest)

        def answer(stored: bool) -> None:
            self._give(ManifestStored(manifest.generation, manifest.epoch, stored))

        what = f"storing the manifest of epoch {manifest.epoch}"
        self._objects.submit(what, write, lambda _: answer(True), lambda _: answer(False))

    def _delete_manifest(self, effect: DeleteManifest) -> None:
        self._delete([manifest_name(effect.generation, effect.epoch)])

    def _delete_objects(self, effect: DeleteObjects) -> None:
        self._delete(effect.names)

    def _delete(self, names: list[str]) -> None:
        store = self._objects.store

        def delete() -> None:
            for name in names:
                store.delete(name)

        # What stays after all attempts is swept later, or costs space only.
        self._objects.submit("deleting what no snapshot needs", delete, _nothing, _nothing)

    def _sweep(self, effect: SweepObjects) -> None:
        store = self._objects.store

        def sweep() -> None:
            for name in unneeded(store.list(SLOT_PREFIX), effect.keep, effect.before):
                store.delete(name)

        self._objects.submit("sweeping unfinished uploads", sweep, _nothing, _nothing)


def _nothing(_: object) -> None:
    """Whatever became of it."""
