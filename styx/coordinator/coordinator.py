"""The coordinator's protocol: one pure state machine, events in, effects out.

It starts generations, places slots, passes barriers on and decides when a snapshot is taken and complete. It
never sees a request, a reply or a key, never does I/O and reads no clock (`Tick` tells the time). Paper sections
5.3, 7.1 and 7.2.
"""

from __future__ import annotations

from styx.coordinator.barrier import EpochBarriers, PatchRounds, SnapshotDue
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    DeleteObjects,
    DeployWanted,
    Effect,
    Event,
    Expel,
    FenceMembers,
    Heard,
    ManifestStored,
    MarkerAppended,
    MembersFenced,
    NoteAppended,
    Refuse,
    ReleaseWorker,
    SnapshotWanted,
    Started,
    StateFound,
    StopEnded,
    StopWanted,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLeaving,
    WorkerLost,
    WorkerSaid,
    WorkersWanted,
)
from styx.coordinator.generation import Generation, Phase
from styx.coordinator.membership import SETTLE_S, Membership, place
from styx.coordinator.snapshot_course import STOP_S_MAX, SnapshotCourse
from styx.coordinator.snapshot_ledger import NO_COMMON_VERSION
from styx.coordinator.state_checks import WHOLE, StateChecks
from styx.protocol.manifest import Manifest
from styx.protocol.messages import (
    Broken,
    Conflicts,
    Done,
    Emitted,
    EpochStarted,
    Join,
    Loaded,
    LockReport,
    Mark,
    Recover,
    Resume,
    SlotsStored,
    SnapshotEnded,
    SnapshotUnusable,
    StateChecked,
    ToCoordinator,
    ToWorker,
)
from styx.schema.state_findings import StateFindings

BREAKS_MAX = 3
"""Generations in a row that may break without an epoch before the worker that others cannot reach must join anew."""


