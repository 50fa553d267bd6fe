"""The simulated coordinator process: its protocol core with its shell on virtual time. Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from styx.coordinator import metadata
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    DeleteObjects,
    Effect,
    Event,
    ManifestStored,
    MarkerAppended,
    Refuse,
    ReleaseLog,
    StoreManifest,
    SweepObjects,
    TellWorker,
    Tick,
)
from styx.log.base import Stream
from styx.protocol import Manifest
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, encode
from styx.worker.snapshot_object import SLOT_PREFIX

if TYPE_CHECKING:
    from styx.testing.simulation.world import World

TICK_S = 0.05
IDLE_TICK_S = 5.0
SILENCE_MAX_S = 1.0

_encode = msgspec.msgpack.Encoder().encode


class CoordinatorHost:
    """One incarnation of the coordinator process."""

    def __init__(self, world: World, incarnation: int, n_slots: int, workers: int, snapshot_interval_s: float) -> None:
        self.world = world
        self.name = f"coordinator incarnation {incarnation}"
        self.alive = True
        self.refused: str | None = None
        self.core = Coordinator(n_slots, workers, snapshot_interval_s, SILENCE_MAX_S)
        self._read_metadata()
        world.time.after(0.0, self._tick)

    def crash(self) -> None:
        """What it had under way may or may not still arrive."""
        self.alive = False
        self.world.log.writer_crashed(self.name)

    def give(self, event: Event) -> None:
        """The event happens to the process, if it is there."""
        if self.alive:
            for effect in self.core.step(event):
                self._do(effect)

    def _tick(self) -> None:
        if self.alive:
            self.give(Tick(self.world.time.now_s))
            self.world.time.after(IDLE_TICK_S if self.world.idle else TICK_S, self._tick)

    def _read_metadata(self) -> None:
        if not self.alive:
            return  # a read that failed after the crash is not tried again, and fences nobody
        log, objects = self.world.log, self.world.store.objects
        log.fence_writers("coordinator")

        def answer(read: tuple[list[Manifest], list[str]]) -> None:
            manifests, _ = read
            started, _ = metadata.beginning(manifests, metadata.read_generations(log.records))
            self.give(started)
            if self.alive:
                self.world.coordinator_started()

        self.world.store.run(lambda: metadata.read_manifests(objects), answer, self._read_metadata)

    def _do(self, effect: Effect) -> None:
        world = self.world
        objects = world.store.objects
        if isinstance(effect, TellWorker):
            worker = world.workers.get(effect.worker)
            if worker is not None:
                world.network.send(self.name, worker.name, worker.receive_message, _encode(effect.message))
        elif isinstance(effect, AppendMarker):
            marker = GenerationMarker(effect.generation, effect.snapshot_epoch, effect.app_version)
            world.log.append(
                self.name,
                effect.generation,
                Stream.EPOCHS,
                EPOCHS_PARTITION,
                [encode(marker)],
                lambda: self._marked(effect.generation),
            )
        elif isinstance(effect, StoreManifest):
            self._store_manifest(effect.manifest)
        elif isinstance(effect, DeleteManifest):
            objects.delete(metadata.manifest_name(effect.generation, effect.epoch))
        elif isinstance(effect, DeleteObjects):
            self._delete(effect.names)
        elif isinstance(effect, SweepObjects):
            self._delete([name for name in objects.list(SLOT_PREFIX) if name not in effect.keep])
        elif isinstance(effect, ReleaseLog):
            self._release(effect)
        elif isinstance(effect, Refuse):
            self.refused = effect.reason

    def _store_manifest(self, manifest: Manifest) -> None:
        generation, epoch = manifest.generation, manifest.epoch
        self.world.store.run(
            lambda: metadata.write_manifest(self.world.store.objects, manifest),
            lambda _: self._manifest_stored(generation, epoch),
            lambda: self.give(ManifestStored(generation, epoch, False)),
        )

    def _manifest_stored(self, generation: int, epoch: int) -> None:
        self.world.snapshots += 1
        self.give(ManifestStored(generation, epoch, True))

    def _delete(self, names: list[str]) -> None:
        for name in names:
            self.world.store.objects.delete(name)

    def _marked(self, generation: int) -> None:
        self.world.log.fence = max(self.world.log.fence, generation)
        self.give(MarkerAppended(generation))

    def _release(self, effect: ReleaseLog) -> None:
        if not self.world.keep_log:
            records = self.world.log.records
            for slot, offset in effect.requests.items():
                records.truncate(Stream.REQUESTS, slot, offset)
            records.truncate(Stream.EPOCHS, EPOCHS_PARTITION, effect.epochs)
