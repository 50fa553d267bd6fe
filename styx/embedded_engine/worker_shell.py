"""The worker's effects, done: records into the log, replies to their callers, snapshots through the store's thread.

Decides nothing, but keeps two orders that everything rests on: an epoch is durable before the worker hears so, and a
snapshot's part counts only when every reply before it is durable. Paper sections 7.1 and 7.4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from styx.coordinator.events import WorkerSaid
from styx.embedded_engine.app_change import AppChange, Stage
from styx.embedded_engine.background import Background
from styx.embedded_engine.counters import Counters
from styx.embedded_engine.drive import Drive
from styx.embedded_engine.external_log import ExternalLog
from styx.embedded_engine.feed import Feed
from styx.embedded_engine.in_flight import InFlight
from styx.embedded_engine.replay_watch import ReplayWatch
from styx.embedded_engine.storage import Storage
from styx.externals.runner import Externals
from styx.log.base import Stream
from styx.messages import encode_reply
from styx.own_generators import with_own_generators
from styx.protocol import LoadFailed, SlotPart
from styx.reports.function_reports import FunctionReports
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from styx.worker import set_aside
from styx.worker.events import (
    AppendEpochRecord,
    AppendVerdicts,
    EmitReplies,
    Event,
    LoadState,
    NotResumed,
    RecordDurable,
    ReplyDiffers,
    ReportPoison,
    RunExternal,
    SlotPartsStored,
    StateLoaded,
    StateUnusable,
    StoreSlots,
    Tell,
)
from styx.worker.pressure import LOG_BYTES_MAX
from styx.worker.recovery import Unusable, load_state
from styx.worker.snapshot_io import store_slots
from styx.worker.worker import Worker

WORKER_ID = 0
"""The only worker's id."""

_log = logging.getLogger("styx.embedded")


class WorkerShell:
    """`feed` brings the log's requests back after a load: those of recorded epochs alone, if what follows them is for
    another version of the app. `failed` ends the engine.
    """

    def __init__(
        self,
        core: Worker,
        drive: Drive,
        storage: Storage,
        background: Background,
        externals: Externals,
        external_log: ExternalLog,
        in_flight: InFlight,
        counters: Counters,
        reports: FunctionReports,
        now_us: Callable[[], int],
        failed: Callable[[str, BaseException], None],
        change: AppChange,
    ) -> None:
        self.core = core
        self.feed = Feed(storage.log, {})
        self._aside: frozenset[set_aside.Place] = frozenset()
        self._drive = drive
        self._log = storage.log
        self._store = storage.store
        self._background = background
        self._externals = externals
        self._external_log = external_log
        self._in_flight = in_flight
        self._counters = counters
        self._reports = reports
        self._now_us = now_us
        self._failed = failed
        self._change = change
        self.replay = ReplayWatch(storage.log, change, reports)
        self._do: dict[type, Callable[[Any], None]] = {
            Tell: self._tell,
            AppendEpochRecord: self._append,
            AppendVerdicts: self._append,
            EmitReplies: self._emit,
            ReplyDiffers: self.replay.differs,
            NotResumed: self.replay.not_resumed,
            LoadState: self._load,
            StoreSlots: self._store_slots,
            RunExternal: self._run_external,
            ReportPoison: self._report,
        }

    def step(self, event: Event) -> None:
        """As `Shell.step`."""
        # What becomes durable causes a pass, which asks again.
        self.core.pressure.congested = self._log.backlog_bytes > LOG_BYTES_MAX
        # What is unfinished goes on with the version that comes, behind its snapshot: not on code that may be refused,
        # and not while another thread looks at the state, or after it has.
        self.core.pressure.halted = not self._change.begun
        effects = with_own_generators(self.core.step, event)
        if not self._reports.notes.empty:
            # Before the replies: one that is in the log is not told of again.
            self._reports.take()
        for effect in effects:
            self._do[type(effect)](effect)

    def _tell(self, effect: Tell) -> None:
        if isinstance(effect.message, LoadFailed):
            self._counters.load_failures.append(effect.message.reason)
        self._drive.to_coordinator(WorkerSaid(WORKER_ID, effect.message))

    def _append(self, effect: AppendEpochRecord) -> None:
        # The log is one sequence: the record is durable only after every request that it names.
        self._log.append(Stream.EPOCHS, EPOCHS_PARTITION, self._now_us(), effect.payload)
        self._counters.epoch_size = len(self.core.executor.roots)
        durable = RecordDurable(effect.generation, effect.epoch)
        self._drive.durable.add(self._log.lsn, lambda: self._drive.to_worker(durable))

    def _emit(self, effect: EmitReplies) -> None:
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

    def _run_external(self, wanted: RunExternal) -> None:
        # What a recorded transaction wants done once another version runs, that version will want done itself.
        if self._change.begun:
            self._externals.run(wanted)

    # Recovery ----------------------------------------------------------------------------------------------

    def _load(self, wanted: LoadState) -> None:
        def load() -> StateLoaded | StateUnusable:
            try:
                loaded = load_state(wanted, self.core.n_slots, self._log, self._store)
            except Unusable as error:
                return StateUnusable(wanted.generation, str(error))
            self._aside = set_aside.read(self._store)
            set_aside.loaded_without(self._aside, loaded)
            self._change.check_loaded({slot: part.tables for slot, part in loaded.slots.items()})
            return loaded

        self._background.submit(
            "loading the last snapshot", load, self._loaded, lambda error: self._failed("loading the snapshot", error)
        )

    def _loaded(self, answer: StateLoaded | StateUnusable) -> None:
        if isinstance(answer, StateUnusable):
            _log.warning("a snapshot cannot be used, trying the one before it: %s", answer.reason)
        else:
            firsts = {slot: part.next_offset for slot, part in answer.slots.items()}
            plans = answer.plans
            carried = any(not each.parked for part in answer.slots.values() for each in part.pending)
            self._change.runs_again(plans, carried)
            ends = {slot: max([first, *(plan.batches[slot].next for plan in plans)]) for slot, first in firsts.items()}
            self.feed = Feed(self._log, firsts, ends if self._change.stage is Stage.REPLAYING else None, self._aside)
        self._drive.to_worker(answer)

    # Snapshots ---------------------------------------------------------------------------------------------

    def _store_slots(self, wanted: StoreSlots) -> None:
        log = self._log
        _, epochs_offset = log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)
        replies = {each.slot: {each.slot: log.bounds(Stream.REPLIES, each.slot)[1]} for each in wanted.slots}
        for each in wanted.slots:
            self._external_log.cut(each.slot, wanted.epoch, [pending.tid for pending in each.pending])
        self._counters.ended_at_snapshot = self.core.transactions_ended

        def answer(parts: list[SlotPart] | None) -> None:
            self._drive.to_worker(SlotPartsStored(wanted.generation, wanted.epoch, parts))

        def store() -> None:
            self._background.submit(
                f"storing the snapshot of epoch {wanted.epoch}",
                lambda: store_slots(wanted, epochs_offset, replies, self._store),
                answer,
                lambda _: answer(None),
            )

        # A snapshot moves past its replies: if it were complete and they were lost, nobody would give them again.
        self._drive.durable.add(log.lsn, store)

    def _report(self, report: ReportPoison) -> None:
        self._counters.poison += 1
        self._counters.recent_poison.append(report)
        _log.warning("requests record %d of slot %d was skipped: %s", report.offset, report.slot, report.reason)
