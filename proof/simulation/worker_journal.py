"""The simulated worker's journal: what its process writes to the log on virtual time, and where it knows that ends.

An append takes its time, and may never arrive. A snapshot waits for those that are under way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proof.simulation import event_log
from proof.simulation.external_calls import append_external
from styx.host.ports import LogEnds
from styx.log.base import Stream
from styx.messages import encode_reply
from styx.sequencer.epoch_record import EPOCHS_PARTITION, EpochRecord, decode
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    EmitEvents,
    EmitReplies,
    MarkEvents,
    StoreSlots,
)

if TYPE_CHECKING:
    from proof.simulation.worker_process import WorkerProcess


class SimulatedJournal:
    """The journal of one incarnation of a worker process, in whatever generation that is."""

    def __init__(self, host: WorkerProcess) -> None:
        self._host = host
        self._emitted = 0
        self._unacknowledged: dict[int, list[Callable[[], None]]] = {}
        self._epochs_end = 0
        self.reply_ends: dict[int, int] = {}
        """By partition, where the replies end as far as it knows."""
        self.event_ends: dict[int, int] = {}
        """By slot, where the events end as far as it knows."""

    def begin(self) -> None:
        """A generation begins: what an older one sent has arrived by now, or never will."""
        self._unacknowledged = {}

    def look_for_ends(self, n_slots: int) -> None:
        """Asks the log where the streams end."""
        records = self._host.world.log.records
        _, self._epochs_end = records.bounds(Stream.EPOCHS, EPOCHS_PARTITION)
        self.reply_ends = {p: records.bounds(Stream.REPLIES, p)[1] for p in range(n_slots)}
        self.event_ends = {p: records.bounds(Stream.EVENTS, p)[1] for p in range(n_slots)}

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        """As `WorkerJournal.record`."""
        log = self._host.world.log
        record = decode(effect.payload)
        if isinstance(record, EpochRecord):
            self._host.world.passed_over += sum(len(batch.passed) for batch in record.batches)
            pressure = self._host.core.pressure
            self._host.world.small_epochs += pressure.settled < pressure.transactions_max

        def arrived() -> None:
            _, self._epochs_end = log.records.bounds(Stream.EPOCHS, EPOCHS_PARTITION)
            durable()

        log.append(
            self._host.name,
            effect.generation,
            Stream.EPOCHS,
            EPOCHS_PARTITION,
            [effect.payload],
            arrived,
            self._host.identity,
            self._host.refused(effect.generation),
        )

    def emit(self, effect: EmitReplies) -> None:
        """As `WorkerJournal.emit`."""
        payloads = [encode_reply(reply) for reply in effect.replies]
        self._append(Stream.REPLIES, self._reply_partition(effect.slot), payloads, self.reply_ends)

    def _append(self, stream: Stream, partition: int, payloads: list[bytes], ends: dict[int, int]) -> None:
        """Appends what a snapshot waits for, and keeps where the partition ends behind it."""
        waiting = self._unacknowledged
        self._emitted += 1
        number = self._emitted
        waiting[number] = []

        def arrived() -> None:
            _, ends[partition] = self._host.world.log.records.bounds(stream, partition)
            for then in waiting.pop(number):
                then()

        generation = self._host.core.generation
        identity, refused = self._host.identity, self._host.refused(generation)
        self._host.world.log.append(
            self._host.name, generation, stream, partition, payloads, arrived, identity, refused
        )

    @property
    def all_told(self) -> bool:
        """Whether all replies that it has emitted are in the log: nobody waits for those of deliveries."""
        return not self._unacknowledged

    def emit_events(self, effect: EmitEvents) -> None:
        """As `WorkerJournal.emit_events`."""
        payloads = [event_log.encode(record) for record in effect.events]
        self._append(Stream.EVENTS, effect.slot, payloads, self.event_ends)

    def mark_events(self, effect: MarkEvents) -> None:
        """As `WorkerJournal.mark_events`."""
        self._host.unmarked = False
        for slot in self._host.core.slots:
            self._append(Stream.EVENTS, slot, [event_log.encode(effect.epoch)], self.event_ends)

    def when_durable(self, then: Callable[[], None]) -> None:
        """As `WorkerJournal.when_durable`."""
        self._when_durable(then, self._emitted)

    def _when_durable(self, then: Callable[[], None], last: int) -> None:
        if not self._host.alive:
            return
        oldest = min((number for number in self._unacknowledged if number <= last), default=None)
        if oldest is None:
            then()
        else:
            self._unacknowledged[oldest].append(lambda: self._when_durable(then, last))

    def _reply_partition(self, slot: int) -> int:
        """Replies of several slots share a partition where clients choose it."""
        return slot // 2 if self._host.world.plan.cluster else slot

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        """As `WorkerJournal.external`."""
        append_external(self._host, effect, durable)

    def ends(self, wanted: StoreSlots) -> LogEnds:
        """As `WorkerJournal.ends`."""
        slots, records = [each.slot for each in wanted.slots], self._host.world.log.records
        events = {slot: {event_log.NAME: self.event_ends[slot]} for slot in slots}
        if self._host.world.plan.cluster:
            return LogEnds(self._epochs_end, {slot: dict(self.reply_ends) for slot in slots}, events)
        _, epochs = records.bounds(Stream.EPOCHS, EPOCHS_PARTITION)
        return LogEnds(epochs, {slot: {slot: records.bounds(Stream.REPLIES, slot)[1]} for slot in slots}, events)
