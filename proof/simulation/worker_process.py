"""The simulated worker process: the product's host of its core, over a log, a store and links on virtual time.

What it sends and stores takes its time, and may never arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from proof import spinning
from proof.simulation import event_log
from proof.simulation.changes_seen import WorkerFollower
from proof.simulation.external_calls import run_external
from proof.simulation.network import NOTICE_S
from proof.simulation.readers import Readers
from proof.simulation.shared_log import Identity
from proof.simulation.versions import number_of, runs_on, version_for
from proof.simulation.worker_journal import SimulatedJournal
from styx.coordinator.control_events import CodeTaken, WorkerBeat
from styx.coordinator.control_events import Event as CoordinatorEvent
from styx.host.ports import Objects, WorkerPorts
from styx.host.worker_host import WorkerHost
from styx.log.base import LogReader, LogTruncated, Stream
from styx.model.app import App
from styx.model.context import Context
from styx.model.limits import CLOSED_PATIENCE, Limits
from styx.protocol.frames import Frame
from styx.protocol.messages import Broken, CheckState, Emitted, Recover, ToCoordinator, ToWorker
from styx.snapshot.load import Unusable, load_state
from styx.store.base import Store
from styx.worker.events import (
    CallGivenUp,
    CheckFurther,
    CoordinatorSaid,
    Event,
    EventDiffers,
    FrameArrived,
    Halted,
    LoadState,
    NotResumed,
    Proceed,
    ReplyDiffers,
    ReportEnds,
    ReportLeft,
    ReportPoison,
    RequestsArrived,
    RunExternal,
    SendFrame,
    StandingEvent,
    StateLoaded,
    StateUnusable,
    Step,
)
from styx.worker.given_replies import GivenReplies, given_replies
from styx.worker.worker import Worker

if TYPE_CHECKING:
    from proof.simulation.coordinator_process import CoordinatorProcess
    from proof.simulation.world import World

HEARTBEAT_S = 0.2
IDLE_HEARTBEAT_S = 0.5
"""Often enough for nobody to be taken for dead; an idle hour has tens of thousands."""
HALT_S = 0.01
IDLE_HALT_S = 0.5
"""How often it is decided whether a worker takes up anything, usually and in an idle hour, where nothing comes."""
TAKE_S = (0.003, 0.03, 0.3)
"""How long it tries a package at most, one of these."""
CHECK_S = 0.01
"""How long it leaves a check of its state at most."""

T = TypeVar("T")
_NOBODY = Recover(-1, {}, None)
_encode = msgspec.msgpack.Encoder().encode
_decode_code: msgspec.msgpack.Decoder[tuple[int, bytes]] = msgspec.msgpack.Decoder(tuple[int, bytes])
_decode_frame = msgspec.msgpack.Decoder(Frame).decode
_decode_message: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)


CLOCK_STEP_US: Final = 370_000
"""A process's clock is this much ahead of that of the one before, up to the third."""
CLOCK_BEHIND_US: Final = 250_000
"""The clock of the first process is so much behind."""
CLOCK_AHEAD_US_MAX: Final = 2 * CLOCK_STEP_US - CLOCK_BEHIND_US


