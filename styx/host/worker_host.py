"""A worker's core at work: it gets events, and its effects are carried out. Each order follows from an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from styx.host.ports import WorkerPorts
from styx.model.execution import with_own_generators
from styx.protocol.manifest import SlotPart
from styx.snapshot.part import store_slots
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    CallGivenUp,
    ClockTold,
    Effect,
    EmitEvents,
    EmitReplies,
    Event,
    EventDiffers,
    ExternalAppended,
    ExternalReturned,
    LoadState,
    MarkEvents,
    NotResumed,
    RecordDurable,
    RepliesDurable,
    ReplyDiffers,
    ReportEnds,
    ReportLeft,
    ReportPoison,
    RunExternal,
    SendFrame,
    SlotPartsStored,
    StoreSlots,
    SyncReplies,
    Tell,
    WakeAt,
)


class Core(Protocol):
    """A worker's, or what stands before it."""

    def step(self, event: Event) -> list[Effect]:
        """As `Worker.step`."""


class WorkerHost:
    """Of `core`; what it began comes back through `give`, as events that are to happen soon. The core drops those that
    are too late.
    """

    def __init__(
        self,
        core: Core,
        ports: WorkerPorts,
        give: Callable[[Event], None],
    ) -> None:
        self._core = core
        self._links, self._journal, self._objects, self._recovery, findings, self._external, self._alarm = ports
        self._give = give
        self._do: dict[type, Callable[[Any], None]] = {
            SendFrame: ports.links.send,
            Tell: self._tell,
            AppendEpochRecord: self._append,
            AppendVerdicts: self._append,
            EmitReplies: ports.journal.emit,
            EmitEvents: ports.journal.emit_events,
            MarkEvents: ports.journal.mark_events,
            EventDiffers: findings.event_differs,
            ReportEnds: findings.ended,
            ReplyDiffers: findings.differs,
            NotResumed: findings.not_resumed,
            LoadState: self._load,
            StoreSlots: self._store_slots,
            SyncReplies: self._sync_replies,
            AppendExternal: self._append_external,
            RunExternal: self._run_external,
            WakeAt: self._wake_at,
            ReportLeft: findings.left,
            CallGivenUp: findings.gave_up,
            ReportPoison: findings.skipped,
        }

    def step(self, event: Event) -> None:
        """Gives the core an event and begins what it wants done."""
        do = self._do
        for effect in with_own_generators(self._core.step, event):
            do[type(effect)](effect)

    def do(self, effect: Effect) -> None:
        """Begins what the core wants done."""
        self._do[type(effect)](effect)

    def _tell(self, effect: Tell) -> None:
        self._links.tell(effect.message)

    def _append(self, effect: AppendEpochRecord | AppendVerdicts) -> None:
        durable = RecordDurable(effect.generation, effect.epoch)
        self._journal.record(effect, lambda: self._give(durable))

    def _sync_replies(self, effect: SyncReplies) -> None:
        durable = RepliesDurable(effect.generation, effect.epoch)
        self._journal.when_durable(lambda: self._give(durable))

    def _append_external(self, effect: AppendExternal) -> None:
        generation, key = effect.generation, effect.record.key
        self._journal.external(effect, lambda outcome: self._give(ExternalAppended(generation, key, outcome)))

    def _run_external(self, wanted: RunExternal) -> None:
        generation, key = wanted.generation, wanted.key
        self._external.run(wanted, lambda outcome: self._give(ExternalReturned(generation, key, outcome)))

    def _wake_at(self, wanted: WakeAt) -> None:
        self._alarm.wake(wanted.due_us, lambda now_us: self._give(ClockTold(now_us)))

    def _load(self, wanted: LoadState) -> None:
        self._recovery.load(wanted, self._give)

    def _store_slots(self, wanted: StoreSlots) -> None:
        store = self._objects.store
        ends = self._journal.ends(wanted)

        def stored(parts: list[SlotPart] | None) -> None:
            self._give(SlotPartsStored(wanted.generation, wanted.epoch, parts))

        what = f"storing the snapshot of epoch {wanted.epoch}"
        self._objects.submit(what, lambda: store_slots(wanted, *ends, store), stored, lambda _: stored(None))
