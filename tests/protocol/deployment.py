"""A coordinator and workers on one list of deliveries; a test holds links back, so that the order is its to choose.

Real cores, log and store in memory, no time. Every message is encoded and decoded on its way. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from proof.spinning import as_replied
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import Event as CoordinatorEvent
from styx.coordinator.events import (
    Expel,
    ReleaseLog,
    StateFound,
    StopEnded,
    Tick,
    WorkerJoined,
    WorkerSaid,
)
from styx.host.coordinator_host import CoordinatorHost
from styx.host.ports import Identity, LogEnds, Objects, WorkerPorts
from styx.host.worker_host import WorkerHost
from styx.log.base import Record, Stream
from styx.log.memory import MemoryLog
from styx.messages import EventRecord, ReplyRecord, Request, encode_reply, encode_request
from styx.model.app import App
from styx.model.limits import Limits
from styx.model.partitioning import Key, stable_hash
from styx.protocol.frames import ExternalOutcome, Frame
from styx.protocol.messages import ToCoordinator, ToWorker
from styx.sequencer import epoch_record
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, SnapshotNote
from styx.snapshot.load import load_state
from styx.snapshot.manifest import read_beginning
from styx.state.table import NEWEST
from styx.store.memory import MemoryStore
from styx.testing.history import HistoryReport, check_history
from styx.testing.serial import ExternalResult
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    CallGivenUp,
    CoordinatorSaid,
    EmitEvents,
    EmitReplies,
    Event,
    EventDiffers,
    FrameArrived,
    LoadState,
    MarkEvents,
    NotResumed,
    Proceed,
    ReplyDiffers,
    ReportEnds,
    ReportLeft,
    ReportPoison,
    RequestsArrived,
    RunExternal,
    SendFrame,
    StateLoaded,
    StateUnusable,
    StoreSlots,
)
from styx.worker.worker import Worker

DELIVERIES_MAX = 200_000

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_frame = msgspec.msgpack.Decoder(Frame).decode
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_to_coordinator: msgspec.msgpack.Decoder[ToCoordinator] = msgspec.msgpack.Decoder(ToCoordinator)


class Deployment:
    """`held` are links, (sender, receiver), whose messages wait; -1 is the coordinator.

    `externals` are external calls that were asked for and have not ended; `outcomes` those that have, by key.
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
        self.events: list[EventRecord] = []
        self.marks: list[tuple[int, int]] = []
        self.externals: list[tuple[Worker, RunExternal]] = []
        self.alarms: dict[Worker, tuple[int, Callable[[int], None]]] = {}
        self._ended: dict[bytes, Callable[[bytes], None]] = {}
        self.outcomes: dict[bytes, ExternalResult] = {}
        self.epoch_records = 0
        self._together: dict[int, list[Record]] | None = None
        self.restart()

    def restart(self) -> None:
        """Everything crashes and starts again; log and store stay."""
        self._queue: list[tuple[tuple[int, int], Callable[[], None]]] = []
        self._proceeding: set[int] = set()
        self.externals = []
        self.workers = [Worker(n, self.app, self.slots, self.limits) for n in range(self.n_workers)]
        self._hosts = [_Place(self, worker).host for worker in self.workers]
        self.coordinator = Coordinator(self.slots, self.n_workers, snapshot_interval_s=1_000_000.0)
        objects = Objects(self.store, self._submit)
        self._coordinator_host = CoordinatorHost(self.coordinator, self, self, objects, self, self.to_coordinator)
        self.to_coordinator(read_beginning(self.store, self.log).started)
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

    def put(self, sender: int, receiver: int, deliver: Callable[[], None]) -> None:
        self._queue.append(((sender, receiver), deliver))

    def to_coordinator(self, event: CoordinatorEvent) -> None:
        self._coordinator_host.step(event)

    # The coordinator's world: `Members`, `CoordinatorJournal`, `Submit` and `Operator` ------------------------

    def tell(self, worker: int, message: ToWorker) -> None:
        said = CoordinatorSaid(_to_worker.decode(_encode(message)))
        self.put(-1, worker, partial(self.to_worker, self.workers[worker], said))

    def expel(self, effect: Expel) -> None:
        raise AssertionError(f"a worker is expelled: {effect.reason}")

    def let_go(self, worker: int) -> None:
        raise AssertionError("a worker is let go")

    def found(self, effect: StateFound) -> None:
        raise AssertionError("state was checked")

    def stopped(self, effect: StopEnded) -> None:
        raise AssertionError("nobody stops it")

    def refuse(self, reason: str) -> None:
        raise AssertionError(f"the data is refused: {reason}")

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        self.put(-1, -1, lambda: fenced([]))

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        self.append(Stream.EPOCHS, EPOCHS_PARTITION, epoch_record.encode(marker))
        self.put(-1, -1, appended)

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        self.append(Stream.EPOCHS, EPOCHS_PARTITION, epoch_record.encode(note))
        self.put(-1, -1, appended)

    def release_records(self, wanted: ReleaseLog) -> None:
        """Everything stays."""

    def _submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        self.put(-1, -1, lambda: ended(run()))

    # Workers -----------------------------------------------------------------------------------------------

    def to_worker(self, worker: Worker, event: Event) -> None:
        for effect in worker.step(event):
            self._hosts[worker.id].do(effect)
        if worker.runnable and worker.id not in self._proceeding:
            self._proceeding.add(worker.id)
            self.put(worker.id, worker.id, partial(self._proceed, worker))

    def _proceed(self, worker: Worker) -> None:
        self._proceeding.discard(worker.id)
        self.to_worker(worker, Proceed())

    def external_asked(self, worker: Worker, effect: RunExternal) -> None:
        """What a test may replace: an external call is asked for."""

    def end_external(self, worker: Worker, effect: RunExternal, value: Any) -> None:
        """An external call has ended."""
        data: bytes = _encode(value)
        self.outcomes[effect.key] = data
        self._ended.pop(effect.key)(_encode(ExternalOutcome(data)))

    # Clients -----------------------------------------------------------------------------------------------

    def send(self, operator: str, key: Key, function: str, *args: Any, idempotency_key: str = "") -> None:
        """A request enters the log; the workers hear of all of them with `feed`."""
        name = f"r{len(self.sent)}"
        plain: Any = list(key) if isinstance(key, tuple) else key
        request = Request(name, operator, plain, function, _encode(list(args)), idempotency_key)
        declared = self.app.operators[operator]
        slot = declared.partition_of(declared.check_key(key), self.slots) % self.slots
        self.sent[name] = (request, 0)
        offset = self.append(Stream.REQUESTS, slot, encode_request(request))
        owner = self.workers[self.coordinator.owners[slot]]
        arrival = Record(offset, 0, encode_request(request))
        if self._together is None:
            event = RequestsArrived(owner.generation, slot, [arrival])
            self.put(owner.id, owner.id, partial(self.to_worker, owner, event))
        else:
            self._together.setdefault(slot, []).append(arrival)

    def send_together(self, sends: Callable[[], object]) -> None:
        """What `sends` sends arrives at once, so that requests of one slot share an epoch; then everything runs."""
        self._together = {}
        sends()
        arrivals, self._together = self._together, None
        for slot, together in arrivals.items():
            owner = self.workers[self.coordinator.owners[slot]]
            event = RequestsArrived(owner.generation, slot, together)
            self.put(owner.id, owner.id, partial(self.to_worker, owner, event))
        self.run()

    def tick(self, now_s: float) -> None:
        self.to_coordinator(Tick(now_s))

    def append(self, stream: Stream, partition: int, payload: bytes) -> int:
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
                found.update(slot.state.entities(NEWEST))
        return found

    def remembered(self) -> list[bytes]:
        """Idempotency keys, the next to be forgotten first."""
        return [key for worker in self.workers for memory in worker.memories.values() for key in memory.keys]

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
            around=as_replied,
        )


