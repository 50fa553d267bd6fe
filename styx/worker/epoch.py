"""One epoch on one worker, from its transactions to its close: execute, barrier 1, validate, barrier 2, lock-free
commit, a lock phase if there was a conflict, and phase 3 if there are local transactions.

It is made when the epoch begins and dropped when the epoch has closed. Paper sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from styx.model.execution import ErrorTriple
from styx.native.interpreted import native
from styx.protocol.frames import Ack, Call, Drop, ExternalDone, Patch, Result
from styx.protocol.messages import Commit, Conflicts, Done, EpochStarted, LockDecision, LockReport, Validate
from styx.sequencer.epoch_record import EpochPlan, EpochRecord, SlotBatch, Verdicts, encode
from styx.worker import cuts, validation
from styx.worker.events import AppendEpochRecord, AppendVerdicts, Effect, ReportLeft, Step, Tell
from styx.worker.executor import Executor
from styx.worker.external_calls import due_calls
from styx.worker.generation import Generation
from styx.worker.local_phase import LocalPhase
from styx.worker.lock_rounds import LockRounds
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot

NO_VERDICTS: Final[Mapping[int, ErrorTriple | None]] = {}


class Epoch:
    """One epoch. `step` is the step that it is in. It has closed once `last`, the coordinator's final decision, is set.

    `plan` is the record that a replay follows, None for a new epoch. The epoch appends its effects to `effects`.
    """

    def __init__(self, generation: Generation, plan: EpochPlan | None, watch: Watch, effects: list[Effect]) -> None:
        self.number = generation.epoch
        self.step = Step.EXECUTING
        self.last: Commit | LockDecision | None = None
        self.plan = plan
        self._generation = generation
        self._executor = generation.executor
        self._limits = generation.limits
        self._notes = generation.notes
        self._watch = watch
        self._effects = effects
        self._log = EpochLog(generation.number, self.number)
        self._unlocked: list[int] = [] if plan is None else plan.unlocked
        self._new_max = 0
        self._reported = False
        self._barrier: Validate | None = None
        self._done: Done | None = None
        self._conflicts: list[int] | None = None
        self._locked: frozenset[int] = frozenset()
        self._locks: LockRounds | None = None
        self._lock_report: LockReport | None = None
        self._lock_decision: LockDecision | None = None
        self._early: list[Patch] = []
        self._outcomes: list[ExternalDone] = []
        self._ended = self._carried = 0
        self._local: LocalPhase | None = None
        self._decision: Commit | LockDecision | None = None

    @property
    def runnable(self) -> bool:
        """Whether there are functions to run."""
        if self.step is Step.EXECUTING:
            return not self._executor.idle
        if self.step is Step.LOCAL:
            return self._local is not None and not self._local.done
        return self.step is Step.LOCKING and not self._reported

    @property
    def patience(self) -> int:
        """How many times longer than usual a function may run now."""
        if self.step is Step.LOCAL:
            return cuts.local_patience(self.plan, self._local is not None and self._local.decided)
        return cuts.patience(self.plan, self._generation.answered, self.step is Step.LOCKING)

    # Sequencing and execution ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Sequences the epoch's transactions, writes its record, and tells the coordinator that it has begun."""
        generation, plan, epoch = self._generation, self.plan, self.number
        self._watch.begins(self._executor, generation.ended)
        generation.replies.begin(epoch, plan is not None)
        if self._notes is not None:
            self._notes.begin(epoch, None if plan is None else generation.replies.answered)
        intake, counter = generation.intake, generation.counter
        roots, batches = intake.replay(plan) if plan is not None else intake.form(counter)
        self._effects.extend(intake.take_told())
        self._new_max = max((batch.count + batch.due for batch in batches), default=0)
        if plan is None:
            self._effects.append(self._log.composition(counter, batches))
        if intake.local:
            self._leave_out(intake.take_local())
        if plan is not None:
            cuts.apply(plan.ended, roots)
        if not generation.alone and generation.joined < epoch:  # otherwise all workers join anyway
            self._tell(EpochStarted(generation.number, epoch))
        self._executor.begin(epoch, roots)
        for message in generation.early.pop(epoch, ()):
            self.deliver(message)
        self._watch.sequenced(self._executor)

    def _leave_out(self, local: list[RootTransaction]) -> None:
        """Leaves the local transactions to phase 3: for all other steps of this worker they are done."""
        generation, plan = self._generation, self.plan
        for root in local:
            root.done = True
        known, ended = set[int](), NO_VERDICTS
        if plan is not None:
            known = cuts.decided_slots(plan, generation.answered, generation.replies.answered, local)
            ended = plan.ended
        self._local = LocalPhase(self._executor, local, ended, known, self._notes)

    def run(self) -> None:
        """Runs a slice of the epoch's functions."""
        if self.step is Step.LOCKING:
            self._run_locks()
        elif self.step is Step.LOCAL:
            self._run_local()
        elif self.step is Step.EXECUTING:
            self._executor.run(self._limits.slice_invocations)

    def deliver(self, message: Call | Result | Ack | Drop | Patch) -> None:
        """Takes a peer's message to this epoch. After barrier 1 all but patches are void."""
        if isinstance(message, Patch):
            if self._locks is None:  # the sender has heard of barrier 2 before
                self._early.append(message)
            else:
                self._locks.arrive(message)
        elif self.step is Step.EXECUTING:
            self._executor.deliver(message)

    def outcome(self, done: ExternalDone) -> None:
        """Takes the outcome of an external call."""
        if done.tid in self._executor.roots:
            # Another worker's call ended before this worker learned of barrier 2, or during the lock phase.
            self._outcomes.append(done)
        else:
            self._generation.intake.outcome(done)

    def durable(self) -> None:
        """One of the epoch's records is durable in the log."""
        self._log.undurable -= 1

    def advance(self) -> None:
        """Goes on through the steps as far as possible now."""
        if self.step is Step.EXECUTING:
            self._report_done()
        if self.step is Step.VALIDATING:
            self._report_conflicts()
        self._report_locks()
        if self._lock_decision is not None:
            self._next_round(self._lock_decision)
        if self._decision is not None:
            self._end_local()

    def _tell(self, message: EpochStarted | Done | Conflicts | LockReport) -> None:
        self._effects.append(Tell(message))

    # Barriers ----------------------------------------------------------------------------------------------

    def _report_done(self) -> None:
        if self._reported or self._executor.open_roots:
            return
        self._reported = True
        cuts.settle(self._executor.cut_roots, self.patience)
        generation, roots = self._generation, self._executor.roots.values()
        done = done_report(generation.number, self.number, self._new_max, roots, self._limits.invocations_max)
        if generation.alone:
            # The report of barrier 1 goes to the coordinator together with the report of barrier 2.
            self._done = done
            new_max, aborted, collided, deferred = done.new_max, done.aborted, done.collided, done.deferred
            self.validate(Validate(done.generation, done.epoch, new_max, aborted, collided, deferred, done.large))
        else:
            self._tell(done)

    def validate(self, barrier: Validate) -> None:
        """Takes the coordinator's message that barrier 1 is passed, and finds the conflicts."""
        assert self.step is Step.EXECUTING, self.step
        assert self._reported, "barrier 1 passed without this worker's report"
        assert barrier.epoch == self.number
        self.step = Step.VALIDATING
        self._watch.validates()
        self._barrier = barrier
        gone = {*barrier.aborted, *barrier.deferred}
        slots = self._generation.slots.values()
        self._conflicts = sorted(set[int]().union(*[validation.conflicts(slot, gone) for slot in slots]))
        ended = cuts.verdicts(self._executor.cut_roots, self._executor.cut, barrier.deferred)
        self._effects.extend(self._log.verdicts(ended, []))

    def _report_conflicts(self) -> None:
        """Reports the conflicts once the epoch's records are durable, because effects after barrier 2 can be seen
        outside.
        """
        if self._conflicts is None or self._log.undurable:
            return
        if self._done is not None:
            self._tell(self._done)
        self._tell(Conflicts(self._generation.number, self.number, self._conflicts, self._unlocked))
        self._done = self._conflicts = None

    # Commit ------------------------------------------------------------------------------------------------

    def commit(self, decision: Commit) -> None:
        """Takes the message that barrier 2 is passed: commits all transactions without conflict, and begins the lock
        phase with the others.
        """
        barrier, generation, slots = self._barrier, self._generation, self._generation.slots
        assert self.step is Step.VALIDATING, self.step
        assert barrier is not None
        assert decision.epoch == self.number
        # External calls begin only now, when the epoch that leads to them can no longer be lost.
        if barrier.deferred:
            calls = due_calls(generation.number, slots.values(), set(barrier.deferred))
            self._effects.extend(generation.externals.want(calls, generation.intake.pressure.halted))
        locked = self._locked = frozenset(decision.locked)
        gone = {*barrier.aborted, *barrier.deferred}
        left = locked | gone
        # A read-only transaction touched nothing that validation or the lock phase knows of.
        ahead = gone | self._executor.read_only if self._executor.read_only else gone
        for slot in slots.values():
            validation.commit(slot, left)
        roots = self._executor.roots_in_order()
        if self._notes is not None and (gone or generation.app.logs):
            aborted = gone.difference(barrier.deferred)
            self._notes.at_commit(slots.values(), aborted, left, self._executor.roots)
        # Phase by phase, because replies are remembered and forgotten in serial order, and a snapshot restores that
        # order.
        if ahead:
            ended = list[RootTransaction]()
            for root in roots:
                if root.overflow or root.external:
                    generation.intake.defer(root)
                elif root.tid in ahead:
                    ended.append(root)
            self._end(ended, 0)
            left = left | ahead
        self._end([root for root in roots if root.tid not in left] if left else roots, 1)
        if not locked:
            if self._local is None:
                self._close(decision)
            else:
                self._go_local(decision)
            return
        executor, large = self._executor, set(barrier.large)
        self._locks = LockRounds(slots, locked, large, executor.running, self._unlocked, self._notes, executor.newcomer)
        for patch in self._early:
            self._locks.arrive(patch)
        self.step = Step.LOCKING
        self._watch.locks(len(self._executor.roots.keys() & locked))
        self._begin_round()
        # Transactions that ended before the lock phase get their replies before it.
        self._effects.extend(generation.replies.take())

    def _begin_round(self) -> None:
        self._reported = False
        self._run_locks()

    def _run_locks(self) -> None:
        """Runs a slice of the lock phase's round. Reports the round when all slots have finished it."""
        locks = self._locks
        assert locks is not None
        self._watch.slice_begins()
        if locks.run(self._limits.slice_invocations) and not self._reported:
            self._reported = True
            cut = cuts.of_locks(locks.cut(), self.patience)
            self._effects.extend(self._log.verdicts([], cut))
            sent = self._send(locks.outgoing)
            number, failures = locks.number, locks.failures()
            self._lock_report = LockReport(
                self._generation.number, self.number, number, failures, cut, locks.patched, sent
            )
            self._report_locks()
        self._watch.slice_ends()

    def _send(self, patches: list[Patch]) -> dict[int, int]:
        """Sends patches to other workers. Returns how many each of them gets."""
        sent: dict[int, int] = {}
        owners, outbox = self._executor.owners, self._executor.outbox
        for patch in patches:
            owner = owners[patch.slot]
            outbox.send(owner, patch)
            sent[owner] = sent.get(owner, 0) + 1
        return sent

    def _report_locks(self) -> None:
        if self._lock_report is not None and not self._log.undurable:
            self._tell(self._lock_report)
            self._lock_report = None

    def lock_decided(self, decision: LockDecision) -> None:
        """Takes the decision after a round that all workers have reported: runs another round, or commits this one."""
        locks = self._locks
        assert self.step is Step.LOCKING, self.step
        assert locks is not None
        assert decision.epoch == self.number
        if not decision.final:
            self._next_round(decision)
            return
        locks.commit()
        locked = [root for root in self._executor.roots_in_order() if root.tid in self._locked]
        self._end([root for root in locked if locks.end(root)], 2)
        self._generation.intake.carried += locks.carried
        self._carried = locks.crowded
        if self._local is None:
            self._close(decision)
        else:
            self._go_local(decision)

    # Phase 3 -----------------------------------------------------------------------------------------------

    def _go_local(self, last: Commit | LockDecision) -> None:
        """Begins phase 3 after the coordinator's `last` decision. Other workers do not wait for it: what it reads and
        writes is on this worker's slots alone.

        If one slice cannot be enough for it, the replies of the other phases leave before it, because it decides
        nothing about them. Otherwise they leave with its own, in one append to the log.
        """
        local = self._local
        assert local is not None
        self._decision = last
        self.step = Step.LOCAL
        if len(local.roots) <= self._limits.slice_invocations:
            self._run_local()
        if self.runnable or self._log.undurable:
            self._effects.extend(self._generation.replies.take())

    def _run_local(self) -> None:
        """Runs a slice of phase 3."""
        local = self._local
        assert local is not None
        self._watch.slice_begins()
        local.run(self._limits.slice_invocations)
        self._watch.slice_ends()
        if local.done:
            self._effects.extend(self._log.verdicts(local.cut, []))

    def _end_local(self) -> None:
        """Closes the epoch when phase 3 is over and its verdicts are durable, because they decide what the later local
        transactions have read, and what the next epoch reads.
        """
        local, last = self._local, self._decision
        assert local is not None
        assert last is not None
        if not local.done or self._log.undurable:
            return
        self._decision = None
        local.commit()
        ended = local.roots
        if local.carried:
            ended = [root for root in ended if root.local]
            self._generation.intake.carried += local.carried
            if self.plan is None:
                self._effects.append(ReportLeft(local.left))
        self._end(ended, 3)
        self._close(last)

    def snapshot_failed(self, epoch: int) -> None:
        """The snapshot of this epoch has failed on another worker before this one came to it: there is none."""
        last = self._decision
        if last is not None and epoch == self.number and last.snapshot:
            self._decision = replace(last, snapshot=False, hold=False)

    def _next_round(self, decision: LockDecision) -> None:
        """Begins the round behind a decision, once all patches of the round before it are here."""
        locks = self._locks
        assert locks is not None
        awaited = 0 if decision.anew else decision.awaited.get(self._executor.worker, 0)
        if not locks.has_arrived(decision.round, awaited):
            self._lock_decision = decision
            return
        self._lock_decision = None
        locks.decided(decision)
        self._begin_round()

    def _end(self, roots: list[RootTransaction], phase: int) -> None:
        if self._generation.intake.deliveries.under_way:
            roots = self._generation.intake.settled(roots)
            self._effects.extend(self._generation.intake.deliveries.take_given_up())
        self._watch.ends(roots)
        for root in roots:
            if root.idempotency is not None:
                self._generation.intake.ended(root)
        self._generation.replies.add(roots, phase)
        self._generation.ended += len(roots)
        self._ended += len(roots)

    def _close(self, last: Commit | LockDecision) -> None:
        barrier, generation = self._barrier, self._generation
        assert barrier is not None
        self._watch.committed(self.number, generation.slots, self._locks, self._local)
        generation.counter += barrier.new_max
        self._effects.extend(generation.replies.take())
        pressure = generation.intake.pressure
        pressure.ended(self._executor.roots.values(), generation.replies.n_bytes)
        rounds = 0 if self._locks is None else self._locks.number
        if rounds or self._carried or pressure.settled < pressure.transactions_max:
            pressure.contended(self._ended, self._carried, not generation.intake.backlog, rounds)
        self._executor.end()
        generation.plans.pop(self.number, None)
        for done in self._outcomes:
            generation.intake.outcome(done)
        self.last = last


