"""The judgement of a case: its epochs are replayed, and every reply, every event, every entry of the state and all that
was under way at its end is held against what was recorded.

It needs the case alone, and no deployment. Whether a reply is the same follows from its bytes; two errors that differ
in nothing but their words are counted apart, because another Python words some errors differently.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from styx.audit.case import PLANS, Case, CopiedObjects, read_case, requests_name
from styx.audit.comparison import Comparison
from styx.audit.records import read_records
from styx.audit.replay import Recorded, Replay, Replayed, StandsStill, workers_for
from styx.audit.trace import Trace
from styx.audit.transactions import EndedTransactions, EpochTransactions
from styx.audit.verdict import CannotJudge, Verdict
from styx.coordinator.barrier import PatchRounds
from styx.errors import EngineFailed
from styx.log.base import Arrival
from styx.model.app import App
from styx.protocol.messages import NOTHING
from styx.sequencer.epoch_record import EpochPlan
from styx.snapshot.load import Behind, Unusable, read_states, state_of
from styx.state.slot_state import SlotState
from styx.worker.events import LoadState, StateLoaded
from styx.worker.given_replies import GivenReplies

PROGRESS_SECONDS: Final = 1.0
"""Between two signs that a replay goes on."""

_plan = msgspec.msgpack.Decoder(EpochPlan).decode
_arrival: Callable[[bytes], Arrival] = msgspec.msgpack.Decoder(tuple[int, int, bytes]).decode


def judge(
    directory: Path,
    objects: CopiedObjects,
    app: App,
    workers: int | None = None,
    progress: Callable[[int], None] = lambda epoch: None,
    trace: Path | None = None,
    rounds: PatchRounds | None = None,
) -> Verdict:
    """The verdict on the case in `directory`, replayed on so many workers, by default on another number than recorded.

    `progress` is told of an epoch now and then. What each transaction has written goes to the file `trace`, if there is
    one. `rounds` are those of a lock phase, where they are not the usual ones. Raises `CannotJudge`.
    """
    case = read_case(directory)
    number = workers_for(case.recorded_workers, case.n_slots, workers)
    verdict = Verdict(after=case.since[0], until=case.after.epoch, workers=number)
    verdict.recorded_workers, verdict.notes = case.recorded_workers, list(case.notes)
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    comparison = Comparison(case, directory, app, verdict)
    tracing = None if trace is None else Trace(trace, number)
    try:
        _Judgement(case, directory, objects, app, comparison, progress, tracing).run(number, rounds)
    finally:
        if tracing is not None:
            tracing.close()
    comparison.finish()
    verdict.seconds, verdict.cpu_seconds = time.monotonic() - began_s, time.process_time() - began_cpu_s
    return verdict


class _Judgement:
    def __init__(
        self,
        case: Case,
        directory: Path,
        objects: CopiedObjects,
        app: App,
        comparison: Comparison,
        progress: Callable[[int], None],
        trace: Trace | None,
    ) -> None:
        self._case = case
        self._directory = directory
        self._objects = objects
        self._app = app
        self._comparison = comparison
        self._progress = progress
        self._trace = trace
        self._ended = EpochTransactions([])

    def run(self, workers: int, rounds: PatchRounds | None) -> None:
        case = self._case
        watches = [EndedTransactions() for _ in range(workers)] if self._trace is None else self._trace.watches
        self._ended = EpochTransactions(watches)
        replay = Replay(
            self._app,
            case.version,
            case.limits,
            case.n_slots,
            case.before,
            self._load,
            [*watches],
            rounds or PatchRounds(),
        )
        try:
            if self._replayed(replay):
                self._compare_state(replay)
        finally:
            replay.end()

    def _load(self, wanted: LoadState) -> StateLoaded:
        try:
            loaded = state_of(wanted, self._objects, lambda: Behind([], GivenReplies({}, NOTHING)))
        except Unusable as error:
            raise CannotJudge(f"the snapshot that it begins with cannot be loaded: {error}") from error
        loaded.outcomes, loaded.aside = Recorded(), frozenset(self._case.aside)
        return loaded

    def _replayed(self, replay: Replay) -> bool:
        """Runs all epochs; whether it came to the end."""
        requests = _Requests(self._directory, self._case)
        told_s = time.monotonic()
        for data in read_records(self._directory / PLANS):
            plan = _plan(data)
            try:
                given = replay.run(plan, requests.until(plan), last=plan.epoch == self._case.after.epoch)
            except StandsStill:
                self._broke_off(plan, "its workers wait for what does not come")
                return False
            except AssertionError as error:
                self._broke_off(plan, str(error))
                return False
            self._took(plan, given)
            if time.monotonic() - told_s >= PROGRESS_SECONDS:
                self._progress(plan.epoch)
                told_s = time.monotonic()
        return True

    def _took(self, plan: EpochPlan, given: Replayed) -> None:
        if self._trace is not None:
            self._trace.closed(plan.epoch, given.replies, self._ended)
        self._comparison.epoch(plan.epoch, given, self._ended)
        self._ended.forget()

    def _broke_off(self, plan: EpochPlan, why: str) -> None:
        self._comparison.broke_off(
            f"epoch {plan.epoch} cannot be run again as it was recorded: {why}. A function has done something else "
            "than when it ran first; the state at the end was not compared"
        )

    def _compare_state(self, replay: Replay) -> None:
        case = self._case
        for slot in case.after.slots:
            index = slot.part.slot
            try:
                stored = read_states(case.after, [index], self._objects).get(index) or SlotState()
            except EngineFailed as error:
                raise CannotJudge(f"the snapshot that it ends with cannot be read: {error}") from error
            self._comparison.slot(slot.part, stored, replay.state(index), replay.contents.get(index))


class _Requests:
    """The requests of a case, given epoch by epoch."""

    def __init__(self, directory: Path, case: Case) -> None:
        self._records: dict[int, Iterator[bytes]] = {
            slot: read_records(directory / requests_name(slot)) for slot in range(case.n_slots)
        }
        self._next: dict[int, Arrival | None] = {slot: self._read(slot) for slot in self._records}

    def until(self, plan: EpochPlan) -> dict[int, list[Arrival]]:
        """Those that the epoch is the first to need, by slot."""
        taken: dict[int, list[Arrival]] = {}
        for slot, batch in plan.batches.items():
            upcoming = self._next[slot]
            while upcoming is not None and upcoming[0] < batch.next:
                taken.setdefault(slot, []).append(upcoming)
                upcoming = self._read(slot)
            self._next[slot] = upcoming
        return taken

    def _read(self, slot: int) -> Arrival | None:
        data = next(self._records[slot], None)
        return None if data is None else _arrival(data)
