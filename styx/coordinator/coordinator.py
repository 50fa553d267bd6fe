"""The coordinator's protocol: one pure state machine, events in, effects out.

It starts generations, places slots, passes barriers on and decides when a snapshot is taken and complete. It
never sees a request, a reply or a key, never does I/O and reads no clock (`Tick` tells the time). Paper sections
5.3, 7.1 and 7.2.
"""

from __future__ import annotations

from enum import Enum

from styx.coordinator.barrier import EpochBarriers
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    Effect,
    Event,
    Heard,
    ManifestStored,
    MarkerAppended,
    Refuse,
    SnapshotWanted,
    Started,
    StoreManifest,
    SweepObjects,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLost,
    WorkerSaid,
)
from styx.coordinator.snapshots import SnapshotLedger
from styx.protocol import (
    Compacted,
    Conflicts,
    Done,
    EpochStarted,
    Join,
    Loaded,
    LoadFailed,
    LockReport,
    Manifest,
    Recover,
    Resume,
    SlotStored,
    SnapshotEnded,
    ToCoordinator,
    ToWorker,
)


class Phase(Enum):
    """Where the deployment is."""

    WAITING = "too few workers, or the metadata is not read yet"
    FENCING = "a new generation's marker is being written"
    LOADING = "workers load their slots"
    RUNNING = "epochs run, first those to replay"
    REFUSED = "the data is damaged; nothing will run"


