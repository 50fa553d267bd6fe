"""The engine alone: one worker's and the coordinator's protocol cores in the product's hosts, request bytes in, reply
bytes out, no network or disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NoReturn, TypeVar

from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import Event as CoordinatorEvent
from styx.coordinator.events import Expel, ReleaseLog, Started, StateFound, StopEnded, WorkerJoined, WorkerSaid
from styx.host.coordinator_host import CoordinatorHost
from styx.host.ports import Identity, LogEnds, Objects, WorkerPorts
from styx.host.worker_host import WorkerHost
from styx.log.base import Arrival
from styx.messages import ReplyRecord, encode_reply
from styx.model.app import App
from styx.model.limits import Limits
from styx.protocol.messages import ToCoordinator, ToWorker
from styx.sequencer.epoch_record import GenerationMarker, SnapshotNote
from styx.state.slot_state import SlotState
from styx.store.memory import MemoryStore
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
    LoadedSlot,
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

T = TypeVar("T")


class EngineLoop:
    """One worker with all slots. Each append is durable at once. `emitted` counts events."""

    def __init__(self, app: App, n_slots: int = 4, limits: Limits | None = None) -> None:
        self.n_slots = n_slots
        self.emitted = 0
        self.replies: list[bytes] = []
        self.worker = Worker(0, app, n_slots, Limits() if limits is None else limits)
        self._offsets = [0] * n_slots
        self._events: deque[Event] = deque()
        objects, world = Objects(MemoryStore(), _submit), _WorkerWorld(self)
        ports = WorkerPorts(world, world, objects, world, world, world, world)
        self._host = WorkerHost(self.worker, ports, self._events.append)
        core, members = Coordinator(n_slots, snapshot_interval_s=float("inf")), _CoordinatorWorld(self._events)
        self.coordinator = CoordinatorHost(core, members, members, objects, members, self._tell_coordinator)
        self.coordinator.step(Started(0, []))
        self.coordinator.step(WorkerJoined(0))
        self._settle()

    def run(self, requests: list[tuple[int, bytes]]) -> list[bytes]:
        """The encoded replies to (slot, encoded request) pairs, in the order in which they are given."""
        self.replies = []
        arrivals: list[list[Arrival]] = [[] for _ in range(self.n_slots)]
        for slot, payload in requests:
            arrivals[slot].append((self._offsets[slot], 0, payload))
            self._offsets[slot] += 1
        for slot, records in enumerate(arrivals):
            self._events.append(RequestsArrived(self.worker.generation, slot, records))
        self._settle()
        return self.replies

    def _tell_coordinator(self, event: CoordinatorEvent) -> None:
        self.coordinator.step(event)

    def emit(self, replies: list[ReplyRecord]) -> None:
        """Transactions are answered."""
        self.replies.extend(map(encode_reply, replies))

    def _settle(self) -> None:
        worker, events, do = self.worker, self._events, self._host.do
        while events or worker.runnable:
            event = events.popleft() if events else Proceed()
            for effect in worker.step(event):
                do(effect)


class _WorkerWorld:
    """The ports of the micro-benchmark: each append is durable at once, and nothing is stored or recovered."""

    def __init__(self, loop: EngineLoop) -> None:
        self._loop = loop

    def tell(self, message: ToCoordinator) -> None:
        self._loop.coordinator.step(WorkerSaid(0, message))

    def send(self, effect: SendFrame) -> NoReturn:
        raise AssertionError(f"there is no peer {effect.peer}")

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        durable()

    def emit(self, effect: EmitReplies) -> None:
        self._loop.emit(effect.replies)

    def emit_events(self, effect: EmitEvents) -> None:
        self._loop.emitted += len(effect.events)

    def mark_events(self, effect: MarkEvents) -> None:
        """Nobody reads them."""

    def when_durable(self, then: Callable[[], None]) -> None:
        then()

    def ends(self, wanted: StoreSlots) -> LogEnds:
        return LogEnds(0, {each.slot: {} for each in wanted.slots})

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        loaded(
            StateLoaded(
                wanted.generation, -1, 0, {slot: LoadedSlot(SlotState(), 0, []) for slot in wanted.slots}, [], {}
            )
        )

    def ended(self, effect: ReportEnds) -> NoReturn:
        raise AssertionError("the worker takes no notes")

    def differs(self, effect: ReplyDiffers) -> NoReturn:
        raise AssertionError(f"nothing is replayed: {effect}")

    def event_differs(self, effect: EventDiffers) -> NoReturn:
        raise AssertionError(f"nothing is replayed: {effect}")

    def not_resumed(self, effect: NotResumed) -> NoReturn:
        raise AssertionError(f"nothing is replayed: {effect}")

    def left(self, effect: ReportLeft) -> NoReturn:
        raise AssertionError(f"local functions stay in their slots: {effect.functions}")

    def gave_up(self, effect: CallGivenUp) -> NoReturn:
        raise AssertionError(f"nothing is given for later: {effect}")

    def skipped(self, effect: ReportPoison) -> NoReturn:
        raise AssertionError(f"a request cannot be decoded: {effect.reason}")

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> NoReturn:
        raise AssertionError("there are no external functions")

    def run(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> NoReturn:
        raise AssertionError("there are no external functions")

    def wake(self, due_us: int, told: Callable[[int], None]) -> NoReturn:
        raise AssertionError("nothing is given for later")


class _CoordinatorWorld:
    def __init__(self, events: deque[Event]) -> None:
        self._events = events

    def tell(self, worker: int, message: ToWorker) -> None:
        self._events.append(CoordinatorSaid(message))

    def expel(self, effect: Expel) -> NoReturn:
        raise AssertionError(f"the only worker is expelled: {effect.reason}")

    def let_go(self, worker: int) -> NoReturn:
        raise AssertionError("the only worker is let go")

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        fenced([])

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        appended()

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        appended()

    def release_records(self, wanted: ReleaseLog) -> None:
        """Nothing is kept."""

    def found(self, effect: StateFound) -> NoReturn:
        raise AssertionError("nobody wants state checked")

    def stopped(self, effect: StopEnded) -> NoReturn:
        raise AssertionError("nobody stops it")

    def refuse(self, reason: str) -> NoReturn:
        raise AssertionError(f"the data is refused: {reason}")


def _submit(what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None], /) -> None:
    ended(run())
