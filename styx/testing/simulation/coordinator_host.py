"""The simulated coordinator process: its protocol core with its shell on virtual time. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from styx.coordinator import metadata
from styx.coordinator.coordinator import Coordinator, Phase
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    DeleteObjects,
    Effect,
    Event,
    Expel,
    ManifestStored,
    MarkerAppended,
    Refuse,
    ReleaseLog,
    ReleaseWorker,
    StateFound,
    StopWanted,
    StoreManifest,
    SweepObjects,
    TellWorker,
    Tick,
    WorkerLeaving,
    WorkerSaid,
)
from styx.log.base import Stream
from styx.protocol import LoadFailed, Manifest
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, LogEntry, SnapshotNote, encode
from styx.testing.simulation.shared_log import Identity
from styx.worker.snapshot_object import SLOT_PREFIX, unneeded

if TYPE_CHECKING:
    from styx.testing.simulation.world import World

TICK_S = 0.05
IDLE_TICK_S = 5.0
SILENCE_MAX_S = 1.0
SETTLE_S = 0.1
COORDINATOR = -1
"""Its producer; workers have their places."""

_encode = msgspec.msgpack.Encoder().encode


class CoordinatorHost:
    """One incarnation of the coordinator process."""

    def __init__(
        self, world: World, incarnation: int, n_slots: int, workers: int | None, snapshot_interval_s: float
    ) -> None:
        self.world = world
        self.name = f"coordinator incarnation {incarnation}"
        self.alive = True
        self.refused: str | None = None
        self.core = Coordinator(n_slots, workers, snapshot_interval_s, SILENCE_MAX_S, settle_s=SETTLE_S)
        self._behind_a_held_snapshot = world.stopped
        world.stopped = False
        self._n_slots = n_slots
        self._identity: Identity | None = None
        self._newest_marker = -1
        self._stalled: list[Callable[[], None]] | None = None
        self._asleep: list[Event] | None = None
        self._read_metadata()
        world.time.after(0.0, self._tick)

    def crash(self) -> None:
        """What it had under way may or may not still arrive."""
        self.alive = False
        self.world.log.writer_crashed(self.name)

    def give(self, event: Event) -> None:
        """The event happens to the process, if it is there."""
        if self.alive and self._asleep is not None:
            self._asleep.append(event)
        elif self.alive:
            for effect in self._step(event):
                self._do(effect)

    def _step(self, event: Event) -> list[Effect]:
        """Takes one event; what is planned replays nothing, and whoever is let go has nothing."""
        core = self.core
        running, replayed = core.phase is Phase.RUNNING, core.replayed
        effects = core.step(event)
        if running and core.phase is not Phase.RUNNING:
            self._behind_a_held_snapshot = isinstance(event, ManifestStored | WorkerLeaving | StopWanted)
        elif isinstance(event, WorkerSaid) and isinstance(event.message, LoadFailed):
            self._behind_a_held_snapshot = False
        if core.phase is Phase.RUNNING:
            assert core.replayed == replayed or not self._behind_a_held_snapshot, "a planned change replays epochs"
        self.world.stopped |= core.phase is Phase.STOPPED and self.world.coordinator is self
        return effects

    # A zombie: its store operations get stuck, it may fall asleep, and it goes on when somebody else coordinates ------

    def stall(self) -> None:
        """What it wants done to store and log is done when it wakes."""
        self._stalled = []

    def sleep(self) -> None:
        """What happens to it happens when it wakes."""
        self._asleep = []

    def wake(self) -> None:
        """Everything that it is late with."""
        stalled, self._stalled = self._stalled or [], None
        asleep, self._asleep = self._asleep or [], None
        if self.alive:
            for operation in stalled:
                operation()
        for event in asleep:
            self.give(event)

    def _when_awake(self, operation: Callable[[], None]) -> None:
        if self._stalled is None:
            operation()
        else:
            self._stalled.append(operation)

    # ---------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self.alive:
            self.give(Tick(self.world.time.now_s))
            self.world.time.after(IDLE_TICK_S if self.world.idle else TICK_S, self._tick)

    def _read_metadata(self) -> None:
        if not self.alive:
            return  # a read that failed after the crash is not tried again, and fences nobody
        log, objects = self.world.log, self.world.store.objects
        log.fence_writers("coordinator")
        if self.world.plan.cluster:
            self._identity = log.take_over(COORDINATOR)

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
            worker = world.numbered(effect.worker)
            if worker is not None and worker.link in (None, self):
                world.network.send(self.name, worker.name, worker.receive_message, _encode(effect.message))
        elif isinstance(effect, AppendMarker):
            self._newest_marker = effect.generation
            if world.plan.cluster:
                world.time.after(world.rng.random() * world.plan.log_delay_s, self._fence, effect)
            else:
                self._mark(effect, [])
        elif isinstance(effect, StoreManifest):
            self._when_awake(lambda: self._store_manifest(effect.manifest))
        elif isinstance(effect, DeleteManifest):
            name = metadata.manifest_name(effect.generation, effect.epoch)
            self._when_awake(lambda: objects.delete(name))
        elif isinstance(effect, DeleteObjects):
            self._when_awake(lambda: self._delete(effect.names))
        elif isinstance(effect, SweepObjects):
            self._when_awake(lambda: self._sweep(effect))
        elif isinstance(effect, ReleaseLog):
            self._when_awake(lambda: self._release(effect))
        else:
            self._do_with_worker(effect)

    def _do_with_worker(self, effect: Effect) -> None:
        world = self.world
        if isinstance(effect, Expel):
            world.expelled(self, effect.worker)
        elif isinstance(effect, ReleaseWorker):
            assert effect.worker not in self.core.membership.members, "a member is let go"
            world.released(self, effect.worker)
        elif isinstance(effect, StateFound):
            world.versions.found(effect)
        elif isinstance(effect, Refuse):
            self.refused = effect.reason

    # Generations -------------------------------------------------------------------------------------------

    def _fence(self, effect: AppendMarker) -> None:
        """Nobody who appended in an older generation can append any more; then the marker."""
        if self.alive:
            producers = [self.world.log.take_over(place) for place in range(self._n_slots)]
            if effect.generation == self._newest_marker:
                self._mark(effect, producers)

    def _mark(self, effect: AppendMarker, producers: list[Identity]) -> None:
        marker = GenerationMarker(effect.generation, effect.snapshot_epoch, effect.app_version)

        def marked() -> None:
            self.world.versions.marked(marker)
            self.world.log.fence = max(self.world.log.fence, marker.generation)
            self.give(MarkerAppended(marker.generation, producers))

        self._append(effect.generation, marker, marked)

    def _append(self, generation: int, entry: LogEntry, arrived: Callable[[], None]) -> None:
        self.world.log.append(
            self.name,
            generation,
            Stream.EPOCHS,
            EPOCHS_PARTITION,
            [encode(entry)],
            arrived,
            self._identity,
            lambda: self.world.fenced(self),
        )

    # Store and clean-up ------------------------------------------------------------------------------------

    def _store_manifest(self, manifest: Manifest) -> None:
        generation, epoch = manifest.generation, manifest.epoch
        self.world.store.run(
            lambda: metadata.write_manifest(self.world.store.objects, manifest),
            lambda _: self._manifest_stored(generation, epoch),
            lambda: self.give(ManifestStored(generation, epoch, False)),
        )

    def _manifest_stored(self, generation: int, epoch: int) -> None:
        def stored() -> None:
            self.world.snapshots += 1
            self.give(ManifestStored(generation, epoch, True))

        if not self.world.plan.cluster:
            stored()
        elif self.alive:
            # What follows deletes; a coordinator that is fenced is not told.
            self._append(generation, SnapshotNote(generation, epoch), stored)

    def _sweep(self, effect: SweepObjects) -> None:
        self._delete(unneeded(self.world.store.objects.list(SLOT_PREFIX), effect.keep, effect.before))

    def _delete(self, names: list[str]) -> None:
        for name in names:
            self.world.store.objects.delete(name)

    def _release(self, effect: ReleaseLog) -> None:
        if not self.world.keep_log:
            records = self.world.log.records
            for slot, offset in effect.requests.items():
                records.truncate(Stream.REQUESTS, slot, offset)
            records.truncate(Stream.EPOCHS, EPOCHS_PARTITION, effect.epochs)
