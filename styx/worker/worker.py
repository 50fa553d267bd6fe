"""The worker's protocol: one pure state machine, events in, effects out.

An epoch's steps in order: sequence, execute, barrier 1, validate, barrier 2, lock-free commit, lock phase if
there was a conflict, close. It owns its slots' state and decides every transaction rooted there; it never does
I/O, never reads a clock, and never waits. The coordinator's messages and the log's contents alone decide the
outcome. Paper sections 5 to 7.
"""

from __future__ import annotations

from styx.app import App
from styx.limits import Limits
from styx.protocol import (
    Commit,
    Conflicts,
    Done,
    EpochStarted,
    Join,
    Loaded,
    LoadFailed,
    LockDecision,
    LockReport,
    Recover,
    Resume,
    SlotsStored,
    SnapshotEnded,
    ToCoordinator,
    ToWorker,
    Validate,
    all_done,
)
from styx.sequencer.epoch_record import EpochPlan
from styx.worker import cuts, validation
from styx.worker.done_report import done_report
from styx.worker.epoch_log import EpochLog
from styx.worker.events import (
    CheckFurther,
    CoordinatorSaid,
    Effect,
    Event,
    ExternalEnded,
    FrameArrived,
    Proceed,
    RecordDurable,
    RequestsArrived,
    SendFrame,
    SlotPartsStored,
    StateLoaded,
    StateUnusable,
    StoreSlots,
    Tell,
)
from styx.worker.executor import Executor
from styx.worker.external_calls import due_calls
from styx.worker.generation_start import load_state
from styx.worker.given_replies import NOTHING
from styx.worker.intake import Intake
from styx.worker.lock_rounds import LockRounds
from styx.worker.messages import ExternalDone, Frame
from styx.worker.notes import Notes
from styx.worker.replies import Replies
from styx.worker.reply_memory import ReplyMemory, memory_of
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot, Table, holdings
from styx.worker.slot_content import content_of
from styx.worker.state_watch import StateWatch, watch_of
from styx.worker.step import Step


