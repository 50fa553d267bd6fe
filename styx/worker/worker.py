"""The worker's protocol: one pure state machine, events in, effects out.

It owns its slots' state and decides every transaction rooted there. `Worker` goes from generation to generation and
from epoch to epoch; what happens within an epoch is `Epoch`'s. It never does I/O, never reads a clock, and never waits.
The coordinator's messages and the log's contents alone decide the outcome. Paper sections 5 to 7.
"""

from __future__ import annotations

from styx.model.app import App
from styx.model.limits import Limits
from styx.protocol.frames import ExternalDone, Frame
from styx.protocol.messages import (
    CheckState,
    Commit,
    Join,
    Loaded,
    LockDecision,
    Mark,
    Recover,
    Resume,
    SlotsStored,
    SnapshotEnded,
    SnapshotUnusable,
    ToCoordinator,
    ToWorker,
    Validate,
)
from styx.state.slot_state import SlotState, holdings, rows_held
from styx.worker.deliveries import Deliveries
from styx.worker.epoch import Epoch, Watch
from styx.worker.events import (
    CheckFurther,
    ClockTold,
    CoordinatorSaid,
    Effect,
    EpochWanted,
    Event,
    ExternalAppended,
    ExternalReturned,
    FrameArrived,
    Halted,
    LogLags,
    Proceed,
    RecordDurable,
    RepliesDurable,
    ReportEnds,
    RequestsArrived,
    SendFrame,
    SlotPartsStored,
    StateLoaded,
    StateUnusable,
    Step,
    StoreSlots,
    SyncReplies,
    Tell,
    WakeAt,
)
from styx.worker.executor import Executor
from styx.worker.generation import Generation, to_be_loaded
from styx.worker.notes import Notes
from styx.worker.pressure import Pressure
from styx.worker.reply_memory import ReplyMemory
from styx.worker.slot import Slot, content_of
from styx.worker.state_watch import StateWatch, watch_of


