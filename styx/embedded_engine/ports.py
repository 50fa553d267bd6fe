"""The ports of both cores in an embedded engine: each other, and the directory's log.

Only this process can append to the log, so no other process must be fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from styx.coordinator.events import Expel, ReleaseLog, StateFound, StopEnded, WorkerSaid
from styx.embedded_engine.app_change import AppChange
from styx.embedded_engine.engine_log import EngineLog, ExternalLog
from styx.embedded_engine.event_stream import EventStream
from styx.embedded_engine.intake import RequestIntake
from styx.embedded_engine.metrics import EngineCounters
from styx.errors import EngineFailed
from styx.host.passes import Passes
from styx.host.ports import Identity, LogEnds
from styx.log.base import Stream
from styx.messages import encode_reply
from styx.protocol.messages import (
    Commit,
    LockDecision,
    Recover,
    SnapshotEnded,
    SnapshotUnusable,
    ToCoordinator,
    ToWorker,
    Validate,
)
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, LogEntry, SnapshotNote, encode
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    CoordinatorSaid,
    EmitEvents,
    EmitReplies,
    Halted,
    MarkEvents,
    SendFrame,
    StoreSlots,
)
from styx.worker.worker import Worker

WORKER_ID = 0
"""The only worker's id."""


class OwnCoordinator:
    """It is the only one that a worker without peers talks to."""

    def __init__(self, passes: Passes, counters: EngineCounters) -> None:
        self._passes = passes
        self._counters = counters

    def tell(self, message: ToCoordinator) -> None:
        """As `Links.tell`."""
        if isinstance(message, SnapshotUnusable):
            self._counters.load_failures.append(message.reason)
        self._passes.to_coordinator(WorkerSaid(WORKER_ID, message))

    def send(self, effect: SendFrame) -> None:
        """As `Links.send`."""
        raise EngineFailed(f"worker {effect.peer} is no part of an embedded engine")


class EngineJournal:
    """The log is one sequence: a record is durable only after every request that it names."""

    def __init__(
        self,
        core: Worker,
        log: EngineLog,
        external_log: ExternalLog,
        events: EventStream,
        intake: RequestIntake,
        counters: EngineCounters,
    ) -> None:
        self._core = core
        self._events = events
        self._log = log
        self._external_log = external_log
        self._intake = intake
        self._counters = counters
        self.when_durable = log.when_durable

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        """As `WorkerJournal.record`."""
        self._log.append(Stream.EPOCHS, EPOCHS_PARTITION, effect.payload)
        self._counters.epoch_size = len(self._core.executor.roots)
        self.when_durable(durable)

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        """As `WorkerJournal.external`."""
        outcome = effect.record.outcome
        self._external_log.append(effect.slot, effect.record, lambda: durable(outcome))

    def emit(self, effect: EmitReplies) -> None:
        """As `WorkerJournal.emit`."""
        append, answer, counters = self._log.log.append, self._intake.answer, self._counters
        slot, now_us = effect.slot, self._log.now_us()
        for reply in effect.replies:
            append(Stream.REPLIES, slot, now_us, encode_reply(reply))
            if reply.error is None:
                counters.committed += 1
            elif reply.error[0] == "aborted":
                counters.aborted += 1
            else:
                counters.rejected += 1
            answer(reply)

    def emit_events(self, effect: EmitEvents) -> None:
        """As `WorkerJournal.emit_events`."""
        self._events.append(effect.slot, effect.events)

    def mark_events(self, effect: MarkEvents) -> None:
        """As `WorkerJournal.mark_events`: the log of an embedded engine has no need of marks."""

    def ends(self, wanted: StoreSlots) -> LogEnds:
        """As `WorkerJournal.ends`."""
        log = self._log.log
        for each in wanted.slots:
            self._external_log.cut(each.slot, wanted.epoch, [pending.tid for pending in each.pending])
        replies = {each.slot: {each.slot: log.bounds(Stream.REPLIES, each.slot)[1]} for each in wanted.slots}
        return LogEnds(log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], replies)


