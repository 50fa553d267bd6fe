"""The coordinator's ports in an embedded engine: one member in the same process, and a log to which only this process
can append, so no other process must be fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from styx.coordinator.events import Expel, ReleaseLog, StateFound
from styx.embedded_engine.app_change import AppChange
from styx.embedded_engine.counters import Counters
from styx.embedded_engine.engine_log import EngineLog
from styx.embedded_engine.external_log import ExternalLog
from styx.errors import EngineFailed
from styx.host.passes import Passes
from styx.host.ports import Identity
from styx.log.base import Stream
from styx.protocol.messages import Commit, LockDecision, Recover, SnapshotEnded, ToWorker, Validate
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, LogEntry, SnapshotNote, encode
from styx.worker.events import CoordinatorSaid, Halted
from styx.worker.worker import Worker


class OneMember:
    """The worker of the same process; what it is told is counted."""

    def __init__(self, core: Worker, passes: Passes, change: AppChange, log: EngineLog, counters: Counters) -> None:
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

    def __init__(self, log: EngineLog, external_log: ExternalLog, keep_log: bool) -> None:
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


class NoOperator:
    """Nobody but whoever starts the engine; the change of its app is checked there."""

    def __init__(self, counters: Counters, failed: Callable[[str, BaseException], None]) -> None:
        self._counters = counters
        self._failed = failed

    def found(self, effect: StateFound) -> None:
        """As `Operator.found`: the state was checked before, by the change of the app itself."""

    def refuse(self, reason: str) -> None:
        """As `Operator.refuse`."""
        reasons = dict.fromkeys([*self._counters.load_failures, reason])
        self._failed("recovery", EngineFailed("\n".join(reasons)))