def done_report(
    generation: int, epoch: int, new_max: int, roots: Iterable[RootTransaction], invocations_max: int
) -> Done:
    """The report of a worker at barrier 1: how each of its own transactions has ended so far.

    A transaction is large if it may not make many more calls when it is run again. Paper sections 5.3 and 6.
    """
    aborted, collided, deferred, large = list[int](), list[int](), list[int](), list[int]()
    growing_max = invocations_max // 2
    for root in roots:
        if root.collided and root.failure is not None:
            # Its branches could not see each other, and calls of the failed one were never made.
            root.overflow = True
        if root.overflow or root.external:
            deferred.append(root.tid)
        elif root.collided:
            collided.append(root.tid)
        elif root.failure is not None or root.remembered is not None:
            aborted.append(root.tid)
        if root.count > growing_max:
            large.append(root.tid)
    return Done(generation, epoch, new_max, aborted, collided, deferred, large)


class EpochLog:
    """The open epoch's records. `undurable` counts appended records that are not known to be durable. Paper section
    7.2.
    """

    def __init__(self, generation: int, epoch: int) -> None:
        self.undurable = 0
        self._generation = generation
        self._epoch = epoch

    def composition(self, counter: int, batches: list[SlotBatch]) -> AppendEpochRecord:
        """The record of the epoch's composition."""
        self.undurable += 1
        record = EpochRecord(self._generation, self._epoch, counter, batches)
        return AppendEpochRecord(self._generation, self._epoch, encode(record))

    def verdicts(self, ended: list[tuple[int, ErrorTriple | None]], unlocked: list[int]) -> list[AppendVerdicts]:
        """The record of the watchdog's verdicts, if there are any. It is durable before any worker acts on them."""
        if not ended and not unlocked:
            return []
        self.undurable += 1
        record = Verdicts(self._generation, self._epoch, ended, unlocked)
        return [AppendVerdicts(self._generation, self._epoch, encode(record))]