class OneMember:
    """The worker of the same process; what it is told is counted."""

    def __init__(
        self, core: Worker, passes: Passes, change: AppChange, log: EngineLog, counters: EngineCounters
    ) -> None:
        self._core = core
        self._passes = passes
        self._change = change
        self._log = log
        self._counters = counters

    def tell(self, worker: int, message: ToWorker) -> None:
        """As `Members.tell`."""
        counters = self._counters
        if isinstance(message, Commit):
            counters.epochs += 1
            counters.locked += len(message.locked)
        elif isinstance(message, Validate):
            counters.carried += len(message.deferred)
        elif isinstance(message, LockDecision):
            counters.carried += sum(1 for _, failure in message.excluded if failure is None)
        elif isinstance(message, SnapshotEnded):
            self._count_snapshot(message)
        elif isinstance(message, Recover):
            self._change.begins(message.app_version, self._core.run_app)
        self._passes.to_worker(CoordinatorSaid(message))
        if isinstance(message, Recover):
            # What is unfinished goes on with the version that comes, behind its snapshot: not on code that may be
            # refused, and not while another thread looks at the state, or after it has.
            self._passes.to_worker(Halted(not self._change.begun))

    def _count_snapshot(self, ended: SnapshotEnded) -> None:
        if ended.complete:
            self._counters.snapshot_at_s = self._log.now_us() / 1e6
        else:
            self._counters.snapshots_failed += 1

    def expel(self, effect: Expel) -> NoReturn:
        """As `Members.expel`."""
        raise EngineFailed(f"the only worker is to be expelled: {effect.reason}")

    def let_go(self, worker: int) -> NoReturn:
        """As `Members.let_go`."""
        raise EngineFailed("the only worker is to be let go")


class OwnLog:
    """With `keep_log` no record is ever released."""

    def __init__(self, log: EngineLog, external_log: ExternalLog, events: EventStream, keep_log: bool) -> None:
        self._events = events
        self._log = log
        self._external_log = external_log
        self._keep_log = keep_log

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        """As `CoordinatorJournal.fence`."""
        fenced([])

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        """As `CoordinatorJournal.mark`."""
        self._append(marker, appended)

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        """As `CoordinatorJournal.note`."""
        self._append(note, appended)

    def _append(self, entry: LogEntry, durable: Callable[[], None]) -> None:
        self._log.append(Stream.EPOCHS, EPOCHS_PARTITION, encode(entry))
        self._log.when_durable(durable)

    def release_records(self, wanted: ReleaseLog) -> None:
        """As `CoordinatorJournal.release_records`."""
        if self._keep_log:
            return
        log = self._log.log
        for slot, offset in wanted.requests.items():
            log.truncate(Stream.REQUESTS, slot, offset)
        for slot, offset in wanted.replies.items():
            log.truncate(Stream.REPLIES, slot, offset)
        log.truncate(Stream.EPOCHS, EPOCHS_PARTITION, wanted.epochs)
        self._external_log.release(wanted.epoch)
        self._events.release()


class NoOperator:
    """Nobody but whoever starts the engine; the change of its app is checked there."""

    def __init__(self, counters: EngineCounters, failed: Callable[[str, BaseException], None]) -> None:
        self._counters = counters
        self._failed = failed

    def found(self, effect: StateFound) -> None:
        """As `Operator.found`: the state was checked before, by the change of the app itself."""

    def stopped(self, effect: StopEnded) -> None:
        """As `Operator.stopped`: the engine's end is its user's, and needs no last snapshot."""

    def refuse(self, reason: str) -> None:
        """As `Operator.refuse`."""
        reasons = dict.fromkeys([*self._counters.load_failures, reason])
        self._failed("recovery", EngineFailed("\n".join(reasons)))