class Coordinator:
    """`step` is its whole interface. Reading its fields is fine, changing them is not.

    Parameters: number of slots; workers to wait for before the first generation; seconds between snapshots; seconds of
    silence after which a worker is lost (None: only its connection tells).
    """

    def __init__(
        self,
        n_slots: int,
        workers_expected: int = 1,
        snapshot_interval_s: float = 10.0,
        silence_max_s: float | None = None,
    ) -> None:
        self.n_slots = n_slots
        self.workers_expected = workers_expected
        self.snapshot_interval_s = snapshot_interval_s
        self.silence_max_s = silence_max_s
        self.phase = Phase.WAITING
        self.generation = -1
        self.epoch = -1
        self.owners: dict[int, int] = {}
        self.snapshots_completed = 0
        self.ledger = SnapshotLedger(n_slots)
        self._effects: list[Effect] = []
        self._live: dict[int, float] = {}
        self._heard: set[int] = set()
        self._replay_until = -1
        self._members: frozenset[int] = frozenset()
        self._loaded: set[int] = set()
        self._barriers: EpochBarriers | None = None
        self._counter = 0
        self._joined_epoch = -1
        self._now_s = 0.0
        self._snapshot_at_s = 0.0
        self._snapshot_wanted = False
        self._storing: Manifest | None = None
        self._broken: list[Manifest] = []

    @property
    def live(self) -> frozenset[int]:
        """Workers that are connected and not silent for too long."""
        return frozenset(self._live)

    def step(self, event: Event) -> list[Effect]:
        """Takes one event; returns what is to be done, in order."""
        self._effects = []
        if self.phase is Phase.REFUSED:
            return []
        if isinstance(event, WorkerSaid):
            self._heard.add(event.worker)
            if event.message.generation == self.generation and event.worker in self._members:
                self._take_message(event.worker, event.message)
        elif isinstance(event, Tick):
            self._tick(event.now_s)
        elif isinstance(event, Heard):
            self._heard.add(event.worker)
        elif isinstance(event, WorkerJoined):
            self._live[event.worker] = self._now_s
            self._new_generation()
        elif isinstance(event, WorkerLost):
            self._lose([event.worker])
        elif isinstance(event, Started):
            self.generation = event.generation
            self.ledger.manifests = list(event.manifests)
            self._new_generation()
        elif isinstance(event, SnapshotWanted):
            self._want_snapshot()
        elif event.generation == self.generation:
            self._take_answer(event)
        return self._effects

    # Membership and generations ----------------------------------------------------------------------------

    def _tick(self, now_s: float) -> None:
        self._now_s = now_s
        # Only silence between two ticks counts: a coordinator that was itself asleep has heard nobody.
        self._live.update(dict.fromkeys(self._heard & self._live.keys(), now_s))
        self._heard = set()
        if self.silence_max_s is not None:
            self._lose([w for w, heard_s in self._live.items() if now_s - heard_s > self.silence_max_s])

    def _lose(self, workers: list[int]) -> None:
        for worker in workers:
            self._live.pop(worker, None)
        if self._members.intersection(workers):
            self._new_generation()

    def _new_generation(self) -> None:
        """Fences the old one: its marker is written first, so that nothing of the old one behind it counts."""
        if self.generation < 0:
            return
        self._members = frozenset()
        self.phase = Phase.WAITING
        if not self._live or (not self.owners and len(self._live) < self.workers_expected):
            return
        self.generation += 1
        self._members = frozenset(self._live)
        self._loaded = set()
        self._barriers = None
        self._storing = None
        self.phase = Phase.FENCING
        manifest = self._newest()
        self._effects.append(AppendMarker(self.generation, -1 if manifest is None else manifest.epoch))

    def _take_answer(self, event: MarkerAppended | ManifestStored) -> None:
        if isinstance(event, ManifestStored):
            self._manifest_stored(event)
        elif self.phase is Phase.FENCING:
            self._load()

    def _newest(self) -> Manifest | None:
        return self.ledger.manifests[0] if self.ledger.manifests else None

    def _load(self) -> None:
        self.phase = Phase.LOADING
        manifest = self._newest()
        self.ledger.start_from(manifest)
        self.epoch = -1 if manifest is None else manifest.epoch
        self._counter = 0 if manifest is None else manifest.counter
        self._joined_epoch = -1
        self._replay_until = -1
        workers = sorted(self._members)
        self.owners = {slot: workers[slot % len(workers)] for slot in range(self.n_slots)}
        self._tell_all(Recover(self.generation, self.owners, manifest))

    def _load_failed(self, message: LoadFailed) -> None:
        """An older snapshot and a longer replay give the same state; without one, nothing may be served."""
        if not self.ledger.manifests:
            self.phase = Phase.REFUSED
            self._effects.append(Refuse(message.reason))
            return
        self._broken.append(self.ledger.drop_newest())
        self._new_generation()

    def _tell_all(self, message: ToWorker) -> None:
        self._effects.extend(TellWorker(worker, message) for worker in sorted(self._members))

    # Epochs ------------------------------------------------------------------------------------------------

    def _take_message(self, worker: int, message: ToCoordinator) -> None:
        if isinstance(message, Done | Conflicts | LockReport):
            self._barrier(worker, message)
        elif isinstance(message, EpochStarted):
            self._epoch_started(worker, message.epoch)
        elif isinstance(message, SlotStored):
            self._slot_stored(message)
        elif isinstance(message, Compacted):
            self.ledger.compacted(message)
        elif isinstance(message, Loaded):
            self._loaded.add(worker)
            self._replay_until = max(self._replay_until, message.replay_until)
            if self._loaded == self._members and self.phase is Phase.LOADING:
                self._resume()
        elif isinstance(message, LoadFailed) and self.phase is Phase.LOADING:
            self._load_failed(message)

    def _resume(self) -> None:
        self.phase = Phase.RUNNING
        self._snapshot_at_s = self._now_s
        # Only now: an older snapshot has proved to be enough. Data that is refused is left as it is.
        self._effects.extend(DeleteManifest(broken.generation, broken.epoch) for broken in self._broken)
        self._broken = []
        self._effects.append(SweepObjects(self.ledger.referenced()))
        self._next_epoch()
        self._tell_all(Resume(self.generation))
        if self._snapshot_wanted:
            self._join(None)

    def _next_epoch(self) -> None:
        self._barriers = EpochBarriers(self.generation, self.epoch + 1, self._members)

    def _epoch_started(self, worker: int, epoch: int) -> None:
        if self._barriers is not None and epoch == self._barriers.epoch and self._joined_epoch < epoch:
            self._join(worker)

    def _join(self, starter: int | None) -> None:
        assert self._barriers is not None
        self._joined_epoch = self._barriers.epoch
        message = Join(self.generation, self._barriers.epoch)
        self._effects.extend(TellWorker(worker, message) for worker in sorted(self._members - {starter}))

    def _barrier(self, worker: int, message: Done | Conflicts | LockReport) -> None:
        barriers = self._barriers
        assert barriers is not None
        assert message.epoch == barriers.epoch
        decision = barriers.take(worker, message, self._snapshot_due())
        if decision is None:
            return
        self._tell_all(decision)
        if barriers.ended:
            self.epoch = barriers.epoch
            self._counter += barriers.new_max
            if getattr(decision, "snapshot", False):
                self._snapshot_at_s = self._now_s
                self._snapshot_wanted = False
                self.ledger.begin(self.epoch, self._counter)
            self._next_epoch()

    # Snapshots ---------------------------------------------------------------------------------------------

    def _snapshot_due(self) -> bool:
        assert self._barriers is not None
        if self.ledger.under_way is not None or self._barriers.epoch < self._replay_until:
            # Amid a replay the log's ends are far behind the epoch: a snapshot could not say where to go on from.
            return False
        return self._snapshot_wanted or self._now_s - self._snapshot_at_s >= self.snapshot_interval_s

    def _want_snapshot(self) -> None:
        self._snapshot_wanted = True
        if self.phase is Phase.RUNNING and self.ledger.under_way is None:
            self._join(None)

    def _slot_stored(self, message: SlotStored) -> None:
        if self.ledger.under_way is None or self.ledger.under_way[0] != message.epoch or self._storing is not None:
            return
        if message.part is None:
            self._snapshot_failed(message.epoch)
            return
        manifest = self.ledger.take_part(self.generation, message.part)
        if manifest is not None:
            self._storing = manifest
            self._effects.append(StoreManifest(manifest))

    def _manifest_stored(self, event: ManifestStored) -> None:
        manifest, self._storing = self._storing, None
        if manifest is None or manifest.epoch != event.epoch:
            return
        if not event.stored:
            # A put that failed may have happened all the same.
            self._effects.append(DeleteManifest(manifest.generation, manifest.epoch))
            self._snapshot_failed(event.epoch)
            return
        self.snapshots_completed += 1
        self._effects.extend(self.ledger.complete(manifest))
        self._tell_all(SnapshotEnded(self.generation, event.epoch, complete=True))
        for compact in self.ledger.compactions(self.generation):
            self._effects.append(TellWorker(self.owners[compact.slot], compact))
        if self._snapshot_wanted:
            self._join(None)

    def _snapshot_failed(self, epoch: int) -> None:
        self.ledger.abandon()
        self._tell_all(SnapshotEnded(self.generation, epoch, complete=False))
        if self._snapshot_wanted:
            self._join(None)
