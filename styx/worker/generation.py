"""A worker's data for one generation. It is made when the generation begins, and the next generation gets a new one.
Paper section 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping

from styx.model.agenda import dead_of
from styx.model.app import App
from styx.model.dead_calls import dead_indexes
from styx.model.limits import Limits
from styx.protocol.frames import Ack, Call, Drop, Patch, Result
from styx.protocol.messages import NOTHING, Mark, Reached, Recover
from styx.schema.cron_entries import has_crons
from styx.sequencer.epoch_record import EpochPlan
from styx.state.slot_state import Declared, SlotState
from styx.state.versions import Versions
from styx.worker.change_log import ChangeLog, changes_of
from styx.worker.emissions import Emissions
from styx.worker.event_marks import EventMarks
from styx.worker.events import Converting, Effect, LoadState, SlotPartsStored, StateLoaded
from styx.worker.executor import Executor
from styx.worker.external_calls import ExternalCalls
from styx.worker.intake import Intake
from styx.worker.notes import Notes
from styx.worker.replies import Replies
from styx.worker.reply_memory import ReplyMemory, memory_of
from styx.worker.slot import Slot


class Generation:
    """One generation on one worker.

    `epoch` is the open epoch, or the last one that closed. `counter` is the TID counter of all slots at the start of
    the next epoch. `plans` are the recorded epochs to replay, by number; `recorded_until` is the last of them, or -1.
    `answered` says how far the replies in the log reach. `joined` is the last epoch that the coordinator wants begun,
    `wanted` the last one that a read waits for, and `durable` the last one of which a record has become durable.
    `early` holds messages of peers to epochs that are not open here yet. `ended` counts ended transactions. `alone`
    says that there is no other worker. Two fields belong to the snapshot under way: `stored`, its parts in the store,
    and `replies_durable`, the last epoch whose replies are all durable. `externals` are the external calls under way.
    `marks` are those in the logs of events, None if the app has no events. `versions` are what reads outside the log
    need of earlier epochs; `read` is true once there was one. `changes` are those of closed epochs, for whoever follows
    them; None while nobody does; they have none of an epoch up to `converted_until`.
    """

    def __init__(
        self, number: int, worker: int, app: App, n_slots: int, limits: Limits, notes: Notes | None, alone: bool
    ) -> None:
        self.number = number
        self.app = app
        self.limits = limits
        self.notes = notes
        self.alone = alone
        self.n_slots = n_slots
        self.executor = Executor(worker, app, limits, n_slots, notes)
        self.slots: dict[int, Slot] = {}
        self.intake = Intake(app, limits, n_slots, self.executor.running)
        self.memories: dict[int, ReplyMemory] = {}
        self.marks = EventMarks(number, len(app.events) * n_slots) if app.events else None
        self.replies = Replies(self.memories, n_slots, Emissions(app.events, self.slots) if app.events else None)
        self.epoch = -1
        self.counter = 0
        self.plans: dict[int, EpochPlan] = {}
        self.recorded_until = -1
        self.answered: Reached = NOTHING
        self.joined = -1
        self.early: dict[int, list[Call | Result | Ack | Drop | Patch]] = {}
        self.ended = 0
        self.stored: SlotPartsStored | None = None
        self.replies_durable = -1
        self.externals = ExternalCalls(number)
        self.wanted = -1
        self.durable = -1
        self.versions = Versions(limits.versions_max, limits.version_bytes_max)
        self.read = False
        self.changes: ChangeLog | None = None
        self.converted_until = -1

    def behind(self, before: Generation) -> Generation:
        """Itself. Who has followed the changes of the generation `before` goes on with those of this one."""
        if before.changes is not None:
            self.changes = ChangeLog()
        return self

    def load(self, loaded: StateLoaded, held: Mapping[int, SlotState]) -> None:
        """Takes the loaded slots; `held` has the state of the slots that the worker has kept in memory."""
        self.epoch, self.counter = loaded.epoch, loaded.counter
        self.plans = {plan.epoch: plan for plan in loaded.plans}
        self.recorded_until = max(self.plans, default=-1)
        self.replies.answered = loaded.answered
        if self.replies.emissions is not None:
            self.replies.emissions.load(loaded.emitted, loaded.epoch)
        self.externals.logged = loaded.outcomes
        self.intake.aside = loaded.aside
        indexes = indexes_of(self.app)
        for index, part in loaded.slots.items():
            state = part.state if part.state.converted else held.get(index, part.state)
            state.as_stored()
            state.declare(indexes, self.n_slots)
            slot = self.slots[index] = Slot(index, state, loaded.epoch)
            slot.running = self.executor.running
            slot.range_counts = self.executor.range_counts
            memory = self.memories[index] = memory_of(state, self.limits)
            self.intake.add_slot(index, part.next_offset, part.pending, part.passed_over, memory, state)
        self.executor.slots = self.slots
        if self.changes is None and (self.epoch >= 0 or self.plans):
            # Somebody may have followed the workers of the generation before, and soon asks how it goes on.
            self.changes = ChangeLog()
        if self.epoch >= 0 and any(slot.state.converted for slot in self.slots.values()):
            # What a new version of the app converts is of no epoch, so no change tells of it. Whoever has followed up
            # to here is told that there is a gap: the next epoch's changes are not kept. It comes at once, because the
            # coordinator wants a snapshot of what was converted.
            self.converted_until = self.epoch + 1
        if self.changes is not None:
            self.changes.begin(max(self.keep_versions(self.epoch), self.converted_until), self.epoch)

    def replay_further(self, plan: EpochPlan) -> None:
        """Takes a recorded epoch behind those that the loaded state came with, for a log that is read while it is
        replayed. The epoch begins with the worker's next event, once its requests have arrived.
        """
        self.plans[plan.epoch] = plan

    # Versions and changes ----------------------------------------------------------------------------------------

    def keep_versions(self, closed: int) -> int:
        """The first epoch whose end can be read. Versions are kept from here on, if they were not: no write behind the
        end of epoch `closed` has been committed.
        """
        versions = self.versions
        if versions.oldest is None:
            versions.begin(closed)
            for slot in self.slots.values():
                slot.state.keep_versions(versions, slot.index)
        oldest = versions.oldest
        assert oldest is not None
        return oldest

    def follow(self, closed: int, committing: bool) -> ChangeLog:
        """The log for somebody who follows: of all epochs behind the last one that has `closed`, and of those before
        that the versions have. `committing`: the next epoch has begun to commit. Before the state is loaded it is
        enough that there is a log.
        """
        log = self.changes = ChangeLog()
        if not self.slots:
            return log
        begun = max(self.keep_versions(closed + committing), self.converted_until)
        log.begin(begun, closed)
        for epoch in range(begun + 1, closed + 1):
            log.add(changes_of(self.slots, self.versions, epoch))
        return log

    def closed(self) -> list[Effect]:
        """The open epoch has closed, and there are `changes` to be kept or `marks` to be made."""
        log = self.changes
        if log is not None:
            if self.epoch > self.recorded_until and log.unfollowed():
                self._forget_changes()
            elif log.closes(self.epoch):
                log.add(changes_of(self.slots, self.versions, self.epoch))
        return [] if self.marks is None else self.mark(None)

    def _forget_changes(self) -> None:
        """Nobody has followed for long: nothing is kept for it any more, unless somebody reads."""
        self.changes = None
        if not self.read:
            self.versions = Versions(self.limits.versions_max, self.limits.version_bytes_max)
            for slot in self.slots.values():
                slot.state.keep_versions(None)

    # Marks ---------------------------------------------------------------------------------------------------------

    def begin_marks(self) -> list[Effect]:
        """The generation has its state: the last one may have ended before its last events were marked."""
        return [] if self.marks is None else [*self._never_emitted(), *self.marks.begin(self.epoch)]

    def mark(self, wanted: Mark | None) -> list[Effect]:
        """The marks in the logs of events, now that the coordinator wants one, or that the epoch has closed."""
        marks, emissions = self.marks, self.replies.emissions
        assert marks is not None, "an app without events has no marks"
        assert emissions is not None, "an app without events has no marks"
        if wanted is not None:
            return marks.wanted(wanted.epoch)
        return [*self._never_emitted(), *marks.closed(self.epoch, emissions.any)]

    def _never_emitted(self) -> list[Effect]:
        """Reports of events that stand in the logs and are of no replayed epoch, when the last one has closed: a
        recovery has not ended well before it knows that there are none.
        """
        emissions = self.replies.emissions
        return [] if emissions is None or self.epoch < self.recorded_until else emissions.replayed(self.recorded_until)


def to_be_loaded(
    message: Recover, worker: int, held: Mapping[int, SlotState], app: App, limits: Limits, n_slots: int
) -> LoadState:
    """The order to load the slots of `worker` when a generation begins. State that the worker holds in the form of the
    snapshot is not loaded again. State that another version of the app stored is converted while it is loaded, and so
    is the empty state of a first start, in which crons begin.
    """
    manifest = message.manifest
    slots = sorted(slot for slot, owner in message.owners.items() if owner == worker)
    kept = {slot: held[slot] for slot in slots if slot in held}
    other = has_crons(app) if manifest is None else manifest.app_version != message.app_version
    converting = Converting(app, limits, kept) if other else None
    indexes = indexes_of(app)
    return LoadState(message.generation, slots, manifest, kept.keys(), converting, indexes, n_slots if indexes else 0)


def indexes_of(app: App) -> Declared:
    """Those of the app's tables, and of the calls that were given up."""
    of_dead = {dead_of(name): dead_indexes(operator) for name, operator in app.operators.items()}
    return of_dead | {name: table.indexes for name, table in app.tables.items()}
