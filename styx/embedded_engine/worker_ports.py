"""The worker's ports in an embedded engine: its coordinator in the same process, and the log of the directory."""

from __future__ import annotations

from collections.abc import Callable

from styx.coordinator.events import WorkerSaid
from styx.embedded_engine.counters import Counters
from styx.embedded_engine.engine_log import EngineLog
from styx.embedded_engine.external_log import ExternalLog
from styx.embedded_engine.intake import RequestIntake
from styx.errors import EngineFailed
from styx.host.passes import Passes
from styx.host.ports import LogEnds
from styx.log.base import Stream
from styx.messages import encode_reply
from styx.protocol.messages import SnapshotUnusable, ToCoordinator
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from styx.worker.events import AppendEpochRecord, AppendExternal, AppendVerdicts, EmitReplies, SendFrame, StoreSlots
from styx.worker.worker import Worker

WORKER_ID = 0
"""The only worker's id."""


class OwnCoordinator:
    """It is the only one that a worker without peers talks to."""

    def __init__(self, passes: Passes, counters: Counters) -> None:
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
        self, core: Worker, log: EngineLog, external_log: ExternalLog, intake: RequestIntake, counters: Counters
    ) -> None:
        self._core = core
        self._log = log
        self._external_log = external_log
        self._intake = intake
        self._counters = counters

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        """As `WorkerJournal.record`."""
        self._log.append(Stream.EPOCHS, EPOCHS_PARTITION, effect.payload)
        self._counters.epoch_size = len(self._core.executor.roots)
        self.when_durable(durable)

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        """As `WorkerJournal.external`."""
        outcome = effect.record.outcome
        self._external_log.append(effect.slot, effect.record, lambda: durable(outcome))

    def when_durable(self, then: Callable[[], None]) -> None:
        """As `WorkerJournal.when_durable`."""
        self._log.when_durable(then)

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

    def ends(self, wanted: StoreSlots) -> LogEnds:
        """As `WorkerJournal.ends`."""
        log = self._log.log
        for each in wanted.slots:
            self._external_log.cut(each.slot, wanted.epoch, [pending.tid for pending in each.pending])
        replies = {each.slot: {each.slot: log.bounds(Stream.REPLIES, each.slot)[1]} for each in wanted.slots}
        return LogEnds(log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], replies)
