"""A worker process of a transcript: its core, the product's host of it, and a world where everything is a delivery."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from proof.simulation import event_log
from styx.coordinator.events import WorkerSaid
from styx.host.ports import LogEnds, Objects, WorkerPorts
from styx.host.worker_host import WorkerHost
from styx.log.base import Stream
from styx.protocol.frames import Frame
from styx.protocol.messages import ToCoordinator
from styx.sequencer.epoch_record import EPOCHS_PARTITION, encode_external
from styx.snapshot.load import Unusable, load_state
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    CallGivenUp,
    EmitEvents,
    EmitReplies,
    EventDiffers,
    FrameArrived,
    LoadState,
    MarkEvents,
    NotResumed,
    ReplyDiffers,
    ReportEnds,
    ReportLeft,
    ReportPoison,
    RunExternal,
    SendFrame,
    StateLoaded,
    StateUnusable,
    StoreSlots,
)
from styx.worker.worker import Worker
from tests.protocol import narration

if TYPE_CHECKING:
    from tests.protocol.cluster import Cluster

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_to_coordinator: msgspec.msgpack.Decoder[ToCoordinator] = msgspec.msgpack.Decoder(ToCoordinator)
_frame = msgspec.msgpack.Decoder(Frame)


class Process:
    """A worker process of `cluster`, and the world of its core; `connected` to the coordinator or not. A restart is
    another one. `text` says what is being done.
    """

    def __init__(self, cluster: Cluster, core: Worker) -> None:
        self.core = core
        self.name = f"w{core.id}"
        self.alive = True
        self.connected = False
        self.proceeding = False
        self.checking = False
        self.fed: dict[int, int] = {}
        self.text = ""
        self._cluster = cluster
        self._storage = cluster.storage
        objects = Objects(cluster.storage.store, self._submit)
        ports = WorkerPorts(self, self, objects, self, self, self, self)
        self.host = WorkerHost(self.core, ports, partial(cluster.to_worker, self))

    def tell(self, message: ToCoordinator) -> None:
        link, cluster = f"{self.name} -> c", self._cluster
        line = cluster.say(link, narration.to_coordinator(message), narration.generation_of(message))
        if self.connected:
            event = WorkerSaid(self.core.id, _to_coordinator.decode(_encode(message)))
            cluster.links.put(link, line, partial(cluster.to_coordinator, event))

    def send(self, effect: SendFrame) -> None:
        frame, cluster = effect.frame, self._cluster
        link = f"{self.name} -> w{effect.peer}"
        lines = [
            cluster.say(link, f"epoch {frame.epoch} {narration.worker_message(message)}", frame.generation)
            for message in frame.messages
        ]
        peer = cluster.processes.get(effect.peer)
        if peer is not None:
            event = FrameArrived(_frame.decode(_encode(frame)))
            cluster.links.put(link, "; ".join(lines), partial(cluster.to_worker, peer, event))

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        def deliver() -> None:
            self._storage.append(Stream.EPOCHS, EPOCHS_PARTITION, effect.payload)
            durable()

        self._cluster.put(f"{self.name} log", self.text, deliver)

    def emit(self, effect: EmitReplies) -> None:
        generation = self.core.generation

        def deliver() -> None:
            if not self._storage.append_replies(effect.slot, effect.replies, generation):
                refused = f"(the log refuses {self.name}'s replies: they are of generation {generation})"
                self._cluster.trace.append(refused)

        self._cluster.put(f"{self.name} replies", self.text, deliver)

    def emit_events(self, effect: EmitEvents) -> None:
        for record in effect.events:
            self._storage.append(Stream.EVENTS, effect.slot, event_log.encode(record))

    def mark_events(self, effect: MarkEvents) -> None:
        """The transcript says so."""

    def when_durable(self, then: Callable[[], None]) -> None:
        self._cluster.links.put(f"{self.name} replies", f"{self.name}: all replies are durable", then)

    def ends(self, wanted: StoreSlots) -> LogEnds:
        return self._storage.ends(each.slot for each in wanted.slots)

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        def deliver() -> None:
            answer: StateLoaded | StateUnusable
            try:
                answer = load_state(wanted, self.core.n_slots, self._storage.log, self._storage.store)
                answer.outcomes = self._storage.outcomes()
                firsts = dict.fromkeys(wanted.slots, 0)
                answer.emitted = event_log.standing(self._storage.log, self.core.app, firsts)
            except Unusable as error:
                answer = StateUnusable(wanted.generation, str(error))
            loaded(answer)
            if isinstance(answer, StateLoaded) and self.alive:
                self.fed = {slot: part.next_offset for slot, part in answer.slots.items()}
                for slot in self.fed:
                    self._cluster.feed(slot)

        self._cluster.put(f"{self.name} load", self.text, deliver)

    def ended(self, effect: ReportEnds) -> None:
        """A test looks at the notes."""

    def differs(self, effect: ReplyDiffers) -> None:
        """The transcript says so."""

    def event_differs(self, effect: EventDiffers) -> None:
        """The transcript says so."""

    def not_resumed(self, effect: NotResumed) -> None:
        """The transcript says so."""

    def left(self, effect: ReportLeft) -> None:
        """The transcript says so."""

    def gave_up(self, effect: CallGivenUp) -> None:
        """The transcript says so."""

    def skipped(self, effect: ReportPoison) -> None:
        """The transcript says so."""

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        def deliver() -> None:
            self._storage.append(Stream.EXTERNALS, effect.slot, encode_external(effect.record))
            durable(effect.record.outcome)

        self._cluster.put(f"{self.name} externals", self.text, deliver)

    def run(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
        self._cluster.externals[wanted.tid] = (wanted.key, ended)

    def wake(self, due_us: int, told: Callable[[int], None]) -> None:
        self._cluster.alarms[self.name] = (due_us, told)
        self._cluster.ring(self.name)

    def _submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        self._cluster.put(f"{self.name} store", self.text, partial(self._cluster.try_store, what, run, ended, gave_up))
