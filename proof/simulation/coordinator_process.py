"""The simulated coordinator process: the product's host of its core, over a log, a store and links on virtual time.

`ControlLinks` are its connections to workers and operators, as its control plane reaches them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from proof.simulation.versions import opened
from styx.coordinator import take_over
from styx.coordinator.control_events import (
    A_WORKER,
    Admit,
    Announce,
    Answer,
    Disconnect,
    DrainAsked,
    Event,
    HandOut,
    LeaveAsked,
    OperatorGone,
    PackageOffered,
    RolloutEnded,
    Serve,
    StandBy,
    TurnAway,
)
from styx.coordinator.control_plane import ControlPlane
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    Expel,
    NoteAppended,
    ReleaseLog,
    StateFound,
    StopEnded,
    StopWanted,
    Tick,
    WorkerLeaving,
    WorkerSaid,
)
from styx.coordinator.generation import Phase
from styx.coordinator.take_over import TakeOver
from styx.deployment.versions import load_version
from styx.host.control_host import ControlBeginning, ControlHost, ControlPorts, read_control_beginning
from styx.host.coordinator_host import CoordinatorHost
from styx.host.ports import Identity, Objects
from styx.log.base import Stream
from styx.protocol.messages import SnapshotUnusable, ToWorker
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, SnapshotNote, encode
from styx.set_aside import place_of, read, set_aside
from styx.snapshot.manifest import Beginning, read_beginning

if TYPE_CHECKING:
    from proof.simulation.worker_process import WorkerProcess
    from proof.simulation.world import World

TICK_S = 0.05
IDLE_TICK_S = 5.0
SILENCE_MAX_S = 1.0
SETTLE_S = 0.1
STOP_S = 1.0
"""How long an orderly stop waits for its last snapshot."""
FIRST = b"0"
"""The package that every worker was started with."""
COORDINATOR = -1
"""Its producer; workers have their places."""

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


class CoordinatorProcess:
    """One incarnation of the coordinator process."""

    def __init__(
        self, world: World, incarnation: int, n_slots: int, workers: int | None, snapshot_interval_s: float
    ) -> None:
        self.world = world
        self.name = f"coordinator incarnation {incarnation}"
        self.alive = True
        self.refused: str | None = None
        self.stop_ended = False
        """An orderly stop is over: the process may end."""
        self._stop_by_s = inf
        self.core = Coordinator(
            n_slots, workers, snapshot_interval_s, SILENCE_MAX_S, settle_s=SETTLE_S, stop_s_max=STOP_S
        )
        self.core.rounds = world.patch_rounds
        self._behind_a_held_snapshot = world.stopped
        world.stopped = False
        self._n_slots = n_slots
        self._objects = Objects(world.store.objects, self._submit)
        self._protocol = CoordinatorHost(self.core, self, self, self._objects, self, self.give)
        self._take: Callable[[Any], None] = self._protocol.step
        """An event happens to the control plane, or to the protocol alone."""
        self.plane = ControlPlane(self.core, world.app.name)
        self._identity: Identity | None = None
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
            self._step(event)

    def _step(self, event: Event) -> None:
        """Takes one event; what is planned replays nothing, and whoever is let go has nothing."""
        core = self.core
        running, replayed = core.phase is Phase.RUNNING, core.replayed
        self._take(event)
        if running and core.phase is not Phase.RUNNING:
            planned = NoteAppended | WorkerLeaving | LeaveAsked | DrainAsked | StopWanted
            self._behind_a_held_snapshot = isinstance(event, planned)
        elif isinstance(event, WorkerSaid) and isinstance(event.message, SnapshotUnusable):
            self._behind_a_held_snapshot = False
        if core.phase is Phase.RUNNING:
            assert core.replayed == replayed or not self._behind_a_held_snapshot, "a planned change replays epochs"
        if isinstance(event, OperatorGone):
            self.world.operators.missed(event.by)
        self.world.operators.stepped(self, event)
        self._check_stop(event)

    @property
    def stopping(self) -> bool:
        """An orderly stop was asked for."""
        return self._stop_by_s < inf

    def _check_stop(self, event: Event) -> None:
        """A stop is over in time, and then nothing runs any more."""
        if isinstance(event, StopWanted):
            self._stop_by_s = min(self._stop_by_s, self.world.time.now_s + STOP_S)
        elif isinstance(event, Tick):
            assert self.stop_ended or event.now_s < self._stop_by_s, "an orderly stop has no end"
        assert not self.stop_ended or self.core.ended, "a coordinator goes on behind the end of its stop"

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
        self._take_over(list(take_over.ORDER), None)

    def _take_over(self, steps: list[TakeOver], found: Beginning | ControlBeginning | None) -> None:
        if not self.alive:
            return  # a read that failed after the crash is not tried again, and fences nobody
        log, objects = self.world.log, self.world.store.objects
        if not steps:
            assert found is not None
            if isinstance(found, ControlBeginning):
                self._control(found)
            else:
                self.give(found.started)
            if self.alive:
                self.world.coordinator_started()
            return
        step, *further = steps
        if step is TakeOver.READ:
            read = read_control_beginning if self.world.plan.managed else read_beginning
            goes_on = lambda answer: self._take_over(further, answer)  # noqa: E731 - it fits a line
            self.world.store.run(lambda: read(objects, log.records), goes_on, self._read_metadata)
            return
        if step is TakeOver.FENCE:
            log.fence_writers("coordinator")
            if self.world.plan.cluster:
                self._identity = log.take_over(COORDINATOR)
        self._take_over(further, found)  # the simulated log has its topics, and its store is whole

    def _control(self, found: ControlBeginning) -> None:
        """As a cluster's process begins; it finds what was told to run."""
        store, version = self._objects.store, found.started.app_version
        assert version >= max(self.world.operators.confirmed, default=0), f"version {version} is found, an older one"
        self.plane = ControlPlane(self.core, self.world.app.name, found.runtime)

        def put_aside(place: str, dry_run: bool) -> str:
            if not dry_run:
                set_aside(store, place_of(place))
            return place

        ports = ControlPorts(ControlLinks(self), self._objects, partial(opened, self.world.plan), put_aside)
        host = ControlHost(self.plane, self._protocol, ports, self.give)
        self._take = host.step
        host.begin(found)

    # Members and operators ---------------------------------------------------------------------------------

    def tell(self, worker: int, message: ToWorker) -> None:
        """As `Members.tell`."""
        host = self.world.numbered(worker)
        if host is not None and host.link in (None, self):
            self.world.network.send(self.name, host.name, host.receive_message, _encode(message))

    def expel(self, effect: Expel) -> None:
        """As `Members.expel`."""
        self.world.expelled(self, effect.worker)

    def let_go(self, worker: int) -> None:
        """As `Members.let_go`."""
        assert worker not in self.core.membership.members, "a member is let go"
        self.world.released(self, worker)

    def found(self, effect: StateFound) -> None:
        """As `Operator.found`."""
        self.world.versions.found(effect)

    def stopped(self, effect: StopEnded) -> None:
        """As `Operator.stopped`; whoever starts behind a stop that has stored everything replays nothing."""
        self.stop_ended = True
        self.world.stopped |= effect.stored and self.world.coordinator is self

    def refuse(self, reason: str) -> None:
        """As `Operator.refuse`."""
        self.refused = reason

    # The log -----------------------------------------------------------------------------------------------

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        """As `CoordinatorJournal.fence`."""

        def take_over() -> None:
            if self.alive:
                fenced([self.world.log.take_over(place) for place in range(self._n_slots)])

        if self.world.plan.cluster:
            self.world.time.after(self.world.rng.random() * self.world.plan.log_delay_s, take_over)
        else:
            fenced([])  # the marker itself is the fence

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        """As `CoordinatorJournal.mark`."""

        def marked() -> None:
            self.world.versions.marked(marker)
            self.world.log.fence = max(self.world.log.fence, marker.generation)
            appended()

        self._append(marker, marked)

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        """As `CoordinatorJournal.note`."""

        def noted() -> None:
            self.world.snapshots += 1
            appended()

        self._when_awake(lambda: self._append(note, noted))

    def _append(self, entry: GenerationMarker | SnapshotNote, arrived: Callable[[], None]) -> None:
        if self.alive:
            self.world.log.append(
                self.name,
                entry.generation,
                Stream.EPOCHS,
                EPOCHS_PARTITION,
                [encode(entry)],
                arrived,
                self._identity,
                lambda: self.world.fenced(self),
            )

    def release_records(self, wanted: ReleaseLog) -> None:
        """As `CoordinatorJournal.release_records`."""
        self._when_awake(lambda: self._release(wanted))

    def _release(self, wanted: ReleaseLog) -> None:
        if not self.world.keep_log:
            records = self.world.log.records
            for slot, offset in wanted.requests.items():
                records.truncate(Stream.REQUESTS, slot, offset)
            records.truncate(Stream.EPOCHS, EPOCHS_PARTITION, wanted.epochs)

    # The store ---------------------------------------------------------------------------------------------

    def _submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        self._when_awake(lambda: self.world.store.submit(what, run, ended, gave_up, lambda: self.alive))