class Coordinator:
    """`step` is its whole interface. Reading its fields is fine, changing them is not.

    Parameters: number of slots; workers that share them (more stand by; None: all share them); seconds between
    snapshots; seconds of silence after which a worker is lost (None: only its connection tells); seconds to wait for
    all workers before the first generation (None: for ever); seconds in which workers that join count as joining
    together, where all share the slots; seconds that an orderly stop waits for its last snapshot.
    """

    def __init__(
        self,
        n_slots: int,
        workers_wanted: int | None = 1,
        snapshot_interval_s: float = 10.0,
        silence_max_s: float | None = None,
        grace_s: float | None = None,
        settle_s: float = SETTLE_S,
        stop_s_max: float = STOP_S_MAX,
    ) -> None:
        self.n_slots = n_slots
        self.membership = Membership(workers_wanted, grace_s, silence_max_s, n_slots, settle_s)
        self.phase = Phase.WAITING
        self.generation = self.epoch = -1
        self.app_version = 0
        self.owners: dict[int, int] = {}
        self.replayed = 0
        """Recorded epochs that recoveries had to run again."""
        self.all_stored = False
        """Nothing has run since the last complete snapshot, and nothing runs."""
        self._checks = StateChecks()
        self._course = SnapshotCourse(n_slots, snapshot_interval_s, stop_s_max, self._checks)
        self.ledger, self.clock = self._course.ledger, self._course.clock
        self._effects: list[Effect] = []
        self._present = Generation()
        self._unusable: list[Effect] = []
        self._damage = ""
        self._breaks = 0
        self._version_wanted: int | None = None
        self._app_since = -1
        self.rounds = PatchRounds()

    @property
    def live(self) -> frozenset[int]:
        """Workers that are connected and not silent for too long."""
        return self.membership.live

    @property
    def snapshots_completed(self) -> int:
        """Since the start."""
        return self._course.completed

    @property
    def ended(self) -> bool:
        """Nothing happens to it any more: it has stopped, or has refused to go on."""
        return self.phase in (Phase.REFUSED, Phase.STOPPED)

    @property
    def unstored(self) -> bool:
        """Epochs have closed that are in no snapshot, nor in the one under way: some `Tick` will begin one."""
        return self.epoch > self.clock.epoch

    @property
    def workers_wanted(self) -> int:
        """Workers that share the slots if there are enough; all that may, where their number is not given."""
        return self.membership.target if self.membership.wanted is None else self.membership.wanted

    def step(self, event: Event) -> list[Effect]:
        """Takes one event; returns what is to be done, in order."""
        self._effects = []
        if self.ended:
            return [StopEnded(self.all_stored)] if isinstance(event, StopWanted) else []
        if isinstance(event, WorkerSaid):
            self.membership.hear(event.worker)
            if event.message.generation == self.generation and event.worker in self.membership.members:
                self._take_message(event.worker, event.message)
        elif isinstance(event, Tick):
            self._tick(event.now_s)
        elif isinstance(event, Heard):
            self.membership.hear(event.worker)
        elif isinstance(event, MembersFenced | MarkerAppended | ManifestStored | NoteAppended):
            if event.generation == self.generation:
                self._take_answer(event)
        elif isinstance(event, DeployWanted | StopWanted | SnapshotWanted):
            self._take_wish(event)
        else:
            self._take_change(event)
        if self.membership.leaving and self.phase is not Phase.FENCING:  # there, a loss can make it the only one left
            self._effects.extend(map(ReleaseWorker, self.membership.let_go()))
        if self._course.stopping:
            self._end_stop()
        return self._effects

    # Membership and generations ----------------------------------------------------------------------------

    def _take_change(self, event: WorkerJoined | WorkerLost | WorkerLeaving | WorkersWanted | Started) -> None:
        if isinstance(event, WorkerJoined):
            self._joined(event)
        elif isinstance(event, WorkerLeaving):
            if event.worker in self.membership.live:
                self.membership.leaving.add(event.worker)
                if self.phase is Phase.RUNNING:
                    self._change()
        elif isinstance(event, WorkerLost):
            if self.membership.leave([event.worker]):
                self._new_generation()
        elif isinstance(event, WorkersWanted):
            self.membership.wanted = event.workers
            if self.phase is Phase.RUNNING:
                self._change()
        else:
            self.generation = event.generation
            self.app_version = event.app_version
            self._app_since = event.app_since
            self.ledger.manifests = list(event.manifests)
            self._unusable = [DeleteObjects(event.unusable)] if event.unusable else []
            self._new_generation()

    def _take_wish(self, event: DeployWanted | StopWanted | SnapshotWanted) -> None:
        if isinstance(event, DeployWanted):
            self._deploy(event)
        elif isinstance(event, SnapshotWanted):
            self._want_snapshot()
        elif not self._course.stopping:
            self._stop()

    def _joined(self, event: WorkerJoined) -> None:
        returned = self.membership.leave([event.worker])
        self.membership.join(event.worker, event.address, self.clock.now_s)
        if returned or self.phase is Phase.WAITING:
            self._new_generation()
        elif self.phase is Phase.RUNNING:
            self._change()
        elif self.membership.changing:
            self._new_generation()  # nothing has run in it yet: the worker takes part at once

    def _tick(self, now_s: float) -> None:
        self.clock.now_s = now_s
        silent = self.membership.silent(now_s)
        gathered = self.membership.gathered(now_s)
        can_begin = self.phase is Phase.RUNNING and self.ledger.under_way is None
        if self.phase is Phase.RUNNING and self._present.mark_due(now_s, self.epoch):
            self._tell_all(Mark(self.generation, self.epoch))
        if silent:
            self._expel(silent, "it has not been heard of for too long")
        elif self.phase is Phase.WAITING and self.membership.live:
            self._new_generation()
        elif gathered and self.phase is Phase.RUNNING:
            self._change()
        elif can_begin and self.clock.unstored(self.changing, self.epoch):
            self._want_snapshot()  # without requests no epoch ends by itself

    def _expel(self, workers: list[int], reason: str) -> None:
        self._effects.extend(Expel(worker, reason) for worker in workers)
        if self.membership.leave(workers):
            self._new_generation()

    def _new_generation(self) -> None:
        """Fences the old one: its appends are refused. Behind the marker nothing of it counts; the new one loads."""
        if self.generation < 0:
            return
        self.membership.dissolve()
        self.phase = Phase.WAITING
        if not self.membership.enough(self.clock.now_s):
            return
        if not self.ledger.reaches_back_to(self.app_version, self._app_since):
            self.phase = Phase.REFUSED
            self._effects.append(Refuse(NO_COMMON_VERSION + self._damage))
            return
        self.generation += 1
        self.membership.convene()
        self._present = Generation()
        self._course.generation_begins()
        self._version_wanted = None if self._checks.version is not None else self._version_wanted
        self.phase = Phase.FENCING
        self._effects.append(FenceMembers(self.generation))

    def _take_answer(self, event: MembersFenced | MarkerAppended | ManifestStored | NoteAppended) -> None:
        if isinstance(event, ManifestStored):
            self._manifest_stored(event)
        elif isinstance(event, NoteAppended):
            self._snapshot_complete(event.epoch)
        elif self.phase is not Phase.FENCING:
            return
        elif isinstance(event, MembersFenced):
            self._present.producers = event.producers
            self._effects.append(AppendMarker(self.generation, self.ledger.stored_epoch, self.app_version))
        else:
            self._load()

    def _load(self) -> None:
        self.phase = Phase.LOADING
        manifest = self.ledger.newest
        self.ledger.start_from(manifest)
        self.epoch, self._present.counter = (-1, 0) if manifest is None else (manifest.epoch, manifest.counter)
        members = self.membership.members
        self.membership.place()
        self.owners = place(self.n_slots, members, self.owners)
        addresses = {worker: self.membership.addresses[worker] for worker in sorted(members)}
        producers = self._present.producers
        self._tell_all(Recover(self.generation, self.owners, manifest, addresses, self.app_version, producers))

    def _load_failed(self, message: SnapshotUnusable) -> None:
        """An older snapshot and a longer replay give the same state; without one, nothing may be served."""
        if not self.ledger.manifests:
            self.phase = Phase.REFUSED
            self._effects.append(Refuse(message.reason))
            return
        self._damage = f" The newer one: {message.reason}"
        dropped = self.ledger.drop_newest()
        self._unusable.append(DeleteManifest(dropped.generation, dropped.epoch))
        self.all_stored = False
        self._new_generation()

    def _generation_broke(self, message: Broken) -> None:
        self._breaks += 1
        if message.peer in self.membership.live and self._breaks >= BREAKS_MAX:
            self._breaks = 0
            self._effects.append(Expel(message.peer, "other workers cannot reach it"))
            self.membership.shun(message.peer, self.clock.now_s)
            self.membership.leave([message.peer])
        self._new_generation()

    def _tell_all(self, message: ToWorker) -> None:
        self._effects.extend(TellWorker(worker, message) for worker in sorted(self.membership.members))

    # Planned changes ---------------------------------------------------------------------------------------
    # Of the version or of the workers: a snapshot, then a short one behind which no epoch begins, then a generation
    # with nothing to replay. A stop is the second one alone. All state is checked for a version before the first one.

    def _deploy(self, wanted: DeployWanted) -> None:
        self._version_wanted = None
        if wanted.version == self.app_version:
            if self._checks.drop() and self.phase is Phase.RUNNING:
                self._tell_all(self._checks.begin(self.generation))
        elif self.generation <= 0 and not self.ledger.manifests:  # nothing has ever run
            self._effects.append(StateFound(wanted.version, StateFindings()))
            self.app_version = self.app_version if wanted.only_check else wanted.version
        elif wanted.at_once:
            self._version_wanted, self._course.hold_next = wanted.version, True
            if self.phase is Phase.RUNNING:
                self._change()
        else:
            self._checks.want(wanted.version, not wanted.only_check)
            if self.phase is Phase.RUNNING:
                self._tell_all(self._checks.begin(self.generation))
        self._effects += self._course.go_on()  # of a held snapshot, if it is for nothing any more

    def _state_checked(self, worker: int, message: StateChecked) -> None:
        found = self._checks.take(worker, message, self.membership.members)
        if found is None:
            return
        if found.offenders or message.epoch == WHOLE:
            self._effects.append(StateFound(message.version, found))
        if found.offenders or not self._checks.switch:
            self._version_wanted = None
            self._checks.drop()
            self._tell_all(self._checks.begin(self.generation))
            if message.epoch != WHOLE:
                self._snapshot_failed(message.epoch)
        elif message.epoch == WHOLE:
            self._version_wanted = message.version
            self._change()
        else:
            self._effects += self._course.go_on()

    @property
    def changing(self) -> bool:
        """A planned change is due."""
        return self._course.stopping or self._version_wanted is not None or self.membership.changing

    def _change(self) -> None:
        if self.changing:
            self._want_snapshot()

    def _stop(self) -> None:
        self._course.stop()
        if self.all_stored or not self.membership.members:
            self._come_to_rest()  # there is nothing to store, or nobody who could
        else:
            self._want_snapshot()

    def _end_stop(self) -> None:
        """Ends a stop whose snapshot is stored, and one that has waited for too long, or has lost all workers."""
        if not self.ended and (not self.live or self._course.late):
            self._come_to_rest()
        if self.ended:
            self._effects.append(StopEnded(self.all_stored))

    def _come_to_rest(self) -> None:
        """Nothing runs any more."""
        self.phase = Phase.STOPPED
        self.membership.dissolve()

    def _changed(self, manifest: Manifest) -> None:
        """No epoch will begin in this generation, and its last one is in the snapshot."""
        self._course.wanted = False
        self.all_stored = True
        if self._course.stopping:
            self._come_to_rest()
            return
        if self._version_wanted is not None and self._checks.allow(manifest.epoch):
            self.app_version, self._app_since, self._version_wanted = self._version_wanted, manifest.epoch, None
            self._checks.drop()
        if not self.membership.eligible:
            # All of them leave: the snapshot has everything, and whoever comes next goes on from there.
            self.membership.dissolve()
            self._effects.extend(map(ReleaseWorker, self.membership.let_go()))
        self._new_generation()

    # Epochs ------------------------------------------------------------------------------------------------

    def _take_message(self, worker: int, message: ToCoordinator) -> None:
        if isinstance(message, Done | Conflicts | LockReport):
            self._barrier(worker, message)
        elif isinstance(message, EpochStarted):
            self._epoch_started(worker, message.epoch)
        elif isinstance(message, SlotsStored):
            self._slots_stored(message)
        elif isinstance(message, Loaded):
            self._present.take_loaded(worker, message)
            if self._present.loaded == self.membership.members and self.phase is Phase.LOADING:
                self._resume()
        elif isinstance(message, Emitted):
            self._present.marks.want(message.partitions)
        elif isinstance(message, Broken):
            self._generation_broke(message)
        elif isinstance(message, StateChecked):
            self._state_checked(worker, message)
        elif self.phase is Phase.LOADING:
            self._load_failed(message)

    def _resume(self) -> None:
        self.phase = Phase.RUNNING
        self.clock.taken(self.epoch)
        self.replayed += max(0, self._present.replay_until - self.epoch)
        self.all_stored = False
        # Only now: an older snapshot has proved to be enough. Data that is refused is left as it is.
        self._effects += self._unusable
        self._unusable = []
        self._next_epoch()
        self._tell_all(Resume(self.generation, self._present.answered))
        if self._checks.version is not None:
            self._tell_all(self._checks.begin(self.generation))
        # Until what a new version has converted is in a snapshot, every recovery has to convert it again.
        self._course.wanted |= self.changing or self._present.converted
        if self._course.wanted:
            self._join(None)

    def _next_epoch(self) -> None:
        self._present.barriers = EpochBarriers(self.generation, self.epoch + 1, self.membership.members, self.rounds)

    def _epoch_started(self, worker: int, epoch: int) -> None:
        barriers = self._present.barriers
        if barriers is not None and epoch == barriers.epoch and self._present.joined_epoch < epoch:
            self._join(worker)

    def _join(self, starter: int | None) -> None:
        present = self._present
        assert present.barriers is not None
        present.joined_epoch = present.barriers.epoch
        message = Join(self.generation, present.barriers.epoch)
        self._effects.extend(TellWorker(worker, message) for worker in sorted(self.membership.members - {starter}))

    def _barrier(self, worker: int, message: Done | Conflicts | LockReport) -> None:
        barriers = self._present.barriers
        assert barriers is not None
        assert message.epoch == barriers.epoch
        decision = barriers.take(worker, message, self._snapshot_due)
        if decision is None:
            return
        self._tell_all(decision)
        if barriers.ended:
            self.epoch = barriers.epoch
            self._present.counter += barriers.new_max
            self._breaks = 0
            if getattr(decision, "snapshot", False):
                self._course.begin(self.epoch, self._present.counter, self.app_version)
            self._next_epoch()

    # Snapshots ---------------------------------------------------------------------------------------------

    def _snapshot_due(self) -> SnapshotDue | None:
        barriers = self._present.barriers
        assert barriers is not None
        if barriers.epoch < self._present.replay_until:
            return None  # the log's ends are far behind the epoch: a snapshot could not say where to go on from
        return self._course.due(self.changing)

    def _want_snapshot(self) -> None:
        self._course.wanted = True
        if self.phase is Phase.RUNNING and self.ledger.under_way is None:
            self._join(None)

    def _slots_stored(self, message: SlotsStored) -> None:
        if not self._course.takes_parts(message.epoch):
            return
        if message.parts is None:
            self._snapshot_failed(message.epoch)
        else:
            self._effects += self._course.take_parts(self.generation, message.parts)

    def _manifest_stored(self, event: ManifestStored) -> None:
        if event.stored:
            self._effects += self._course.manifest_stored(event.epoch)
            return
        effects = self._course.manifest_failed(event.epoch)
        if effects is not None:
            self._effects += effects
            self._snapshot_failed(event.epoch)

    def _snapshot_complete(self, epoch: int) -> None:
        course = self._course
        manifest = course.noted(epoch, self.generation, self._effects)
        if manifest is None:
            return
        if course.holding:
            self._changed(manifest)
            return
        self._tell_all(SnapshotEnded(self.generation, epoch, complete=True))
        if self.changing:
            # Now that the store has proved to be there, and little has changed since, the pause will be short.
            course.hold_next = course.wanted = True
        if course.wanted:
            self._join(None)

    def _snapshot_failed(self, epoch: int) -> None:
        self._course.fail()
        self._tell_all(SnapshotEnded(self.generation, epoch, complete=False))
        if self._course.wanted:
            self._join(None)
