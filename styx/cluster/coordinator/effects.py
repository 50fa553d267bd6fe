"""The coordinator's effects, done: markers behind a fence, manifests, clean-up. Decides nothing.

Keeps two orders that everything rests on: no older generation can append a reply once a marker is written, and nothing
is deleted before a fenced append has shown that no other coordinator has taken over. Paper sections 7.1 and 7.2.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from styx.cluster.background import Background
from styx.cluster.coordinator.stored_parts import check_stored
from styx.cluster.identifiers import worker_producer
from styx.cluster.wire import Deployment
from styx.coordinator import metadata
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    DeleteObjects,
    Effect,
    Event,
    ManifestStored,
    MarkerAppended,
    ReleaseLog,
    StoreManifest,
    SweepObjects,
)
from styx.log.kafka.address import KafkaAddress
from styx.log.kafka.appender import Appender
from styx.log.kafka.ends import LogEnds
from styx.log.kafka.fence import fence
from styx.log.kafka.topics import Topics
from styx.protocol import Manifest
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, SnapshotNote
from styx.sequencer.epoch_record import encode as encode_entry
from styx.store.base import Store
from styx.worker.snapshot_object import SLOT_PREFIX, unneeded

RETRY_SECONDS: Final = 0.2

_log = logging.getLogger("styx.coordinator")


class Effects:
    """`give` takes the ends of what was begun; `failed` what cannot be mended by trying again.

    `log_away`: a generation waits for the log.
    """

    def __init__(
        self,
        deployment: Deployment,
        address: KafkaAddress,
        topics: Topics,
        store: Store,
        background: Background,
        appender: Appender,
        keep_log: bool,
        give: Callable[[Event], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.log_away = False
        self.members = deployment.n_slots
        self._deployment = deployment
        self._address = address
        self._topics = topics
        self._store = store
        self._background = background
        self._appender = appender
        self._keep_log = keep_log
        self._give = give
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._generation = 0
        self._stopped = False
        self._do: dict[type, Callable[[Any], None]] = {
            AppendMarker: self._append_marker,
            StoreManifest: self._store_manifest,
            DeleteManifest: self._delete_manifest,
            DeleteObjects: self._delete_objects,
            SweepObjects: self._sweep,
            ReleaseLog: self._release,
        }

    def do(self, effect: Effect) -> None:
        """Begins what the core wants done."""
        self._do[type(effect)](effect)

    def stop(self) -> None:
        """What is under way is dropped, and its end not told."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    def _told(self, event: Event) -> None:
        if not self._stopped:
            self._give(event)

    def _start(self, work: Any, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._stopped:
            self._failed(error)

    # Generations -------------------------------------------------------------------------------------------

    def _append_marker(self, effect: AppendMarker) -> None:
        self._generation = effect.generation
        self._start(self._mark(effect), f"styx-marker-{effect.generation}")

    async def _mark(self, effect: AppendMarker) -> None:
        # Whoever was a member in an older generation had one of the first places then.
        producers = [worker_producer(self._deployment.app, place) for place in range(self.members)]
        identities: list[tuple[int, int]] = []
        failures = 0
        while effect.generation == self._generation:
            try:
                identities = list(await fence(self._address, producers))
            except OSError as error:
                failures += 1
                self.log_away = True
                if failures == 1:
                    _log.warning("generation %d waits for the log: %s", effect.generation, error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self.log_away = False
            break
        if effect.generation != self._generation:
            return
        marker = GenerationMarker(effect.generation, effect.snapshot_epoch, effect.app_version)
        await self._appender.append(self._topics.epochs, EPOCHS_PARTITION, [(None, encode_entry(marker), [])])
        self._told(MarkerAppended(effect.generation, identities))

    # Snapshots ---------------------------------------------------------------------------------------------

    def _store_manifest(self, effect: StoreManifest) -> None:
        manifest = effect.manifest

        def store() -> None:
            check_stored(self._store, manifest)
            metadata.write_manifest(self._store, manifest)

        def stored(_: None) -> None:
            self._start(self._note(manifest), f"styx-snapshot-{manifest.epoch}")

        def gave_up(_: OSError) -> None:
            self._told(ManifestStored(manifest.generation, manifest.epoch, False))

        self._background.submit(
            f"storing the manifest of epoch {manifest.epoch}",
            store,
            stored,
            gave_up,
        )

    async def _note(self, manifest: Manifest) -> None:
        # What follows deletes what older snapshots need: only the one coordinator that is not fenced may do that.
        note = SnapshotNote(manifest.generation, manifest.epoch)
        await self._appender.append(self._topics.epochs, EPOCHS_PARTITION, [(None, encode_entry(note), [])])
        self._told(ManifestStored(manifest.generation, manifest.epoch, True))

    def _delete_manifest(self, effect: DeleteManifest) -> None:
        self.delete([metadata.manifest_name(effect.generation, effect.epoch)])

    def _delete_objects(self, effect: DeleteObjects) -> None:
        self.delete(effect.names)

    def delete(self, names: list[str]) -> None:
        """Deletes objects; what stays after all attempts is swept later, or costs space only."""

        def delete() -> None:
            for name in names:
                self._store.delete(name)

        if names:
            self._background.submit("deleting what no snapshot needs", delete, lambda _: None, lambda _: None)

    def _sweep(self, effect: SweepObjects) -> None:

        def sweep() -> None:
            for name in unneeded(self._store.list(SLOT_PREFIX), effect.keep, effect.before):
                self._store.delete(name)

        self._background.submit("sweeping unfinished uploads", sweep, lambda _: None, lambda _: None)

    def _release(self, effect: ReleaseLog) -> None:
        if self._keep_log:
            return
        offsets = {(self._topics.requests, slot): offset for slot, offset in effect.requests.items() if offset}
        if effect.epochs:
            offsets[self._topics.epochs, EPOCHS_PARTITION] = effect.epochs
        # Replies stay as long as their topic keeps them: clients may not have read them yet.
        if offsets:
            self._start(self._release_offsets(offsets), "styx-release")

    async def _release_offsets(self, offsets: dict[tuple[str, int], int]) -> None:
        ends = LogEnds(self._address, self._topics)
        try:
            await ends.open()
            await ends.release(offsets)
        except OSError as error:
            _log.warning("records that no recovery needs stay until the next snapshot: %s", error)
        finally:
            await ends.close()
