"""A coordinator and its workers by hand: the real cores, log and store in memory, everything delivered by a list.

No time, no sockets, no tasks. The host of these cores: it turns effects into deliveries and back, as the shells do,
writes down what it sees, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from styx.app import App
from styx.context import Context
from styx.coordinator import metadata
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    DeleteObjects,
    Expel,
    ManifestStored,
    MarkerAppended,
    ReleaseLog,
    StoreManifest,
    SweepObjects,
    TellWorker,
    WorkerJoined,
    WorkerLost,
    WorkerSaid,
)
from styx.coordinator.events import Effect as CoordinatorEffect
from styx.coordinator.events import Event as CoordinatorEvent
from styx.limits import Limits
from styx.log import Stream
from styx.messages import Request
from styx.protocol import Broken, CheckState, Recover, ToCoordinator, ToWorker
from styx.sequencer import epoch_record
from styx.sequencer.arrival import Arrival
from styx.sequencer.epoch_record import EPOCHS_PARTITION, EpochRecord, GenerationMarker, Verdicts
from styx.testing import spinning
from styx.worker.events import (
    AppendEpochRecord,
    AppendVerdicts,
    CheckFurther,
    CoordinatorSaid,
    EmitReplies,
    ExternalEnded,
    FrameArrived,
    LoadState,
    Proceed,
    RecordDurable,
    RequestsArrived,
    RunExternal,
    SendFrame,
    SlotPartsStored,
    StateLoaded,
    StateUnusable,
    StoreSlots,
    Tell,
)
from styx.worker.events import Effect as WorkerEffect
from styx.worker.events import Event as WorkerEvent
from styx.worker.messages import ExternalOutcome, Frame
from styx.worker.recovery import Unusable, load_state
from styx.worker.snapshot_io import store_slots
from styx.worker.step import Step
from styx.worker.worker import Worker
from tests.protocol import narration
from tests.protocol.links import Links
from tests.protocol.scripted_app import app, entity, run
from tests.protocol.storage import Storage

DELIVERIES_MAX = 10_000
"""A run longer than this never ends."""
CHECKED_AT_ONCE = 10

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_to_coordinator: msgspec.msgpack.Decoder[ToCoordinator] = msgspec.msgpack.Decoder(ToCoordinator)
_frame = msgspec.msgpack.Decoder(Frame)


class Process:
    """A worker process; `connected` to the coordinator or not. A restart is another one."""

    def __init__(self, core: Worker) -> None:
        self.core = core
        self.name = f"w{core.id}"
        self.alive = True
        self.connected = False
        self.proceeding = False
        self.checking = False
        self.fed: dict[int, int] = {}


class Cluster:
    """`trace` collects what happens; whoever reads it empties it."""

    def __init__(
        self, workers: int, slots: int, limits: Limits, snapshot_interval_s: float, wanted: int | None
    ) -> None:
        self.n_slots = slots
        self.limits = limits
        self.snapshot_interval_s = snapshot_interval_s
        self.workers_expected = wanted
        self.storage = Storage(slots)
        self.links = Links()
        self.trace: list[str] = []
        self.processes: dict[int, Process] = {}
        self.versions: dict[int, App] = {}
        self.began = {0: 0}
        """Versions by the first epoch that ran on them."""
        self.externals: dict[int, tuple[Process, RunExternal]] = {}
        self.outcomes: dict[bytes, bytes | tuple[str, str]] = {}
        self.start_coordinator()
        for worker in range(workers):
            self.start_worker(worker)

    # Processes ---------------------------------------------------------------------------------------------

    def start_coordinator(self) -> None:
        """A new coordinator reads its metadata; living workers connect to it."""
        self.links.lose("c")
        interval_s = self.snapshot_interval_s
        self.coordinator = Coordinator(self.n_slots, self.workers_expected, interval_s)
        manifests, damaged = metadata.read_manifests(self.storage.store)
        self.trace += [f"c: finds {name.rsplit('/')[-1].lstrip('0')} damaged" for name in damaged]
        self.to_coordinator(metadata.beginning(manifests, metadata.read_generations(self.storage.log))[0])
        for worker in sorted(self.processes):
            self.connect(worker)

    def start_worker(self, worker: int) -> None:
        self.processes[worker] = Process(Worker(worker, app, self.n_slots, self.limits))
        self.connect(worker)

    def connect(self, worker: int) -> None:
        self.processes[worker].connected = True
        self.to_coordinator(WorkerJoined(worker, f"w{worker}"))

    def disconnect(self, worker: int) -> None:
        """The connection breaks; the process lives on and does not know."""
        self.processes[worker].connected = False
        for link in (f"w{worker} -> c", f"c -> w{worker}"):
            self.links.take(link)
        self.to_coordinator(WorkerLost(worker))

    def broken(self, worker: int, peer: int) -> None:
        """The worker has lost its connection to a peer."""
        process = self.processes[worker]
        self._do_worker(process, Tell(Broken(process.core.generation, peer, "the connection is broken")))

    def _expelled(self, worker: int) -> None:
        """The coordinator has cut the connection; the process lives on and does not know."""
        self.processes[worker].connected = False
        for link in (f"w{worker} -> c", f"c -> w{worker}"):
            self.links.take(link)

    def kill(self, worker: int) -> None:
        """The process ends; the coordinator is told."""
        process = self.processes.pop(worker)
        process.alive = False
        process.core.executor.end()
        self.links.lose(process.name)
        self.to_coordinator(WorkerLost(worker))

    # Deliveries --------------------------------------------------------------------------------------------

    def deliveries(self) -> Iterator[None]:
        """Delivers until nothing that may arrive is left."""
        for _ in range(DELIVERIES_MAX):
            item = self.links.next()
            if item is None:
                return
            item.deliver()
            yield
        raise AssertionError("the cluster never comes to rest")

    def release(self, link: str) -> None:
        """What a held link kept back arrives now, in order."""
        self.links.held.discard(link)
        for item in self.links.take(link):
            self.trace.append(f"(arrives) {item.text}")
            item.deliver()

    def to_coordinator(self, event: CoordinatorEvent) -> None:
        effects = self.coordinator.step(event)
        for index, effect in enumerate(effects):
            if not isinstance(effect, TellWorker):
                self._do_coordinator(effect)
            elif index == 0 or not _same_message(effects[index - 1], effect):
                same = [e for e in effects[index:] if isinstance(e, TellWorker) and _same_message(e, effect)]
                self._tell_workers(same)

    def to_worker(self, process: Process, event: WorkerEvent) -> None:
        if not process.alive:
            return
        if isinstance(event, CoordinatorSaid):
            self._code(process.core, event.message)

        def ends(context: Context, endless: bool) -> bool:
            running = process.core.executor.running
            assert running.invocation is context
            running.cut = True
            self.trace.append(f"{process.name}: (the function on {context.key} runs too long)")
            return True

        spinning.watched_by(ends)
        effects = process.core.step(event)
        spinning.watched_by(None)
        for effect in effects:
            self._do_worker(process, effect)
        if process.core.runnable and not process.proceeding:
            process.proceeding = True
            self.links.put(f"{process.name} runs", "", partial(self._proceed, process))

        if process.core.checking and not process.checking:
            process.checking = True
            self.links.put(f"{process.name} checks", "", partial(self._check, process))

    def _code(self, core: Worker, message: ToWorker) -> None:
        """The code that a message needs is there before it."""
        if isinstance(message, Recover):
            core.run_app(self.versions.get(message.app_version, app))
        elif isinstance(message, CheckState) and message.version is not None:
            core.offer_app(message.version, self.versions.get(message.version, app))

    def _check(self, process: Process) -> None:
        process.checking = False
        self.to_worker(process, CheckFurther(CHECKED_AT_ONCE))

    def _proceed(self, process: Process) -> None:
        process.proceeding = False
        self.to_worker(process, Proceed())

    def _say(self, link: str, text: str, generation: int) -> str:
        stale = "" if generation == self.coordinator.generation else f" (generation {generation})"
        held = " [held]" if link in self.links.held else ""
        line = f"{link}: {text}{stale}"
        self.trace.append(line + held)
        return line

    # The coordinator's effects -----------------------------------------------------------------------------

    def _tell_workers(self, effects: list[TellWorker]) -> None:
        message = effects[0].message
        receivers = [self.processes[e.worker] for e in effects if e.worker in self.processes]
        held = [p.name for p in receivers if f"c -> {p.name}" in self.links.held]
        text = narration.to_worker(message)
        to = " ".join(f"w{effect.worker}" for effect in effects)
        self.trace.append(f"c -> {to}: {text}" + (f" [held for {' '.join(held)}]" if held else ""))
        data = _encode(message)
        for process in receivers:
            if process.connected:
                event = CoordinatorSaid(_to_worker.decode(data))
                link = f"c -> {process.name}"
                self.links.put(link, f"{link}: {text}", partial(self.to_worker, process, event))

    def _do_coordinator(self, effect: CoordinatorEffect) -> None:
        text = f"c: {narration.coordinator_effect(effect)}"
        if isinstance(effect, AppendMarker):
            self._put("c log", text, partial(self._marker, effect))
        elif isinstance(effect, StoreManifest):
            self._put("c store", text, partial(self._manifest, effect))
        else:
            self.trace.append(text)
        if isinstance(effect, Expel):
            self._expelled(effect.worker)
        if isinstance(effect, DeleteManifest | DeleteObjects | SweepObjects | ReleaseLog):
            self.storage.clean(effect)

    def _put(self, link: str, text: str, deliver: Callable[[], None]) -> None:
        self.trace.append(text + " [held]" * (link in self.links.held))
        self.links.put(link, text, deliver)

    def _marker(self, effect: AppendMarker) -> None:
        marker = GenerationMarker(effect.generation, effect.snapshot_epoch, effect.app_version)
        if effect.app_version != self.began[max(self.began)]:
            self.began[effect.snapshot_epoch + 1] = effect.app_version
        self.storage.append(Stream.EPOCHS, EPOCHS_PARTITION, epoch_record.encode(marker))
        self.storage.fence = effect.generation
        self.to_coordinator(MarkerAppended(effect.generation))

    def _manifest(self, effect: StoreManifest) -> None:
        manifest = effect.manifest

        def write() -> bool:
            metadata.write_manifest(self.storage.store, manifest)
            return True

        stored = self._try_store(write) is not None
        self.to_coordinator(ManifestStored(manifest.generation, manifest.epoch, stored))

    def _try_store(self, operation: Callable[[], T]) -> T | None:
        result = self.storage.try_store(operation)
        self.trace += ["(the store does not answer)"] if result is None else []
        return result

    # A worker's effects ------------------------------------------------------------------------------------

    def _do_worker(self, process: Process, effect: WorkerEffect) -> None:
        name, generation = process.name, process.core.generation
        if isinstance(effect, SendFrame):
            self._send(process, effect)
        elif isinstance(effect, Tell):
            link = f"{name} -> c"
            line = self._say(link, narration.to_coordinator(effect.message), narration.generation_of(effect.message))
            if process.connected:
                event = WorkerSaid(process.core.id, _to_coordinator.decode(_encode(effect.message)))
                self.links.put(link, line, partial(self.to_coordinator, event))
        elif isinstance(effect, AppendEpochRecord | AppendVerdicts):
            record = epoch_record.decode(effect.payload)
            assert isinstance(record, EpochRecord | Verdicts)
            text = narration.epoch_record(record) if isinstance(record, EpochRecord) else narration.verdicts(record)
            line = f"{name}: {text}"
            self._put(f"{name} log", line, partial(self._record, process, effect))
        elif isinstance(effect, EmitReplies):
            line = f"{name}: replies " + "; ".join(map(narration.reply, effect.replies))
            self._put(f"{name} replies", line, partial(self._emit, name, generation, effect))
        else:
            self._do_io(process, effect)

    def _do_io(self, process: Process, effect: WorkerEffect) -> None:
        name = process.name
        line = f"{name}: {narration.worker_effect(effect)}"
        if isinstance(effect, LoadState):
            self._put(f"{name} load", line, partial(self._load, process, effect))
        elif isinstance(effect, StoreSlots):
            deliver = partial(self._store, process, effect, *self.storage.ends(each.slot for each in effect.slots))
            self._put(f"{name} store", line, deliver)
        else:
            self.trace.append(line)
            if isinstance(effect, RunExternal):
                self.externals[effect.tid] = (process, effect)

    def _send(self, process: Process, effect: SendFrame) -> None:
        frame = effect.frame
        link = f"{process.name} -> w{effect.peer}"
        lines = [
            self._say(link, f"epoch {frame.epoch} {narration.worker_message(message)}", frame.generation)
            for message in frame.messages
        ]
        peer = self.processes.get(effect.peer)
        if peer is not None:
            event = FrameArrived(_frame.decode(_encode(frame)))
            self.links.put(link, "; ".join(lines), partial(self.to_worker, peer, event))

    def _record(self, process: Process, effect: AppendEpochRecord | AppendVerdicts) -> None:
        self.storage.append(Stream.EPOCHS, EPOCHS_PARTITION, effect.payload)
        self.to_worker(process, RecordDurable(effect.generation, effect.epoch))

    def _emit(self, name: str, generation: int, effect: EmitReplies) -> None:
        if not self.storage.append_replies(effect.slot, effect.replies, generation):
            self.trace.append(f"(the log refuses {name}'s replies: they are of generation {generation})")

    def _load(self, process: Process, wanted: LoadState) -> None:
        answer: StateLoaded | StateUnusable
        try:
            answer = load_state(wanted, self.n_slots, self.storage.log, self.storage.store)
        except Unusable as error:
            answer = StateUnusable(wanted.generation, str(error))
        self.to_worker(process, answer)
        if isinstance(answer, StateLoaded) and process.alive:
            process.fed = {slot: part.next_offset for slot, part in answer.slots.items()}
            for slot in process.fed:
                self.feed(slot)

    def _store(self, process: Process, wanted: StoreSlots, epochs: int, replies: dict[int, dict[int, int]]) -> None:
        parts = self._try_store(lambda: store_slots(wanted, epochs, replies, self.storage.store))
        self.to_worker(process, SlotPartsStored(wanted.generation, wanted.epoch, parts))

    # Input and outside calls -------------------------------------------------------------------------------

    def feed(self, slot: int) -> None:
        """Whoever owns the slot gets its new requests, all that are there by then in one piece."""
        for process in self.processes.values():
            if slot in process.fed:
                self.links.put(f"{process.name} input", f"slot {slot}", partial(self._input, process, slot))

    def _input(self, process: Process, slot: int) -> None:
        records = self.storage.log.read(Stream.REQUESTS, slot, process.fed[slot])
        arrivals = [Arrival(*record) for record in records]
        if arrivals:
            process.fed[slot] = arrivals[-1].offset + 1
            self.to_worker(process, RequestsArrived(slot, arrivals))

    def redeliver(self, slot: int) -> None:
        """The log delivers all it has of a slot once more."""
        for process in self.processes.values():
            if slot in process.fed:
                process.fed[slot], _ = self.storage.log.bounds(Stream.REQUESTS, slot)
        self.feed(slot)

    def external_ended(self, tid: int, outcome: ExternalOutcome) -> None:
        """The outside function of a transaction has ended and is logged; its worker hears of it."""
        process, effect = self.externals.pop(tid)
        self.outcomes[effect.key] = outcome.value if outcome.value is not None else outcome.error or ("", "")
        event = ExternalEnded(effect.generation, tid, effect.root_slot, effect.key, _encode(outcome))
        self.to_worker(process, event)

    # What is there -----------------------------------------------------------------------------------------

    def state(self) -> dict[tuple[str, Any], bytes]:
        """Committed state over all connected workers."""
        found: dict[tuple[str, Any], bytes] = {}
        for process in self.processes.values():
            for slot in process.core.slots.values() if process.connected else ():
                found.update(slot.user_state())
        return found

    @property
    def at_rest(self) -> bool:
        """Every request is answered and nothing is open."""
        cores = [process.core for process in self.processes.values()]
        return (
            len(self.storage.replies) == len(self.storage.sent)
            and bool(cores)
            and all(core.reached is Step.IDLE and not core.unfinished and not core.replaying for core in cores)
        )


def script_request(request_id: str, key: str, script: str, idempotency_key: str) -> Request:
    return Request(request_id, entity.name, key, run.__name__, _encode([script]), idempotency_key)


def _same_message(a: CoordinatorEffect, b: CoordinatorEffect) -> bool:
    return isinstance(a, TellWorker) and isinstance(b, TellWorker) and a.message == b.message