@native(subclassed=True)
class Watch:
    """An observer of an epoch's steps. Its methods do nothing; a host overrides those that it needs.

    `transactions_ended` counts the transactions of the generation that have ended so far.
    """

    def begins(self, executor: Executor, transactions_ended: int) -> None:
        """An epoch begins."""

    def sequenced(self, executor: Executor) -> None:
        """The epoch's transactions have been made, and will be run next."""

    def validates(self) -> None:
        """Barrier 1 is passed."""

    def locks(self, locked: int) -> None:
        """The lock phase begins; `locked` counts its transactions with their root on this worker."""

    def slice_begins(self) -> None:
        """A slice of the lock phase or of phase 3 begins."""

    def slice_ends(self) -> None:
        """A slice of the lock phase or of phase 3 has ended."""

    def ends(self, roots: list[RootTransaction]) -> None:
        """The transactions `roots`, in serial order, are about to be answered."""

    def committed(
        self, epoch: int, slots: Mapping[int, Slot], locks: LockRounds | None, local: LocalPhase | None
    ) -> None:
        """All writes of the epoch are applied, and its transactions still exist. `locks` is None without a
        lock phase, `local` without a phase 3.
        """

    def closes(self, executor: Executor, transactions_ended: int) -> None:
        """The open epoch has closed."""

    def abandons(self) -> None:
        """The generation has ended. An epoch that was open is void."""