class ControlLinks:
    """The connections of one incarnation of the coordinator, as `Connections`. There are no gateways."""

    def __init__(self, coordinator: CoordinatorProcess) -> None:
        self._coordinator = coordinator
        self._world = coordinator.world

    def _worker(self, number: int) -> WorkerProcess | None:
        host = self._world.numbered(number)
        return host if host is not None and host.link is self._coordinator else None

    def admit(self, effect: Admit) -> None:
        """The worker offers what it was started with, once."""
        world = self._world
        offer = PackageOffered(A_WORKER, opened(world.plan, FIRST))
        world.time.after(world.rng.random() * 0.001, self._coordinator.give, offer)

    def turn_away(self, effect: TurnAway) -> None:
        """It tries again."""
        self._world.cut_off(self._coordinator, effect.worker)

    def disconnect(self, effect: Disconnect) -> None:
        """It registers anew; the coordinator notices that it is lost. What held it up is set aside by then."""
        assert read(self._world.store.objects), "a worker is let go for a request that the store has not set aside"
        self._world.cut_off(self._coordinator, effect.worker)

    def hand_out(self, effect: HandOut) -> None:
        """In order with all else that the worker is told; only what the store has may take effect."""
        content, host = effect.package.content, self._worker(effect.worker)
        if effect.version > 0:
            stored = load_version(self._world.store.objects, effect.version)
            assert stored == content, f"version {effect.version} is handed out, and the store does not have it"
        if host is not None:
            data = _encode((effect.version, content))
            self._world.network.send(self._coordinator.name, host.name, host.receive_code, data)

    def stand_by(self, effect: StandBy) -> None:
        """The worker hears whether slots are kept from it."""
        host = self._worker(effect.worker)
        if host is not None:
            hears = host
            deliver = lambda _: setattr(hears, "spare", effect.spare)  # noqa: E731 - it fits a line
            self._world.network.send(self._coordinator.name, host.name, deliver, b"")

    def serve(self, effect: Serve) -> None:
        """Nobody has a gateway."""

    def announce(self, effect: Announce) -> None:
        """Clients hear of it: it is no version that was refused."""
        assert effect.version not in self._world.versions.never, f"version {effect.version} was refused, and runs"

    def answer(self, effect: Answer) -> None:
        """To an operator; nobody waits for what becomes of a worker's offer."""
        if effect.to != A_WORKER:
            self._world.operators.answered(self._coordinator, effect)

    def rollout_ended(self, effect: RolloutEnded) -> None:
        """As `Operators.rollout_ended`."""
        self._world.operators.rollout_ended(self._coordinator, effect)