class _Place:
    """The world of one worker's core."""

    def __init__(self, deployment: Deployment, core: Worker) -> None:
        self._deployment = deployment
        self._core = core
        objects = Objects(deployment.store, self._submit)
        ports = WorkerPorts(self, self, objects, self, self, self, self)
        self.host = WorkerHost(core, ports, partial(deployment.to_worker, core))

    def _soon(self, deliver: Callable[[], None]) -> None:
        self._deployment.put(self._core.id, self._core.id, deliver)

    def tell(self, message: ToCoordinator) -> None:
        said = WorkerSaid(self._core.id, _to_coordinator.decode(_encode(message)))
        self._deployment.put(self._core.id, -1, partial(self._deployment.to_coordinator, said))

    def send(self, effect: SendFrame) -> None:
        peer = self._deployment.workers[effect.peer]
        arrived = FrameArrived(_frame(_encode(effect.frame)))
        self._deployment.put(self._core.id, effect.peer, partial(self._deployment.to_worker, peer, arrived))

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        self._deployment.epoch_records += isinstance(effect, AppendEpochRecord)
        self._deployment.append(Stream.EPOCHS, EPOCHS_PARTITION, effect.payload)
        self._soon(durable)

    def emit(self, effect: EmitReplies) -> None:
        for reply in effect.replies:
            self._deployment.replies.append(reply)
            self._deployment.append(Stream.REPLIES, effect.slot, encode_reply(reply))

    def emit_events(self, effect: EmitEvents) -> None:
        self._deployment.events += effect.events

    def mark_events(self, effect: MarkEvents) -> None:
        self._deployment.marks.append((len(self._deployment.events), effect.epoch))

    def when_durable(self, then: Callable[[], None]) -> None:
        self._soon(then)

    def ends(self, wanted: StoreSlots) -> LogEnds:
        log = self._deployment.log
        replies = {each.slot: {each.slot: log.bounds(Stream.REPLIES, each.slot)[1]} for each in wanted.slots}
        return LogEnds(log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], replies)

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        deployment = self._deployment
        state = load_state(wanted, deployment.slots, deployment.log, deployment.store)
        loaded(state)
        for slot, part in state.slots.items():
            records = list(deployment.log.read(Stream.REQUESTS, slot, part.next_offset))
            self._soon(partial(deployment.to_worker, self._core, RequestsArrived(wanted.generation, slot, records)))

    def ended(self, effect: ReportEnds) -> None:
        raise AssertionError("its workers take no notes")

    def differs(self, effect: ReplyDiffers) -> None:
        """A test looks at the replies."""

    def event_differs(self, effect: EventDiffers) -> None:
        """A test looks at the events."""

    def not_resumed(self, effect: NotResumed) -> None:
        """A test looks at the replies."""

    def left(self, effect: ReportLeft) -> None:
        """A test looks at the replies."""

    def gave_up(self, effect: CallGivenUp) -> None:
        """A test looks at the replies."""

    def skipped(self, effect: ReportPoison) -> None:
        """A test looks at the replies."""

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        durable(effect.record.outcome)

    def wake(self, due_us: int, told: Callable[[int], None]) -> None:
        self._deployment.alarms[self._core] = (due_us, told)

    def run(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
        self._deployment._ended[wanted.key] = ended
        self._deployment.externals.append((self._core, wanted))
        self._deployment.external_asked(self._core, wanted)

    def _submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        self._soon(lambda: ended(run()))


def place(slot: int, slots: int) -> int:
    """A first key part that lives on `slot`, for operators partitioned by it (`partition_key=first`)."""
    return next(n for n in range(10_000) if stable_hash(n) % slots == slot)


def first(key: tuple[int, int]) -> int:
    """The partition key of composite keys."""
    return key[0]