class WorkerProcess:
    """One incarnation of a worker process. `alive` ends with a crash; a restart is another host."""

    def __init__(self, world: World, worker: int, incarnation: int, app: App, n_slots: int, limits: Limits) -> None:
        self.world = world
        self.id = worker
        self.process = worker
        self.link: CoordinatorProcess | None = None
        self.links: dict[int, int] = {}
        self.name = f"worker {worker} incarnation {incarnation}"
        self.alive = True
        self.frozen_until_s = 0.0
        self.start = ""
        """Which start of which process it is, where those have names; a start has several registrations."""
        self.expelled = False
        """Its coordinator has ended its registration, and needs not be told that it is lost."""
        self.spare: bool | None = None
        """What the coordinator said last of standing by."""
        self.code: dict[int, App] = {}
        """Versions that it can run, where it is handed them."""
        self.let_go: Callable[[], None] = lambda: None
        """What it does when the coordinator lets it go."""
        self._inbox: deque[Event] = deque()
        self.core = Worker(worker, app, n_slots, limits)
        self.journal = SimulatedJournal(self)
        self.readers = Readers(self, world.reads_seen)
        self._follower = None if world.changes_seen is None else WorkerFollower(self, world.changes_seen)
        self._alarms = 0
        self._clock_error_us = CLOCK_STEP_US * (worker % 3) - CLOCK_BEHIND_US
        self._halts = Random(f"{self.name} halts")
        self.stores_in(world.store.objects)
        self.poison: list[ReportPoison] = []
        self._n_slots = n_slots
        self._proceeding = False
        self._checking = False
        self._fed: dict[int, int] = {}
        self._fed_for = -1
        self._halted = False
        self._connected = -1
        self._recovering: Recover | None = None
        self.unmarked = False
        """It has told that events are there without a mark, and has marked none since."""
        world.time.after(0.0, self._beat)
        if world.plan.halts:
            self._halt()

    def stores_in(self, store: Store) -> None:
        """Where its parts of snapshots go from now on; it loads from the deployment's store all the same."""
        ports = WorkerPorts(self, self.journal, Objects(store, self._submit), self, self, self, self)
        self._host = WorkerHost(self.core, ports, self.give)

    def crash(self) -> None:
        """Nothing it had in memory or under way is there any more; appends on their way may arrive."""
        self.alive = False
        self.world.log.writer_crashed(self.name)
        self.core.end()

    def freeze(self, duration_s: float) -> None:
        """The process does nothing for a while, then finds everything that came meanwhile."""
        self.frozen_until_s = max(self.frozen_until_s, self.world.time.now_s + duration_s)
        self.world.time.after(duration_s, self._thaw)

    def _thaw(self) -> None:
        while self._inbox and self.world.time.now_s >= self.frozen_until_s:
            self.give(self._inbox.popleft())

    def give(self, event: Event) -> None:
        """The event happens to the process, once it is awake."""
        if not self.alive:
            return
        if self.world.time.now_s < self.frozen_until_s:
            self._inbox.append(event)
            return
        if isinstance(event, CoordinatorSaid) and isinstance(event.message, Recover):
            self._begin(event.message)
        elif isinstance(event, CoordinatorSaid) and isinstance(event.message, CheckState) and event.message.version:
            self.core.offer_app(event.message.version, self._code_of(event.message.version))
        spinning.watched_by(self._ends)
        effects = self.core.step(event)
        spinning.watched_by(None)
        for effect in effects:
            self._host.do(effect)
        if self.core.runnable and not self._proceeding:
            self._proceeding = True
            self.world.time.after(self.world.rng.random() * 0.0005, self._proceed)
        if self.world.plan.outside:
            self.readers.look()
        if self._follower is not None:
            self._follower.look()
        if self.core.checking and not self._checking:
            self._checking = True
            self.world.time.after(self.world.rng.random() * CHECK_S, self._check)

    def _ends(self, context: Context, endless: bool) -> bool:
        """The watchdog: ends what is endless, and what takes long now and then, but not where it is patient."""
        running = self.core.executor.running
        assert running.invocation is context, "a function runs that the engine does not name"
        if not endless and (self.core.patience == CLOSED_PATIENCE or self.world.rng.random() < 0.5):
            return False
        running.cut = True
        self.world.cuts += 1
        return True

    def _begin(self, recover: Recover) -> None:
        if recover.generation > self.core.generation:
            self._recovering = recover
            if recover.app_version:
                self.core.run_app(self._code_of(recover.app_version))
                self.spare = None

    def _code_of(self, version: int) -> App:
        if not self.world.plan.managed:
            return version_for(self.world.plan, version)
        assert version in self.code, f"{self.name} is to run version {version}, and has not taken it"
        return self.code[version]

    @property
    def identity(self) -> Identity | None:
        """What it appends with in its generation."""
        recover = self._recovering
        if recover is None or not recover.producers:
            return None
        return recover.producers[sorted(recover.addresses).index(self.id)]

    def lost(self, peer: int, reason: str) -> None:
        """It has noticed that it lost a connection; before its generation is connected, making them fails instead."""
        self.readers.lost(peer)
        if self._connected == self.core.generation and peer in (self._recovering or _NOBODY).addresses:
            self._broken(self.core.generation, peer, reason)

    def _broken(self, generation: int, peer: int, reason: str) -> None:
        if self.alive and generation == self.core.generation:
            message = Broken(generation, peer, reason)
            self.world.network.send(self.name, "coordinator", self.world.told_by(self), _encode(message))

    def refused(self, generation: int) -> Callable[[], None]:
        """What to do when the log refuses an append of this generation."""
        return lambda: self._broken(generation, -1, "the log refuses appends")

    def _proceed(self) -> None:
        self._proceeding = False
        self.give(Proceed())

    def _check(self) -> None:
        self._checking = False
        self.give(CheckFurther(self.world.rng.randint(1, 20)))

    def _beat(self) -> None:
        if not self.alive:
            return
        if self.world.time.now_s >= self.frozen_until_s:
            if self.world.plan.managed:
                loaded = self.core.reached not in (Step.LOADING, Step.LOADED)
                self.says(WorkerBeat(self.id, self.core.generation, loaded, self.core.holdings()[1]))
            else:
                self.world.network.send(self.name, "coordinator", self.world.heard_of(self), b"")
            if self.world.plan.outside and not self.world.idle:
                self.readers.look()
        self.world.time.after(IDLE_HEARTBEAT_S if self.world.idle else HEARTBEAT_S, self._beat)

    def _halt(self) -> None:
        """It takes up nothing for a while, as an embedded engine while its app changes."""
        before, self._halted = self._halted, self._halts.random() < self.world.plan.halts
        if before != self._halted:
            self.give(Halted(self._halted))
        if self.alive:
            self.world.time.after(IDLE_HALT_S if self.world.idle else HALT_S, self._halt)

    def receive_frame(self, data: bytes) -> None:
        """A peer's frame is here."""
        self.give(FrameArrived(_decode_frame(data)))

    def receive_message(self, data: bytes) -> None:
        """The coordinator's message is here."""
        self.give(CoordinatorSaid(_decode_message.decode(data)))

    def receive_code(self, data: bytes) -> None:
        """A package is here; trying it takes a while."""
        version, content = _decode_code.decode(data)
        self._try_code(version, content)

    def _try_code(self, version: int, content: bytes) -> None:
        world = self.world
        awake_s = max(world.time.now_s, self.frozen_until_s)
        world.time.at(awake_s + world.rng.random() * world.rng.choice(TAKE_S), self._take_code, version, content)

    def _take_code(self, version: int, content: bytes) -> None:
        if not self.alive:
            return
        if self.world.time.now_s < self.frozen_until_s:
            self._try_code(version, content)
            return
        problem = "" if runs_on(content, self.start) else "No module named 'chaos'"
        if not problem:
            self.code[version] = version_for(self.world.plan, number_of(content))
        self.says(CodeTaken(self.id, version, problem))

    def says(self, event: CoordinatorEvent) -> None:
        """To the coordinator that it is registered with, beside the protocol."""

        def deliver(_: bytes) -> None:
            if self.link is not None and self.world.workers.get(self.process) is self:
                self.link.give(event)

        self.world.network.send(self.name, "coordinator", deliver, b"")

    # Effects -----------------------------------------------------------------------------------------------

    def tell(self, message: ToCoordinator) -> None:
        """As `Links.tell`."""
        self.unmarked |= isinstance(message, Emitted)
        self.world.network.send(self.name, "coordinator", self.world.told_by(self), _encode(message))

    def send(self, effect: SendFrame) -> None:
        """As `Links.send`."""
        world, peer = self.world, self.world.numbered(effect.peer)
        if peer is not None and world.plan.cluster:
            world.links.send(self, peer, _encode(effect.frame))
        elif peer is not None:
            world.network.send(self.name, peer.name, peer.receive_frame, _encode(effect.frame))

    def load(self, wanted: LoadState, told: Callable[[StateLoaded | StateUnusable], None]) -> None:
        """As `Recovery.load`."""
        world = self.world
        if wanted.generation != self.core.generation:
            return
        self._fed = {}  # a consumer that seeks has nothing left over from before
        self.journal.begin()

        def load() -> StateLoaded | StateUnusable:
            try:
                scan = self._answered if world.plan.cluster else None
                answer = load_state(wanted, self._n_slots, world.log.records, world.store.objects, scan)
                answer.emitted = self._standing(wanted)
                return answer
            except Unusable as error:
                return StateUnusable(wanted.generation, str(error))

        def loaded(answer: StateLoaded | StateUnusable) -> None:
            if self.alive and wanted.generation == self.core.generation:
                if not self._connects(wanted.generation):
                    return
                self.journal.look_for_ends(self._n_slots)
                if isinstance(answer, StateLoaded):
                    answer.outcomes = world.outcomes
                told(answer)
                if isinstance(answer, StateLoaded):
                    self._fed = {slot: part.next_offset for slot, part in answer.slots.items()}
                    self._fed_for = wanted.generation
                    for slot in self._fed:
                        self.feed(slot)

        world.store.run(load, loaded, lambda: self.load(wanted, told) if self.alive else None)

    def _standing(self, wanted: LoadState) -> dict[str, StandingEvent]:
        firsts = dict.fromkeys(wanted.slots, 0)
        for slot in [] if wanted.manifest is None else wanted.manifest.slots:
            if slot.part.slot in firsts:
                firsts[slot.part.slot] = slot.part.events.get(event_log.NAME, 0)
        return event_log.standing(self.world.log.records, self.core.app, firsts)

    def _connects(self, generation: int) -> bool:
        """Whether every member of the generation can be reached; if not, that is told when nobody has dialled."""
        world, recover = self.world, self._recovering
        if not world.plan.cluster or recover is None:
            return True
        for peer in sorted(recover.addresses.keys() - {self.id}):
            if not world.links.connect(self, world.numbered(peer)):
                world.time.after(NOTICE_S, self._broken, generation, peer, "it cannot be reached")
                return False
        self._connected = generation
        return True

    def _answered(self, wanted: LoadState, log: LogReader) -> GivenReplies:
        parts = (
            [] if wanted.manifest is None else [s.part for s in wanted.manifest.slots if s.part.slot in wanted.slots]
        )
        firsts = [min((part.replies.get(p, 0) for part in parts), default=0) for p in range(self._n_slots)]
        records = (record for p, first in enumerate(firsts) for record in log.read(Stream.REPLIES, p, first))
        return given_replies(record.payload for record in records)

    def feed(self, slot: int) -> None:
        """Delivers a slot's new requests, in pieces, some of them twice."""
        rng, first = self.world.rng, self._fed.get(slot)
        if first is None or not self.alive:
            return
        if self.world.duplicating and rng.random() < 0.5:
            lowest, _ = self.world.log.records.bounds(Stream.REQUESTS, slot)
            first = max(lowest, first - rng.randrange(5))
        try:
            arrivals = list(self.world.log.records.read(Stream.REQUESTS, slot, first))
        except LogTruncated as error:
            # Only a later generation, made without this worker, can have released what it has not read.
            if self._fed_for >= self.world.log.fence:
                raise
            self._fed = {}
            self._broken(self._fed_for, -1, f"reading requests failed: {error}")
            return
        if not arrivals:
            return
        taken = arrivals[: rng.randint(1, len(arrivals))]
        self._fed[slot] = max(self._fed[slot], taken[-1].offset + 1)
        event = RequestsArrived(self._fed_for, slot, taken)

        def deliver(_: bytes) -> None:
            self.give(event)

        # One consumer's deliveries stay in order.
        self.world.network.send(f"log {slot}", self.name, deliver, b"")
        if len(taken) < len(arrivals):
            self.world.time.after(rng.random() * 0.002, self.feed, slot)

    def ended(self, effect: ReportEnds) -> None:
        """As `Findings.ended`."""
        raise AssertionError("its worker takes no notes")

    def differs(self, effect: ReplyDiffers) -> None:
        """As `Findings.differs`."""
        raise AssertionError(f"a replay differs: {effect}")

    def event_differs(self, effect: EventDiffers) -> None:
        """As `Findings.event_differs`."""
        raise AssertionError(f"a replay differs: {effect}")

    def not_resumed(self, effect: NotResumed) -> None:
        """As `Findings.not_resumed`."""
        raise AssertionError(f"a replay does not wait: {effect}")

    def left(self, effect: ReportLeft) -> None:
        """As `Findings.left`."""
        self.world.left += sum(effect.functions.values())

    def gave_up(self, effect: CallGivenUp) -> None:
        """As `Findings.gave_up`."""
        self.world.calls_given_up += 1

    def skipped(self, effect: ReportPoison) -> None:
        """As `Findings.skipped`."""
        self.poison.append(effect)

    def run(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
        """As `External.run`."""
        run_external(self, wanted, ended)

    def wake(self, due_us: int, told: Callable[[int], None]) -> None:
        """As `Wakes.wake`; each process has a clock of its own, which is a little wrong."""
        self._alarms += 1
        due_s = max(self.world.time.now_s, (due_us + 1 - self._clock_error_us) / 1e6)  # a clock shows whole ones
        self.world.time.at(due_s, self._ring, self._alarms, told)

    def _ring(self, alarm: int, told: Callable[[int], None]) -> None:
        if self.alive and alarm == self._alarms:
            told(max(0, self.world.log.timestamp_us + self._clock_error_us))

    def _submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        self.world.store.submit(what, run, ended, gave_up, lambda: self.alive)
