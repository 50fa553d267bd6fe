"""The worker's ports in an embedded engine: its coordinator in the same process, the log and store of the directory."""

from __future__ import annotations

import logging
from collections.abc import Callable

from styx.coordinator.events import WorkerSaid
from styx.embedded_engine.app_change import AppChange, Stage
from styx.embedded_engine.counters import Counters
from styx.embedded_engine.drive import Drive
from styx.embedded_engine.external_log import ExternalLog
from styx.embedded_engine.feed import Feed
from styx.embedded_engine.in_flight import InFlight
from styx.embedded_engine.replay_watch import ReplayWatch
from styx.embedded_engine.storage import Storage
from styx.errors import EngineFailed
from styx.host.background import Background
from styx.host.ports import LogEnds
from styx.host.worker_host import WorkerHost
from styx.log.base import Stream
from styx.messages import encode_reply
from styx.model.execution import with_own_generators
from styx.protocol.messages import SnapshotUnusable, ToCoordinator
from styx.reports.function_reports import FunctionReports
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from styx.set_aside import places as set_aside
from styx.snapshot.load import Unusable, load_state
from styx.state.table import NEWEST
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    EmitReplies,
    Event,
    LoadState,
    NotResumed,
    ReplyDiffers,
    ReportPoison,
    SendFrame,
    StateLoaded,
    StateUnusable,
    StoreSlots,
)
from styx.worker.pressure import LOG_BYTES_MAX
from styx.worker.worker import Worker

WORKER_ID = 0
"""The only worker's id."""

_log = logging.getLogger("styx.embedded")


class OwnWorker:
    """Steps of `core`, whose effects `host` carries out."""

    def __init__(
        self, core: Worker, host: WorkerHost, storage: Storage, reports: FunctionReports, change: AppChange
    ) -> None:
        self._core = core
        self._change = change
        self._host = host
        self._log = storage.log
        self._reports = reports

    def step(self, event: Event) -> None:
        """As `Shell.step`."""
        core, do = self._core, self._host.do
        # What becomes durable causes a pass, which asks again.
        core.pressure.congested = self._log.backlog_bytes > LOG_BYTES_MAX
        # What is unfinished goes on with the version that comes, behind its snapshot: not on code that may be refused,
        # and not while another thread looks at the state, or after it has.
        core.pressure.halted = not self._change.begun
        effects = with_own_generators(core.step, event)
        if not self._reports.notes.empty:
            # Before the replies: one that is in the log is not told of again.
            self._reports.take()
        for effect in effects:
            do(effect)


class OwnCoordinator:
    """It is the only one that a worker without peers talks to."""

    def __init__(self, drive: Drive, counters: Counters) -> None:
        self._drive = drive
        self._counters = counters

    def tell(self, message: ToCoordinator) -> None:
        """As `Links.tell`."""
        if isinstance(message, SnapshotUnusable):
            self._counters.load_failures.append(message.reason)
        self._drive.to_coordinator(WorkerSaid(WORKER_ID, message))

    def send(self, effect: SendFrame) -> None:
        """As `Links.send`."""
        raise EngineFailed(f"worker {effect.peer} is no part of an embedded engine")


class EngineJournal:
    """The log is one sequence: a record is durable only after every request that it names. `now_us` gives its time."""

    def __init__(
        self,
        core: Worker,
        drive: Drive,
        storage: Storage,
        external_log: ExternalLog,
        in_flight: InFlight,
        counters: Counters,
        now_us: Callable[[], int],
    ) -> None:
        self._core = core
        self._drive = drive
        self._log = storage.log
        self._external_log = external_log
        self._in_flight = in_flight
        self._counters = counters
        self._now_us = now_us

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        """As `WorkerJournal.record`."""
        self._log.append(Stream.EPOCHS, EPOCHS_PARTITION, self._now_us(), effect.payload)
        self._counters.epoch_size = len(self._core.executor.roots)
        self.when_durable(durable)

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        """As `WorkerJournal.external`."""
        outcome = effect.record.outcome
        self._external_log.append(effect.slot, effect.record, lambda: durable(outcome))

    def when_durable(self, then: Callable[[], None]) -> None:
        """As `WorkerJournal.when_durable`."""
        self._drive.durable.add(self._log.lsn, then)

    def emit(self, effect: EmitReplies) -> None:
        """As `WorkerJournal.emit`."""
        append, answer, counters = self._log.append, self._in_flight.answer, self._counters
        slot, now_us = effect.slot, self._now_us()
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
        for each in wanted.slots:
            self._external_log.cut(each.slot, wanted.epoch, [pending.tid for pending in each.pending])
        replies = {each.slot: {each.slot: self._log.bounds(Stream.REPLIES, each.slot)[1]} for each in wanted.slots}
        return LogEnds(self._log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], replies)


class Start:
    """A start's recovery. `feed` brings the log's requests back after a load: those of recorded epochs alone, if what
    follows them is for another version of the app. `failed` ends the engine.
    """

    def __init__(
        self,
        core: Worker,
        storage: Storage,
        background: Background,
        counters: Counters,
        replay: ReplayWatch,
        change: AppChange,
        external_log: ExternalLog,
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self.feed = Feed(storage.log, {})
        self._core = core
        self._log = storage.log
        self._store = storage.store
        self._background = background
        self._counters = counters
        self._replay = replay
        self._change = change
        self._external_log = external_log
        self._failed = failed
        self._aside: frozenset[set_aside.Place] = frozenset()

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        """As `Recovery.load`; requests come from `feed`."""

        def load() -> StateLoaded | StateUnusable:
            try:
                answer = load_state(wanted, self._core.n_slots, self._log, self._store)
            except Unusable as error:
                return StateUnusable(wanted.generation, str(error))
            answer.outcomes = self._external_log.outcomes
            self._aside = set_aside.read(self._store)
            set_aside.loaded_without(self._aside, answer)
            self._change.check_loaded({slot: part.state.at(NEWEST) for slot, part in answer.slots.items()})
            return answer

        def ended(answer: StateLoaded | StateUnusable) -> None:
            self._loaded(answer)
            loaded(answer)

        self._background.submit(
            "loading the last snapshot", load, ended, lambda error: self._failed("loading the snapshot", error)
        )

    def _loaded(self, answer: StateLoaded | StateUnusable) -> None:
        if isinstance(answer, StateUnusable):
            _log.warning("a snapshot cannot be used, trying the one before it: %s", answer.reason)
            return
        firsts = {slot: part.next_offset for slot, part in answer.slots.items()}
        plans = answer.plans
        carried = any(not each.parked for part in answer.slots.values() for each in part.pending)
        self._change.runs_again(plans, carried)
        ends = {slot: max([first, *(plan.batches[slot].next for plan in plans)]) for slot, first in firsts.items()}
        self.feed = Feed(self._log, firsts, ends if self._change.stage is Stage.REPLAYING else None, self._aside)

    def differs(self, effect: ReplyDiffers) -> None:
        """As `Recovery.differs`."""
        self._replay.differs(effect)

    def not_resumed(self, effect: NotResumed) -> None:
        """As `Recovery.not_resumed`."""
        self._replay.not_resumed(effect)

    def skipped(self, effect: ReportPoison) -> None:
        """As `Recovery.skipped`."""
        self._counters.poison += 1
        self._counters.recent_poison.append(effect)
        _log.warning("requests record %d of slot %d was skipped: %s", effect.offset, effect.slot, effect.reason)