class Worker:
    """One worker. Its host calls `step`, and may read the other properties.

    `notes` collects the exceptions and log lines of transactions that end, until `ReportEnds`. `watch` observes each
    step of an epoch.
    """

    def __init__(
        self,
        worker: int,
        app: App,
        n_slots: int,
        limits: Limits,
        notes: Notes | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.notes = notes
        self.id = worker
        self.app = app
        self.n_slots = n_slots
        self.limits = limits
        self._watch = Watch() if watch is None else watch
        self._log_lags = self._halted = False
        self._now_us = 0
        self._wake_at: int | None = None
        self._generation = self._new_generation(-1, alone=False)
        self._open: Epoch | None = None
        self._between = Step.LOADING
        self._effects: list[Effect] = []
        self._ended_before = 0
        self._held: dict[int, SlotState] = {}
        self._held_at: tuple[int, int] | None = None
        self._candidate = (0, app)
        self._state_watch: StateWatch | None = None

    def _new_generation(self, number: int, alone: bool) -> Generation:
        generation = Generation(number, self.id, self.app, self.n_slots, self.limits, self.notes, alone)
        generation.intake.pressure.congested, generation.intake.pressure.halted = self._log_lags, self._halted
        return generation

    # What it is like ---------------------------------------------------------------------------------------

    @property
    def reached(self) -> Step:
        """The step that the worker is in."""
        return self._between if self._open is None else self._open.step

    @property
    def generation(self) -> int:
        """The present generation's number, -1 before the first."""
        return self._generation.number

    @property
    def generation_data(self) -> Generation:
        """What the worker has in the present generation."""
        return self._generation

    @property
    def epoch(self) -> int:
        """The open epoch, or the last one that has closed."""
        return self._generation.epoch

    @property
    def counter(self) -> int:
        """Every slot's TID counter at the start of the open epoch, or of the next one."""
        return self._generation.counter

    @property
    def slots(self) -> dict[int, Slot]:
        """Its slots and their state, by number."""
        return self._generation.slots

    @property
    def memories(self) -> dict[int, ReplyMemory]:
        """The remembered replies of its slots."""
        return self._generation.memories

    @property
    def executor(self) -> Executor:
        """The executor of the open epoch's functions."""
        return self._generation.executor

    @property
    def pressure(self) -> Pressure:
        """The limits on the size of the next epoch."""
        return self._generation.intake.pressure

    @property
    def recorded_until(self) -> int:
        """The last epoch that was to be replayed, -1 if there was none."""
        return self._generation.recorded_until

    @property
    def transactions_ended(self) -> int:
        """How many transactions have ended, in all generations."""
        return self._ended_before + self._generation.ended

    @property
    def runnable(self) -> bool:
        """Whether there are functions to run: the host polls the network, and then gives `Proceed`."""
        if self._open is not None:
            return self._open.runnable
        return self._between is Step.HOLDING and self._state_watch is not None and self._state_watch.urgent

    @property
    def checking(self) -> bool:
        """Whether state is to be checked in the background: the host gives `CheckFurther` now and then."""
        return self._state_watch is not None and self._state_watch.pending

    @property
    def replaying(self) -> bool:
        """Whether recorded epochs are still to be replayed."""
        return self.epoch + 1 in self._generation.plans

    @property
    def patience(self) -> int:
        """How many times longer than usual a function may run now."""
        return 1 if self._open is None else self._open.patience

    @property
    def backlog(self) -> int:
        """Requests that have arrived and are in no epoch yet."""
        return self._generation.intake.backlog

    def waiting(self) -> dict[int, tuple[int, int]]:
        """The backlog by slot: (requests, bytes)."""
        return self._generation.intake.waiting()

    def holdings(self) -> tuple[int, list[str]]:
        """(entities that have state here, names of their operators)."""
        return holdings(slot.state for slot in self.slots.values())

    def rows_held(self) -> dict[str, tuple[int, int]]:
        """(rows here, indexes made of them) by table."""
        return rows_held(slot.state for slot in self.slots.values())

    @property
    def unfinished(self) -> int:
        """Transactions that are sequenced and have not ended: in the open epoch, carried, or parked."""
        intake = self._generation.intake
        return len(self.executor.roots) + len(intake.carried) + len(intake.parked)

    @property
    def given_for_later(self) -> int:
        """Calls that were given for later, and not made or given up."""
        return self._generation.intake.deliveries.waiting()

    @property
    def deliveries(self) -> Deliveries:
        """The calls that were given for later, and the latest time that it was told."""
        return self._generation.intake.deliveries

    def run_app(self, app: App, limits: Limits | None = None) -> None:
        """The next generation runs this version of the app, within these limits or the present ones."""
        self.app = app
        self.limits = self.limits if limits is None else limits

    def offer_app(self, version: int, app: App) -> None:
        """The code of the version that the next `CheckState` names."""
        self._candidate = (version, app)

    # Events ------------------------------------------------------------------------------------------------

    def step(self, event: Event) -> list[Effect]:
        """Takes one event. Returns the effects, in the order in which the host must carry them out."""
        effects = self._effects
        effects.clear()
        if isinstance(event, Proceed):
            if self._open is not None:
                self._open.run()
            elif self._between is Step.HOLDING:
                self._check(self.limits.slice_invocations)
        elif isinstance(event, RequestsArrived):
            if not self._arrived(event):
                return []
        elif isinstance(event, FrameArrived):
            self._take_frame(event.frame)
        elif isinstance(event, CoordinatorSaid):
            self._take_message(event.message)
        elif isinstance(event, CheckFurther):
            self._check(event.entities)
        elif isinstance(event, LogLags | Halted | ClockTold):
            self._hear(event)
        elif event.generation == self.generation:
            self._take_answer(event)
        self._advance()
        if self.notes is not None and not self.notes.empty:
            effects.insert(0, ReportEnds())
        return effects.copy()

    def _arrived(self, event: RequestsArrived) -> bool:
        """Takes requests. Returns whether the worker goes on now. Ignores requests that were fetched for an older
        generation, because they have gaps.
        """
        if event.generation != self.generation:
            return False
        self._generation.intake.arrive(event.slot, event.arrivals)
        return not event.more

    def _clock(self, now_us: int) -> None:
        self._now_us = max(self._now_us, now_us)
        self._generation.intake.deliveries.now_us = self._now_us
        self._wake_at = None

    def _ask_for_time(self) -> None:
        """Asks to be told when the next call is due, unless it has. In each generation anew: so crons begin now."""
        deliveries = self._generation.intake.deliveries
        next_us = deliveries.next_us()
        if next_us is not None and next_us > deliveries.now_us and next_us != self._wake_at:
            self._wake_at = next_us
            self._effects.append(WakeAt(next_us))

    def _hear(self, event: LogLags | Halted | ClockTold) -> None:
        if isinstance(event, ClockTold):
            self._clock(event.now_us)
        elif isinstance(event, LogLags):
            self._log_lags = self.pressure.congested = event.lags
        else:
            self._halted = self.pressure.halted = event.halted

    def _take_answer(self, event: Event) -> None:
        if isinstance(event, RecordDurable):
            if self._open is not None and event.epoch == self._open.number:
                self._generation.durable = event.epoch
                self._open.durable()
        elif isinstance(event, StateLoaded):
            self._load(event)
        elif isinstance(event, StateUnusable):
            self._tell(SnapshotUnusable(self.generation, event.reason))
        elif isinstance(event, SlotPartsStored):
            stored = self._generation.stored
            if stored is None or event.epoch > stored.epoch:  # the answer for a snapshot that failed may come late
                self._generation.stored = event
            self._tell_stored()
        elif isinstance(event, RepliesDurable):
            self._generation.replies_durable = event.epoch
            self._tell_stored()
        elif isinstance(event, EpochWanted):
            self._generation.wanted = max(self._generation.wanted, event.epoch)
        elif isinstance(event, ExternalAppended):
            self._effects.extend(self._generation.externals.appended(event.key, event.outcome))
            self._tell_ended_calls()
        elif isinstance(event, ExternalReturned):
            self._effects.append(self._generation.externals.returned(event.key, event.outcome))

    def _tell(self, message: ToCoordinator) -> None:
        self._effects.append(Tell(message))

    def _take_frame(self, frame: Frame) -> None:
        generation, epoch = self._generation, frame.epoch
        if frame.generation != generation.number or self._between is Step.LOADING:
            return
        for message in frame.messages:
            if isinstance(message, ExternalDone):
                self._external_done(message)
            elif self._open is not None and epoch == self._open.number:
                self._open.deliver(message)
            elif epoch > generation.epoch:
                # The sender has closed this epoch already and begun the next.
                generation.early.setdefault(epoch, []).append(message)

    def _tell_ended_calls(self) -> None:
        """Sends the outcomes of external calls to the workers with the roots of their transactions."""
        for done in self._generation.externals.ended():
            owner = self.executor.owners[done.root_slot]
            if owner == self.id:
                self._external_done(done)
            else:
                self._effects.append(SendFrame(owner, Frame(self.generation, self.epoch, self.id, [done])))

    def _external_done(self, done: ExternalDone) -> None:
        if self._open is not None:
            self._open.outcome(done)
        else:
            self._generation.intake.outcome(done)

    def _take_message(self, message: ToWorker) -> None:
        if isinstance(message, Recover):
            if message.generation > self.generation:
                self._recover(message)
        elif message.generation != self.generation:
            return
        elif isinstance(message, Validate | Commit | LockDecision):
            self._take_decision(message)
        elif isinstance(message, Resume):
            self._generation.answered = message.answered
            self._between = Step.IDLE
        elif isinstance(message, Join):
            self._generation.joined = message.epoch
        elif isinstance(message, Mark):
            self._effects += self._generation.mark(message)
        elif isinstance(message, SnapshotEnded):
            self._snapshot_ended(message)
        elif isinstance(message, CheckState):
            limits, slots, running = self.limits, self.slots.values(), self.executor.running
            self._state_watch = watch_of(message, *self._candidate, self.n_slots, limits, slots, running, self.app)

    # Generations -------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Ends the worker: all state is freed now, although other objects may go on referring to the worker."""
        self._begin_generation(self.generation, alone=False)
        self._held = {}
        self._effects.clear()

    def _begin_generation(self, number: int, alone: bool) -> None:
        """Begins a generation, without state yet."""
        self.executor.end()
        self._generation.intake.deliveries.end()
        self._watch.abandons()
        self._ended_before += self._generation.ended
        self._generation = self._new_generation(number, alone).behind(self._generation)
        self._open = self._state_watch = self._wake_at = None
        self._between = Step.LOADING

    def _recover(self, message: Recover) -> None:
        self._begin_generation(message.generation, alone=len(message.addresses) == 1)
        self.executor.owners = dict(message.owners)
        snapshot = None if message.manifest is None else (message.manifest.generation, message.manifest.epoch)
        if snapshot is None or snapshot != self._held_at:
            self._held = {}
        self._held_at = snapshot
        self._effects.append(to_be_loaded(message, self.id, self._held, self.app, self.limits, self.n_slots))

    def _load(self, loaded: StateLoaded) -> None:
        generation = self._generation
        generation.load(loaded, self._held)
        self._hold()
        self._between = Step.LOADED
        converted = any(slot.state.converted for slot in generation.slots.values())
        self._tell(Loaded(generation.number, generation.recorded_until, converted, loaded.answered_until))
        self._effects += generation.begin_marks()

    def _hold(self) -> None:
        """Keeps the state as the snapshot's until the next epoch begins. A generation that starts from that snapshot
        then loads less.
        """
        self._held = {index: slot.state for index, slot in self.slots.items() if not slot.state.converted}

    # Epochs ------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Goes on as far as possible now."""
        epoch = self._open
        if epoch is not None:
            if epoch.last is None:
                epoch.advance()
            if epoch.last is not None:
                self._closed(epoch.last)
        if self._open is None and self._between is Step.IDLE:
            self._begin_epoch()
            if self._generation.intake.deliveries.any:
                self._ask_for_time()
        outbox = self.executor.outbox
        if outbox.full or not self.runnable:
            for peer, frame in outbox.take(self.generation, self.epoch, self.id):
                self._effects.append(SendFrame(peer, frame))

    def _begin_epoch(self) -> None:
        generation = self._generation
        if generation.externals.waiting and not generation.intake.pressure.halted:
            self._effects.extend(generation.externals.go_on())
            self._tell_ended_calls()
        epoch = generation.epoch + 1
        plan = generation.plans.get(epoch)
        if plan is not None:
            if not generation.intake.can_replay(plan):
                return
            assert plan.counter == generation.counter, "a replayed epoch starts at another TID counter than recorded"
        elif not generation.intake.has_work and generation.joined < epoch and generation.wanted < epoch:
            return
        self._held, self._held_at = {}, None
        generation.epoch = epoch
        begun = self._open = Epoch(generation, plan, self._watch, self._effects)
        begun.begin()
        begun.advance()

    def _take_decision(self, decision: Validate | Commit | LockDecision) -> None:
        epoch = self._open
        assert epoch is not None, self._between
        if isinstance(decision, Validate):
            epoch.validate(decision)
        elif isinstance(decision, Commit):
            epoch.commit(decision)
            self._tell_ended_calls()
        else:
            epoch.lock_decided(decision)

    def _closed(self, last: Commit | LockDecision) -> None:
        generation = self._generation
        self._open = None
        self._between = Step.HOLDING if last.hold else Step.IDLE
        self._watch.closes(generation.executor, generation.ended)
        if generation.changes is not None or generation.marks is not None:
            self._effects += generation.closed()
        if last.hold:
            self._held_at = (generation.number, generation.epoch)
            self._hold()
        if last.snapshot and generation.slots:
            slots, rest = generation.slots.values(), generation.intake.rest
            contents = [content_of(slot, slot.index in last.whole, *rest(slot.index)) for slot in slots]
            self._effects.append(StoreSlots(generation.number, generation.epoch, self.id, contents))
            self._effects.append(SyncReplies(generation.number, generation.epoch))
            if self._state_watch is not None:
                self._state_watch.snapshot(generation.epoch, slots, last.hold)

    # Snapshots and checks of the state ---------------------------------------------------------------------

    def _tell_stored(self) -> None:
        """Reports a stored snapshot once all replies of its epoch are durable. A recovery from the snapshot does not
        give these replies again, so one that was lost would stay lost.
        """
        generation = self._generation
        stored = generation.stored
        if stored is not None and (stored.parts is None or generation.replies_durable >= stored.epoch):
            generation.stored = None
            self._tell(SlotsStored(generation.number, stored.epoch, stored.parts))

    def _snapshot_ended(self, message: SnapshotEnded) -> None:
        complete = message.complete
        if self._open is not None and not complete:
            self._open.snapshot_failed(message.epoch)
        for slot in self.slots.values():
            slot.state.delta_stored() if complete else slot.state.delta_failed()
        if self._open is None and self._between is Step.HOLDING and not complete:
            self._between = Step.IDLE
            if self._state_watch is not None:
                self._state_watch.go_on()

    def _check(self, entities: int) -> None:
        if self._state_watch is not None:
            self._effects.extend(map(Tell, self._state_watch.run(self.generation, entities)))
