"""The coordinator's effects, done: manifests and clean-up through the store's thread, markers and releases in the log.

Decides nothing but when to delete: not before the state is known to be good. Paper sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from styx.app import App
from styx.coordinator import metadata
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    DeleteObjects,
    Event,
    ManifestStored,
    MarkerAppended,
    Refuse,
    ReleaseLog,
    StoreManifest,
    SweepObjects,
    TellWorker,
)
from styx.embedded_engine.app_change import AppChange
from styx.embedded_engine.background import Background
from styx.embedded_engine.counters import Counters
from styx.embedded_engine.drive import Drive
from styx.embedded_engine.external_log import ExternalLog
from styx.embedded_engine.storage import Storage
from styx.errors import EngineFailed
from styx.limits import Limits
from styx.log.base import Stream
from styx.protocol import Commit, LockDecision, Recover, Resume, SnapshotEnded, Validate
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, encode
from styx.worker.events import CoordinatorSaid
from styx.worker.snapshot_object import SLOT_PREFIX, unneeded


class CoordinatorShell:
    """`failed` ends the engine; `now_us` tells the time of log records; with `keep_log` no record is ever released."""

    def __init__(
        self,
        core: Coordinator,
        drive: Drive,
        storage: Storage,
        background: Background,
        external_log: ExternalLog,
        counters: Counters,
        now_us: Callable[[], int],
        failed: Callable[[str, BaseException], None],
        keep_log: bool,
        change: AppChange,
        run_app: Callable[[App, Limits], None],
    ) -> None:
        self.core = core
        self._drive = drive
        self._log = storage.log
        self._store = storage.store
        self._background = background
        self._external_log = external_log
        self._counters = counters
        self._now_us = now_us
        self._failed = failed
        self._keep_log = keep_log
        self._change = change
        self._run_app = run_app
        self._unusable: list[str] = []
        self._do: dict[type, Callable[[Any], None]] = {
            TellWorker: self._tell,
            AppendMarker: self._append_marker,
            StoreManifest: self._store_manifest,
            DeleteManifest: self._delete_manifest,
            DeleteObjects: self._delete_objects,
            SweepObjects: self._sweep,
            ReleaseLog: self._release,
            Refuse: self._refuse,
        }

    def step(self, event: Event) -> None:
        """As `Shell.step`."""
        for effect in self.core.step(event):
            self._do[type(effect)](effect)

    def _tell(self, effect: TellWorker) -> None:
        message = effect.message
        counters = self._counters
        if isinstance(message, Resume) and self._unusable:
            self._delete(self._unusable)
            self._unusable = []
        elif isinstance(message, Commit):
            counters.epochs += 1
            counters.locked += len(message.locked)
        elif isinstance(message, Validate):
            counters.carried += len(message.deferred)
        elif isinstance(message, LockDecision):
            counters.carried += sum(1 for _, failure in message.excluded if failure is None)
        elif isinstance(message, SnapshotEnded):
            if message.complete:
                counters.snapshot_at_s = self._now_us() / 1e6
            else:
                counters.snapshots_failed += 1
                counters.ended_at_snapshot = -1
        elif isinstance(message, Recover):
            self._change.begins(message.app_version, self._run_app)
        self._drive.to_worker(CoordinatorSaid(message))

    def _append_marker(self, effect: AppendMarker) -> None:
        marker = encode(GenerationMarker(effect.generation, effect.snapshot_epoch, effect.app_version))
        self._log.append(Stream.EPOCHS, EPOCHS_PARTITION, self._now_us(), marker)
        appended = MarkerAppended(effect.generation)
        self._drive.durable.add(self._log.lsn, lambda: self._drive.to_coordinator(appended))

    def _store_manifest(self, effect: StoreManifest) -> None:
        manifest = effect.manifest

        def answer(stored: bool) -> None:
            self._drive.to_coordinator(ManifestStored(manifest.generation, manifest.epoch, stored))

        self._background.submit(
            f"storing the manifest of epoch {manifest.epoch}",
            lambda: metadata.write_manifest(self._store, manifest),
            lambda _: answer(True),
            lambda _: answer(False),
        )

    def unusable(self, manifests: list[str]) -> None:
        """These names are of no use; they go once an older snapshot has proved good.

        Until then they stay: a start that is refused must have changed nothing.
        """
        self._unusable += manifests

    def _delete_manifest(self, effect: DeleteManifest) -> None:
        self._delete([metadata.manifest_name(effect.generation, effect.epoch)])

    def _delete_objects(self, effect: DeleteObjects) -> None:
        self._delete(effect.names)

    def _delete(self, names: list[str]) -> None:
        def delete() -> None:
            for name in names:
                self._store.delete(name)

        # What stays after all attempts is swept at the next start, or costs space only.
        self._background.submit("deleting what no snapshot needs", delete, lambda _: None, lambda _: None)

    def _sweep(self, effect: SweepObjects) -> None:
        def sweep() -> None:
            for name in unneeded(self._store.list(SLOT_PREFIX), effect.keep, effect.before):
                self._store.delete(name)

        self._background.submit("sweeping unfinished uploads", sweep, lambda _: None, lambda _: None)

    def _release(self, effect: ReleaseLog) -> None:
        if self._keep_log:
            return
        log = self._log
        for slot, offset in effect.requests.items():
            log.truncate(Stream.REQUESTS, slot, offset)
        for slot, offset in effect.replies.items():
            log.truncate(Stream.REPLIES, slot, offset)
        log.truncate(Stream.EPOCHS, EPOCHS_PARTITION, effect.epochs)
        self._external_log.release(self.core.ledger.manifests[-1].epoch)

    def _refuse(self, effect: Refuse) -> None:
        reasons = dict.fromkeys([*self._counters.load_failures, effect.reason])
        self._failed("recovery", EngineFailed("\n".join(reasons)))
