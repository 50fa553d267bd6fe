"""A coordinator and workers on one list of deliveries; a test holds links back, so that the order is its to choose.

Real cores, log and store in memory, no time. Every message is encoded and decoded on its way. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from styx.app import App
from styx.coordinator import metadata
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    ManifestStored,
    MarkerAppended,
    StoreManifest,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerSaid,
)
from styx.coordinator.events import Event as CoordinatorEvent
from styx.limits import Limits
from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.messages import ReplyRecord, Request, encode_reply, encode_request
from styx.partitioning import Key, stable_hash
from styx.protocol import ToCoordinator, ToWorker
from styx.sequencer import epoch_record
from styx.sequencer.arrival import Arrival
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker
from styx.store.memory import MemoryStore
from styx.testing.history import HistoryReport, check_history
from styx.testing.serial import ExternalResult
from styx.worker.events import (
    AppendEpochRecord,
    CoordinatorSaid,
    EmitReplies,
    Event,
    ExternalEnded,
    FrameArrived,
    LoadState,
    Proceed,
    RecordDurable,
    RequestsArrived,
    RunExternal,
    SendFrame,
    SlotPartsStored,
    StoreSlots,
    Tell,
)
from styx.worker.messages import ExternalOutcome, Frame
from styx.worker.recovery import load_state
from styx.worker.slot import IDEMPOTENCY_TABLE
from styx.worker.snapshot_io import store_slots
from styx.worker.worker import Worker

DELIVERIES_MAX = 200_000

_encode = msgspec.msgpack.Encoder().encode
_frame = msgspec.msgpack.Decoder(Frame).decode
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_to_coordinator: msgspec.msgpack.Decoder[ToCoordinator] = msgspec.msgpack.Decoder(ToCoordinator)


class Deployment:
    """`held` are links, (sender, receiver), whose messages wait; -1 is the coordinator.

    `externals` are outside calls that were asked for and have not ended; `outcomes` those that have, by key.
    """

    def __init__(self, app: App, workers: int, slots: int, limits: Limits | None = None) -> None:
        self.app = app
        self.slots = slots
        self.limits = limits or Limits()
        self.log = MemoryLog()
        self.store = MemoryStore()
        self.n_workers = workers
        self.held: set[tuple[int, int]] = set()
        self.sent: dict[str, tuple[Request, int]] = {}
        self.replies: list[ReplyRecord] = []
        self.externals: list[tuple[Worker, RunExternal]] = []
        self.outcomes: dict[bytes, ExternalResult] = {}
        self.epoch_records = 0
        self._together: dict[int, list[Arrival]] | None = None
        self.restart()

    def restart(self) -> None:
        """Everything crashes and starts again; log and store stay."""
        self._queue: list[tuple[tuple[int, int], Callable[[], None]]] = []
        self._proceeding: set[int] = set()
        self.externals = []
        self.workers = [Worker(n, self.app, self.slots, self.limits) for n in range(self.n_workers)]
        self.coordinator = Coordinator(self.slots, self.n_workers, snapshot_interval_s=1_000_000.0)
        manifests, _ = metadata.read_manifests(self.store)
        self.to_coordinator(metadata.beginning(manifests, metadata.read_generations(self.log))[0])
        for worker in self.workers:
            self.to_coordinator(WorkerJoined(worker.id))
        self.run()

    # Deliveries --------------------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Delivers what may arrive, first come first served, until nothing is left or `until()`."""
        for _ in range(DELIVERIES_MAX):
            index = next((i for i, (link, _) in enumerate(self._queue) if link not in self.held), None)
            if index is None or until():
                return
            self._queue.pop(index)[1]()
        raise AssertionError("the deployment never comes to rest")

    def _put(self, sender: int, receiver: int, deliver: Callable[[], None]) -> None:
        self._queue.append(((sender, receiver), deliver))

    def to_coordinator(self, event: CoordinatorEvent) -> None:
        for effect in self.coordinator.step(event):
            if isinstance(effect, AppendMarker):
                marker = GenerationMarker(effect.generation, effect.snapshot_epoch, effect.app_version)
                self._append(Stream.EPOCHS, EPOCHS_PARTITION, epoch_record.encode(marker))
                self._put(-1, -1, partial(self.to_coordinator, MarkerAppended(effect.generation)))
            elif isinstance(effect, StoreManifest):
                metadata.write_manifest(self.store, effect.manifest)
                stored = ManifestStored(effect.manifest.generation, effect.manifest.epoch, True)
                self._put(-1, -1, partial(self.to_coordinator, stored))
            elif isinstance(effect, TellWorker):
                worker, said = self.workers[effect.worker], CoordinatorSaid(_to_worker.decode(_encode(effect.message)))
                self._put(-1, worker.id, partial(self.to_worker, worker, said))

    def to_worker(self, worker: Worker, event: Event) -> None:
        for effect in worker.step(event):
            self._do(worker, effect)
        if worker.runnable and worker.id not in self._proceeding:
            self._proceeding.add(worker.id)
            self._put(worker.id, worker.id, partial(self._proceed, worker))

    def _proceed(self, worker: Worker) -> None:
        self._proceeding.discard(worker.id)
        self.to_worker(worker, Proceed())

    def _do(self, worker: Worker, effect: Any) -> None:
        me = worker.id
        if isinstance(effect, SendFrame):
            arrived = FrameArrived(_frame(_encode(effect.frame)))
            self._put(me, effect.peer, partial(self.to_worker, self.workers[effect.peer], arrived))
        elif isinstance(effect, Tell):
            said = WorkerSaid(me, _to_coordinator.decode(_encode(effect.message)))
            self._put(me, -1, partial(self.to_coordinator, said))
        elif isinstance(effect, AppendEpochRecord):
            self.epoch_records += 1
            self._append(Stream.EPOCHS, EPOCHS_PARTITION, effect.payload)
            self._put(me, me, partial(self.to_worker, worker, RecordDurable(effect.generation, effect.epoch)))
        elif isinstance(effect, EmitReplies):
            for reply in effect.replies:
                self.replies.append(reply)
                self._append(Stream.REPLIES, effect.slot, encode_reply(reply))
        elif isinstance(effect, LoadState):
            loaded = load_state(effect, self.slots, self.log, self.store)
            self.to_worker(worker, loaded)
            for slot, part in loaded.slots.items():
                records = [Arrival(*record) for record in self.log.read(Stream.REQUESTS, slot, part.next_offset)]
                self._put(me, me, partial(self.to_worker, worker, RequestsArrived(slot, records)))
        elif isinstance(effect, StoreSlots):
            _, epochs = self.log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)
            replies = {each.slot: {each.slot: self.log.bounds(Stream.REPLIES, each.slot)[1]} for each in effect.slots}
            parts = store_slots(effect, epochs, replies, self.store)
            stored = SlotPartsStored(effect.generation, effect.epoch, parts)
            self._put(me, me, partial(self.to_worker, worker, stored))
        elif isinstance(effect, RunExternal):
            self.externals.append((worker, effect))
            self.external_asked(worker, effect)

    def external_asked(self, worker: Worker, effect: RunExternal) -> None:
        """What a test may replace: an outside call is asked for."""

    def end_external(self, worker: Worker, effect: RunExternal, value: Any) -> None:
        """An outside call has ended, or its outcome stood in the log already: the worker hears of it at once."""
        data: bytes = _encode(value)
        self.outcomes[effect.key] = data
        outcome = _encode(ExternalOutcome(data))
        ended = ExternalEnded(effect.generation, effect.tid, effect.root_slot, effect.key, outcome)
        self.to_worker(worker, ended)

    # Clients -----------------------------------------------------------------------------------------------

    def send(self, operator: str, key: Key, function: str, *args: Any, idempotency_key: str = "") -> None:
        """A request enters the log; the workers hear of all of them with `feed`."""
        name = f"r{len(self.sent)}"
        plain: Any = list(key) if isinstance(key, tuple) else key
        request = Request(name, operator, plain, function, _encode(list(args)), idempotency_key)
        declared = self.app.operators[operator]
        slot = declared.partition_of(declared.check_key(key), self.slots) % self.slots
        self.sent[name] = (request, 0)
        offset = self._append(Stream.REQUESTS, slot, encode_request(request))
        owner = self.workers[self.coordinator.owners[slot]]
        arrival = Arrival(offset, 0, encode_request(request))
        if self._together is None:
            self._put(owner.id, owner.id, partial(self.to_worker, owner, RequestsArrived(slot, [arrival])))
        else:
            self._together.setdefault(slot, []).append(arrival)

    def send_together(self, sends: Callable[[], object]) -> None:
        """What `sends` sends arrives at once, so that requests of one slot share an epoch; then everything runs."""
        self._together = {}
        sends()
        arrivals, self._together = self._together, None
        for slot, together in arrivals.items():
            owner = self.workers[self.coordinator.owners[slot]]
            self._put(owner.id, owner.id, partial(self.to_worker, owner, RequestsArrived(slot, together)))
        self.run()

    def tick(self, now_s: float) -> None:
        self.to_coordinator(Tick(now_s))

    def _append(self, stream: Stream, partition: int, payload: bytes) -> int:
        offset = self.log.append(stream, partition, 0, payload)
        self.log.flush()
        return offset

    def reply(self, number: int) -> ReplyRecord:
        """The reply to request `number`."""
        return next(reply for reply in self.replies if reply.request_id == f"r{number}")

    def state(self) -> dict[tuple[str, Any], bytes]:
        """All entities' committed state."""
        found: dict[tuple[str, Any], bytes] = {}
        for worker in self.workers:
            for slot in worker.slots.values():
                found.update(slot.user_state())
        return found

    def remembered(self) -> list[bytes]:
        """Idempotency keys, the next to be forgotten first."""
        return [
            key for worker in self.workers for slot in worker.slots.values() for key in slot.table(IDEMPOTENCY_TABLE)
        ]

    def check(self) -> HistoryReport:
        """Every request is answered, as the serial execution would, and the state is the serial one."""
        return check_history(
            self.app,
            self.sent,
            self.replies,
            self.state(),
            limits=self.limits,
            n_slots=self.slots,
            externals=self.outcomes,
            complete=True,
        )


def place(slot: int, slots: int) -> int:
    """A first key part that lives on `slot`, for operators partitioned by it (`partition_key=first`)."""
    return next(n for n in range(10_000) if stable_hash(n) % slots == slot)


def first(key: tuple[int, int]) -> int:
    """The partition key of composite keys."""
    return key[0]
