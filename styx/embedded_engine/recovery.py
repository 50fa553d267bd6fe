"""The recovery of an embedded engine: the state that a start loads, the requests of the log behind it, and the watch on
its replay.

If a reply differs from the given one, the engine does not start; if it was told to accept differences, it logs each of
them and goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from styx import set_aside
from styx.embedded_engine.app_change import ACCEPT, AppChange, Stage
from styx.embedded_engine.engine_log import ExternalLog
from styx.embedded_engine.event_stream import EventStream
from styx.embedded_engine.metrics import EngineCounters
from styx.embedded_engine.storage import Storage
from styx.host.background import Background
from styx.log.base import Log, LogReader, Record, Stream
from styx.messages import ReplyRecord, decode_reply
from styx.model.event_record import tid_of
from styx.reports.function_reports import FunctionReports
from styx.snapshot.load import Unusable, load_state
from styx.state.table import NEWEST
from styx.worker.events import (
    CallGivenUp,
    EventDiffers,
    LoadState,
    NotResumed,
    ReplyDiffers,
    ReportEnds,
    ReportLeft,
    ReportPoison,
    RequestsArrived,
    StateLoaded,
    StateUnusable,
)
from styx.worker.given_replies import (
    CAUSES,
    ReplayDiffers,
    Told,
    causes,
    contradicts,
    difference,
    function_of,
    not_resumed,
)
from styx.worker.worker import Worker

FEED_RECORDS: Final = 4096
"""Records of each slot that are read at once."""

_log = logging.getLogger("styx.embedded")


class Feed:
    """Requests of a generation from `first_offsets` (by slot) to the durable end; or, if `ends` are given, to before
    these. They come in pieces, so that a long log never fills the memory.
    """

    def __init__(
        self, log: Log, generation: int, first_offsets: Mapping[int, int], ends: Mapping[int, int] | None = None
    ) -> None:
        self._generation = generation
        self._records: dict[int, Iterator[Record]] = {}
        for slot, first in first_offsets.items():
            records = log.read(Stream.REQUESTS, slot, first)
            self._records[slot] = records if ends is None else islice(records, max(0, ends[slot] - first))

    @property
    def exhausted(self) -> bool:
        """Everything has been given."""
        return not self._records

    def take(self) -> list[RequestsArrived]:
        """The next piece of each slot; raises `LogCorrupt`."""
        taken = []
        for slot, records in list(self._records.items()):
            arrivals = list(islice(records, FEED_RECORDS))
            if len(arrivals) < FEED_RECORDS:
                del self._records[slot]
            if arrivals:
                taken.append(RequestsArrived(self._generation, slot, arrivals))
        return taken


class Start:
    """A start's recovery. `feed` brings the log's requests back after a load: those of recorded epochs alone, if what
    follows them is for another version of the app. `failed` ends the engine.
    """

    def __init__(
        self,
        core: Worker,
        storage: Storage,
        background: Background,
        change: AppChange,
        external_log: ExternalLog,
        events: EventStream,
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self.feed = Feed(storage.log, -1, {})
        self._core = core
        self._log = storage.log
        self._store = storage.store
        self._background = background
        self._change = change
        self._external_log = external_log
        self._events = events
        self._failed = failed

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        """As `Recovery.load`; requests come from `feed`."""

        def load() -> StateLoaded | StateUnusable:
            try:
                answer = load_state(wanted, self._core.n_slots, self._log, self._store)
            except Unusable as error:
                return StateUnusable(wanted.generation, str(error))
            answer.outcomes = self._external_log.outcomes.copy()
            answer.emitted = self._events.standing(wanted.slots, answer.epoch)
            answer.aside = set_aside.read(self._store)
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
        self.feed = Feed(self._log, answer.generation, firsts, ends if self._change.stage is Stage.REPLAYING else None)


class ReplayWatch:
    """Tells of a worker's findings. `found` counts the replies that are other ones."""

    def __init__(self, log: LogReader, change: AppChange, reports: FunctionReports, counters: EngineCounters) -> None:
        self.found = 0
        self._counters = counters
        self._log = log
        self._change = change
        self._reports = reports
        self._told = Told()

    def ended(self, effect: ReportEnds) -> None:
        """As `Findings.ended`."""
        self._reports.take()

    def left(self, effect: ReportLeft) -> None:
        """As `Findings.left`."""
        self._reports.left.add(effect.functions)

    def gave_up(self, effect: CallGivenUp) -> None:
        """As `Findings.gave_up`."""
        self._reports.dead_calls.add(effect)

    def skipped(self, effect: ReportPoison) -> None:
        """As `Findings.skipped`."""
        self._counters.poison += 1
        self._counters.recent_poison.append(effect)
        _log.warning("requests record %d of slot %d was skipped: %s", effect.offset, effect.slot, effect.reason)

    def differs(self, effect: ReplyDiffers) -> None:
        """Raises `ReplayDiffers`, unless nobody was told anything else or it is accepted."""
        answered = self._answered(effect) if effect.answered is None else effect.answered
        words = difference(effect.request, answered, effect.reply)
        harmless = answered is not None and not contradicts(answered, effect.reply)
        if not (harmless or self._change.accept):
            raise ReplayDiffers(f"{words}: {self._causes()}. Nothing is lost. {self._way_on()}")
        self.found += 1
        function = function_of(effect.request)
        further = self._told.again(function)
        place = effect.reply.tid, effect.reply.epoch
        self._reports.replay_difference(function, *place, None if further is None else words)
        if further is not None:
            why = causes(answered, effect.reply)
            _log.warning("%s; what was answered stands in the log: %s%s", words, why, further)

    def event_differs(self, effect: EventDiffers) -> None:
        """Raises `ReplayDiffers`, unless it is accepted."""
        told = "no event" if effect.record is None else "another value"
        words = (
            f"a replay emits {told} where event {effect.event!r} stands in the log of slot {effect.slot}, {effect.id}"
        )
        if not self._change.accept:
            raise ReplayDiffers(f"{words}: {self._causes()}. Nothing is lost. {self._way_on()}")
        self.found += 1
        further = self._told.again(None)
        tid = tid_of(effect.id)
        self._reports.replay_difference(None, tid, None, None if further is None else words)
        if further is not None:
            _log.warning("%s; what stands there stays: %s%s", words, self._causes(), further)

    def not_resumed(self, effect: NotResumed) -> None:
        """Raises `ReplayDiffers`, unless it is accepted."""
        words = not_resumed(effect.tid, effect.slot)
        if not self._change.accept:
            raise ReplayDiffers(f"{words}: {self._causes()}. Nothing is lost. {self._way_on()}")
        self.found += 1
        further = self._told.again(None)
        self._reports.replay_difference(None, effect.tid, None, None if further is None else words)
        if further is not None:
            _log.warning("%s: %s%s", words, self._causes(), further)

    def _causes(self) -> str:
        if self._change.changed and not self._change.recorded_code_ran:
            return "the code has changed since the crash, or the function is not deterministic"
        return CAUSES

    def _way_on(self) -> str:
        if self._change.changed and not self._change.recorded_code_ran:
            start = "Start once with the code from before and stop it cleanly, or go"
        else:
            start = "Go"
        return f"{start} on with what the replay gives, with {ACCEPT}: it says each reply that would be another one."

    def _answered(self, effect: ReplyDiffers) -> ReplyRecord | None:
        first, _ = self._log.bounds(Stream.REPLIES, effect.slot)
        for record in self._log.read(Stream.REPLIES, effect.slot, first):
            reply = decode_reply(record.payload)
            if reply.sequence == effect.reply.sequence:
                return reply
        return None