class Worker:
    """One worker; `step` is its whole interface. Reading its fields is fine, changing them is not.

    `epoch` is the last closed epoch while idle, else the open one. `counter` is every slot's TID counter at its start.
    `recorded_until` is the last epoch that was to be replayed, -1 if there was none.
    What is worth telling of transactions that end goes to `notes`, from where its host takes it, if there are any.
    """

    def __init__(self, worker: int, app: App, n_slots: int, limits: Limits, notes: Notes | None = None) -> None:
        self.notes = notes
        self.id = worker
        self.app = app
        self.n_slots = n_slots
        self.limits = limits
        self.generation = -1
        self.transactions_ended = 0
        self.reached = Step.LOADING
        self._effects: list[Effect] = []
        self._held: dict[int, dict[str, Table]] = {}
        self._held_at: tuple[int, int] | None = None
        self._candidate = (0, app)
        self._forget()

    def _reach(self, step: Step) -> None:
        self.reached = step

    def _forget(self) -> None:
        """A generation begins with nothing."""
        self.executor = Executor(self.id, self.app, self.limits, self.n_slots, self.notes)
        self.slots: dict[int, Slot] = {}
        self.epoch, self.counter = -1, 0
        self._intake = Intake(self.app, self.limits, self.n_slots, self.executor.running)
        self._memories: dict[int, ReplyMemory] = {}
        self.pressure = self._intake.pressure
        self._replies = Replies(self._memories, self.n_slots)
        self._plans: dict[int, EpochPlan] = {}
        self.recorded_until, self._answered = -1, NOTHING
        self._early: dict[int, list[Frame]] = {}
        self._early_outcomes: list[ExternalDone] = []
        self._joined = -1
        self._log = EpochLog()
        self._reported = False
        self._new_max = 0
        self._barrier: Validate | None = None
        self._done: Done | None = None
        self._conflicts: list[int] | None = None
        self._alone = False
        self._locked: frozenset[int] = frozenset()
        self._locks: LockRounds | None = None
        self._lock_report: LockReport | None = None
        self._unlocked: list[int] = []
        self._state_watch: StateWatch | None = None

    @property
    def runnable(self) -> bool:
        """There are functions to run: give it `Proceed` after the next look at the network."""
        if self.reached is Step.EXECUTING:
            return not self.executor.idle
        if self.reached is Step.HOLDING:
            return self._state_watch is not None and self._state_watch.urgent
        return self.reached is Step.LOCKING and not self._reported

    @property
    def checking(self) -> bool:
        """State is to be checked in the background: give it `CheckFurther` now and then."""
        return self._state_watch is not None and self._state_watch.pending

    @property
    def replaying(self) -> bool:
        """Recorded epochs are ahead."""
        return self.epoch + 1 in self._plans

    @property
    def patience(self) -> int:
        """How many times longer than usual a function may run now."""
        return cuts.patience(self._plans.get(self.epoch), self._answered, self.reached is Step.LOCKING)

    @property
    def backlog(self) -> int:
        """Requests that have arrived and are in no epoch yet."""
        return self._intake.backlog

    def waiting(self) -> dict[int, tuple[int, int]]:
        """The same by slot, and their bytes."""
        return self._intake.waiting()

    def holdings(self) -> tuple[int, list[str]]:
        """(entities that have state here, names of their operators)."""
        return holdings(self.slots.values())

    def run_app(self, app: App, limits: Limits | None = None) -> None:
        """The next generation runs this version of the app, within these limits or the present ones."""
        self.app = app
        self.limits = self.limits if limits is None else limits

    def offer_app(self, version: int, app: App) -> None:
        """The code of the version that the next `CheckState` names."""
        self._candidate = (version, app)

    @property
    def unfinished(self) -> int:
        """Transactions that are sequenced and have not ended: in the open epoch, carried, or parked."""
        return len(self.executor.roots) + len(self._intake.carried) + len(self._intake.parked)

    def step(self, event: Event) -> list[Effect]:
        """Takes one event; returns what is to be done, in order."""
        self._effects = []
        if isinstance(event, Proceed):
            if self.reached is Step.LOCKING:
                self._run_locks()
            elif self.reached is Step.HOLDING:
                self._check(self.limits.slice_invocations)
            elif self.reached is Step.EXECUTING:
                self.executor.run(self.limits.slice_invocations)
        elif isinstance(event, RequestsArrived):
            self._intake.arrive(event.slot, event.arrivals)
            if event.more:
                return self._effects
        elif isinstance(event, FrameArrived):
            self._take_frame(event.frame)
        elif isinstance(event, CoordinatorSaid):
            self._take_message(event.message)
        elif isinstance(event, CheckFurther):
            self._check(event.entities)
        elif event.generation == self.generation:
            self._take_answer(event)
        self._advance()
        return self._effects

    def _take_answer(self, event: Event) -> None:
        if isinstance(event, RecordDurable):
            self._log.undurable -= event.epoch == self.epoch
        elif isinstance(event, StateLoaded):
            self._load(event)
        elif isinstance(event, StateUnusable):
            self._tell(LoadFailed(self.generation, event.reason))
        elif isinstance(event, SlotPartsStored):
            self._tell(SlotsStored(self.generation, event.epoch, event.parts))
        elif isinstance(event, ExternalEnded):
            owner = self.executor.owners[event.root_slot]
            done = ExternalDone(event.tid, event.root_slot, event.key, event.outcome)
            if owner == self.id:
                self._external_done(done)
            else:
                self._effects.append(SendFrame(owner, Frame(self.generation, self.epoch, self.id, [done])))

    def _tell(self, message: ToCoordinator) -> None:
        self._effects.append(Tell(message))

    def _take_frame(self, frame: Frame) -> None:
        if frame.generation != self.generation or self.reached is Step.LOADING:
            return
        open_epoch, epoch = self.reached is Step.EXECUTING, frame.epoch
        for message in frame.messages:
            if isinstance(message, ExternalDone):
                self._external_done(message)
            elif open_epoch and epoch == self.epoch:
                self.executor.deliver(message)
            elif epoch > self.epoch:
                # The sender has closed this epoch already and begun the next.
                self._early.setdefault(epoch, []).append(Frame(frame.generation, epoch, frame.sender, [message]))

    def _take_message(self, message: ToWorker) -> None:
        if isinstance(message, Recover):
            if message.generation > self.generation:
                self._recover(message)
            return
        if message.generation != self.generation:
            return
        if isinstance(message, Resume):
            self._answered = message.answered
            self._reach(Step.IDLE)
        elif isinstance(message, Join):
            self._joined = message.epoch
        elif isinstance(message, Validate):
            self._validate(message)
        elif isinstance(message, Commit):
            self._commit(message)
        elif isinstance(message, LockDecision):
            self._lock_decided(message)
        elif isinstance(message, SnapshotEnded):
            self._snapshot_ended(message.complete)
        else:
            limits, slots, running = self.limits, self.slots.values(), self.executor.running
            self._state_watch = watch_of(message, *self._candidate, self.n_slots, limits, slots, running)

    def _check(self, entities: int) -> None:
        if self._state_watch is not None:
            self._effects.extend(map(Tell, self._state_watch.run(self.generation, entities)))

    def _snapshot_ended(self, complete: bool) -> None:
        for slot in self.slots.values():
            slot.delta_stored() if complete else slot.delta_failed()
        if self.reached is Step.HOLDING and not complete:
            self._reach(Step.IDLE)
            if self._state_watch is not None:
                self._state_watch.go_on()

    # Generations -------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Nothing follows: all state is freed here and now, although others may go on referring to the worker."""
        self.executor.end()
        self._forget()
        self._held, self._effects = {}, []

    def _recover(self, message: Recover) -> None:
        self.executor.end()
        self._forget()
        self.generation = message.generation
        self.executor.owners = dict(message.owners)
        self._alone = len(message.addresses) == 1
        self._reach(Step.LOADING)
        mine = sorted(slot for slot, owner in message.owners.items() if owner == self.id)
        snapshot = None if message.manifest is None else (message.manifest.generation, message.manifest.epoch)
        if snapshot is None or snapshot != self._held_at:
            self._held = {}
        self._held_at = snapshot
        self._effects.append(load_state(message, mine, self._held, self.app, self.limits))

    def _load(self, loaded: StateLoaded) -> None:
        self.epoch, self.counter = loaded.epoch, loaded.counter
        self._plans = {plan.epoch: plan for plan in loaded.plans}
        self._replies.answered = loaded.answered
        for index, part in loaded.slots.items():
            slot = self.slots[index] = Slot(index)
            slot.load(part.tables if part.converted else self._held.get(index, part.tables), part.converted)
            memory = self._memories[index] = memory_of(slot, self.limits)
            self._intake.add_slot(index, part.next_offset, part.pending, part.passed_over, memory)
        self.executor.slots = self.slots
        self._hold()
        self._reach(Step.LOADED)
        converted = any(slot.converted for slot in self.slots.values())
        self.recorded_until = max(self._plans, default=-1)
        self._tell(Loaded(self.generation, self.recorded_until, converted, loaded.answered_until))

    def _hold(self) -> None:
        """The state is that of a snapshot until the next epoch begins: a generation that starts from it loads less."""
        self._held = {index: slot.tables for index, slot in self.slots.items() if not slot.converted}

    # Sequencing --------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Whatever can go on now goes on."""
        if self.reached is Step.IDLE:
            self._begin_epoch()
        if self.reached is Step.EXECUTING:
            self._report_done()
        if self.reached is Step.VALIDATING:
            self._report_conflicts()
        self._report_locks()
        outbox = self.executor.outbox
        if outbox.full or not self.runnable:
            for peer, frame in outbox.take(self.generation, self.epoch, self.id):
                self._effects.append(SendFrame(peer, frame))

    def _begin_epoch(self) -> None:
        epoch = self.epoch + 1
        plan = self._plans.get(epoch)
        if plan is not None:
            if not self._intake.can_replay(plan):
                return
            assert plan.counter == self.counter, "a replayed epoch starts at another TID counter than recorded"
        elif not self._intake.has_work and self._joined < epoch:
            return
        self._reach(Step.EXECUTING)
        self._held, self._held_at = {}, None
        self.epoch = epoch
        self._reported = False
        self._replies.begin(epoch, plan is not None)
        if self.notes is not None:
            self.notes.begin(epoch, None if plan is None else self._replies.answered)
        roots, batches = self._intake.replay(plan) if plan is not None else self._intake.form(self.counter)
        self._effects.extend(self._intake.take_told())
        self._new_max = max((batch.count for batch in batches), default=0)
        self._log.begin()
        self._unlocked = [] if plan is None else plan.unlocked
        if plan is None:
            self._effects.append(self._log.composition(self.generation, epoch, self.counter, batches))
        else:
            cuts.apply(plan.ended, roots)
        if not self._alone and self._joined < epoch:  # else nobody has to be told to join
            self._tell(EpochStarted(self.generation, epoch))
        self.executor.begin(roots)
        for frame in self._early.pop(epoch, ()):
            for message in frame.messages:
                assert not isinstance(message, ExternalDone)
                self.executor.deliver(message)

    # Barriers ----------------------------------------------------------------------------------------------

    def _report_done(self) -> None:
        if self._reported or self.executor.open_roots:
            return
        self._reported = True
        cuts.settle(self.executor.cut_roots, self.patience)
        roots = self.executor.roots.values()
        done = done_report(self.generation, self.epoch, self._new_max, roots, self.limits.invocations_max)
        if self._alone:
            # The coordinator hears of barrier 1 together with what this worker says at barrier 2.
            self._done = done
            self._validate(all_done([done]))
        else:
            self._tell(done)

    def _validate(self, barrier: Validate) -> None:
        assert self.reached is Step.EXECUTING, self.reached
        assert self._reported, "barrier 1 passed without this worker's report"
        assert barrier.epoch == self.epoch
        self._reach(Step.VALIDATING)
        self._barrier = barrier
        gone = {*barrier.aborted, *barrier.deferred}
        self._conflicts = sorted(set[int]().union(*[validation.conflicts(slot, gone) for slot in self.slots.values()]))
        ended = cuts.verdicts(self.executor.cut_roots, self.executor.cut, barrier.deferred)
        self._effects.extend(self._log.verdicts(self.generation, self.epoch, ended, []))

    def _report_conflicts(self) -> None:
        """Not before the epoch's records are durable: what follows barrier 2 can be seen from outside."""
        if self._conflicts is None or self._log.undurable:
            return
        if self._done is not None:
            self._tell(self._done)
        self._tell(Conflicts(self.generation, self.epoch, self._conflicts))
        self._done = self._conflicts = None

    def _external_done(self, done: ExternalDone) -> None:
        if done.tid in self.executor.roots:
            # The call has ended on another worker before this one learned of barrier 2, or amid the lock phase.
            self._early_outcomes.append(done)
        else:
            self._intake.outcome(done)

    # Commit ------------------------------------------------------------------------------------------------

    def _commit(self, barrier: Commit) -> None:
        assert self.reached is Step.VALIDATING, self.reached
        assert self._barrier is not None
        assert barrier.epoch == self.epoch
        # Outside effects begin only now, when the epoch that leads to them can no longer be lost.
        self._effects.extend(due_calls(self.generation, self.slots.values(), set(self._barrier.deferred)))
        locked = self._locked = frozenset(barrier.locked)
        gone = {*self._barrier.aborted, *self._barrier.deferred}
        left = locked | gone
        for slot in self.slots.values():
            validation.commit(slot, left)
        roots = self.executor.roots_in_order()
        if self.notes is not None and (gone or self.app.logs):
            aborted = gone.difference(self._barrier.deferred)
            self.notes.at_commit(self.slots.values(), aborted, left, self.executor.roots)
        # Phase by phase: replies are remembered, and forgotten, in serial order, which is what a snapshot restores.
        if gone:
            for root in roots:
                if root.overflow or root.external:
                    self._intake.defer(root)
                elif root.tid in gone:
                    self._end([root], 0)
        self._end([root for root in roots if root.tid not in left] if left else roots, 1)
        if not locked:
            self._close(barrier)
            return
        large = set(self._barrier.large)
        self._locks = LockRounds(self.slots, locked, large, self.executor.running, self._unlocked, self.notes)
        self._reach(Step.LOCKING)
        self._begin_round()
        # Nobody has to wait for the lock phase whose end is known before it.
        self._effects.extend(self._replies.take())

    def _begin_round(self) -> None:
        self._reported = False
        self._run_locks()

    def _run_locks(self) -> None:
        """A slice of the lock phase's round, and its report when all slots are through."""
        assert self._locks is not None
        if self._locks.run(self.limits.slice_invocations) and not self._reported:
            self._reported = True
            cut = cuts.of_locks(self._locks.cut(), self.patience)
            self._effects.extend(self._log.verdicts(self.generation, self.epoch, [], cut))
            failures = self._locks.failures()
            self._lock_report = LockReport(self.generation, self.epoch, self._locks.number, failures, cut)
            self._report_locks()

    def _report_locks(self) -> None:
        if self._lock_report is not None and not self._log.undurable:
            self._tell(self._lock_report)
            self._lock_report = None

    def _lock_decided(self, decision: LockDecision) -> None:
        assert self.reached is Step.LOCKING, self.reached
        assert self._locks is not None
        assert decision.epoch == self.epoch
        if not decision.final:
            self._locks.decided(decision)
            self._begin_round()
            return
        self._locks.commit()
        locked = [root for root in self.executor.roots_in_order() if root.tid in self._locked]
        self._end([root for root in locked if self._locks.end(root)], 2)
        self._intake.carried += self._locks.carried
        self._close(decision)

    def _end(self, roots: list[RootTransaction], phase: int) -> None:
        for root in roots:
            if root.idempotency is not None:
                self._intake.ended(root)
        self._replies.add(roots, phase)
        self.transactions_ended += len(roots)

    def _close(self, last: Commit | LockDecision) -> None:
        assert self._barrier is not None
        self.counter += self._barrier.new_max
        self._effects.extend(self._replies.take())
        self.pressure.ended(self.executor.roots.values(), self._replies.n_bytes)
        self.executor.end()
        self._plans.pop(self.epoch, None)
        self._early.pop(self.epoch, None)
        early, self._early_outcomes = self._early_outcomes, []
        for done in early:
            self._intake.outcome(done)
        self._barrier = self._locks = None
        self._locked = frozenset()
        self._reach(Step.HOLDING if last.hold else Step.IDLE)
        if last.hold:
            self._held_at = (self.generation, self.epoch)
            self._hold()
        if last.snapshot and self.slots:
            slots = self.slots.values()
            contents = [content_of(slot, slot.index in last.whole, *self._intake.rest(slot.index)) for slot in slots]
            self._effects.append(StoreSlots(self.generation, self.epoch, self.id, contents))
            if self._state_watch is not None:
                self._state_watch.snapshot(self.epoch, slots, last.hold)
