"""A coordinator and its workers by hand: the real cores, log and store in memory, everything delivered by a list.

No time, no sockets, no tasks. The host of these cores: it turns effects into deliveries and back, as the shells do,
writes down what it sees, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from proof import spinning
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    AppendNote,
    Expel,
    ReleaseLog,
    Started,
    StateFound,
    StopEnded,
    StoreManifest,
    TellWorker,
    WorkerJoined,
    WorkerLeaving,
    WorkerLost,
)
from styx.coordinator.events import Effect as CoordinatorEffect
from styx.host.coordinator_host import CoordinatorHost
from styx.host.ports import Identity, Objects
from styx.log.base import Stream
from styx.messages import Request
from styx.model.app import App
from styx.model.context import Context
from styx.model.delivery import delivery_name
from styx.model.limits import Limits
from styx.protocol.frames import ExternalOutcome, Frame
from styx.protocol.messages import Broken, CheckState, Recover, ToCoordinator, ToWorker
from styx.sequencer import epoch_record
from styx.sequencer.epoch_record import EPOCHS_PARTITION, EpochRecord, GenerationMarker, SnapshotNote, Verdicts
from styx.snapshot.manifest import read_beginning
from styx.state.table import NEWEST
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    CheckFurther,
    CoordinatorSaid,
    EmitReplies,
    LoadState,
    Proceed,
    ReportEnds,
    RequestsArrived,
    SendFrame,
    Step,
    StoreSlots,
    SyncReplies,
    Tell,
)
from styx.worker.events import Effect as WorkerEffect
from styx.worker.events import Event as WorkerEvent
from styx.worker.worker import Worker
from tests.protocol import narration
from tests.protocol.links import Links
from tests.protocol.process import Process
from tests.protocol.scripted_app import app, entity, run
from tests.protocol.storage import Storage

DELIVERIES_MAX = 10_000
"""A run longer than this never ends."""
CHECKED_AT_ONCE = 10
HELD = AppendMarker | AppendNote | StoreManifest
"""Effects that a transcript can hold back, and tells of when they are begun."""

TOLD = ("storing", "noting", "loading the version")
"""What is wanted of the store that a transcript tells of; the rest is put in order."""

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_to_coordinator: msgspec.msgpack.Decoder[ToCoordinator] = msgspec.msgpack.Decoder(ToCoordinator)
_frame = msgspec.msgpack.Decoder(Frame)


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
        self.externals: dict[int, tuple[bytes, Callable[[bytes], None]]] = {}
        self.now_us = 0
        self.alarms: dict[str, tuple[int, Callable[[int], None]]] = {}
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
        objects = Objects(self.storage.store, self._submit)
        self.host(objects)
        started, damaged, _ = read_beginning(self.storage.store, self.storage.log)
        self.trace += [f"c: finds {name.rsplit('/')[-1].lstrip('0')} damaged" for name in damaged]
        self.begin(started)
        for worker in sorted(self.processes):
            self.connect(worker)

    def host(self, objects: Objects) -> None:
        """Who takes the coordinator's events, and does its effects."""
        self.protocol = CoordinatorHost(self.coordinator, self, self, objects, self, self.to_coordinator)
        self.take: Callable[[Any], list[Any]] = self.coordinator.step
        self.do: Callable[[Any], None] = self.protocol.do

    def begin(self, started: Started) -> None:
        """The coordinator has read its metadata."""
        self.to_coordinator(started)

    def start_worker(self, worker: int) -> None:
        self.processes[worker] = Process(self, Worker(worker, app, self.n_slots, self.limits))
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

    def leave(self, worker: int) -> None:
        """The worker is to end, and asks to be let go."""
        self.to_coordinator(WorkerLeaving(worker))

    def broken(self, worker: int, peer: int) -> None:
        """The worker has lost its connection to a peer."""
        process = self.processes[worker]
        self._do_worker(process, Tell(Broken(process.core.generation, peer, "the connection is broken")))

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

    def to_coordinator(self, event: Any) -> None:
        effects = self.take(event)
        for index, effect in enumerate(effects):
            if not isinstance(effect, TellWorker):
                self._text, at_once = self.says(effect)
                if at_once:
                    self.trace.append(self._text)
            elif index == 0 or not _same_message(effects[index - 1], effect):
                self._say_to_workers([e for e in effects[index:] if _same_message(e, effect)])
            self.do(effect)

    def says(self, effect: CoordinatorEffect) -> tuple[str, bool]:
        """(an effect in words, whether it is told of when it is wanted); appends and puts can be held."""
        return f"c: {narration.coordinator_effect(effect)}", not isinstance(effect, HELD)

    def to_worker(self, process: Process, event: WorkerEvent) -> None:
        if not process.alive:
            return
        if isinstance(event, CoordinatorSaid):
            self.code_for(process.core, event.message)

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

    def code_for(self, core: Worker, message: ToWorker) -> None:
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

    def say(self, link: str, text: str, generation: int) -> str:
        stale = "" if generation == self.coordinator.generation else f" (generation {generation})"
        held = " [held]" if link in self.links.held else ""
        line = f"{link}: {text}{stale}"
        self.trace.append(line + held)
        return line

    # The coordinator's world: `Members`, `CoordinatorJournal`, `Submit` and `Operator` ------------------------

    def _say_to_workers(self, effects: list[CoordinatorEffect]) -> None:
        """One line for those who are told the same."""
        told = [effect for effect in effects if isinstance(effect, TellWorker)]
        held = [f"w{e.worker}" for e in told if e.worker in self.processes and f"c -> w{e.worker}" in self.links.held]
        self._text = narration.to_worker(told[0].message)
        to = " ".join(f"w{effect.worker}" for effect in told)
        self.trace.append(f"c -> {to}: {self._text}" + (f" [held for {' '.join(held)}]" if held else ""))

    def tell(self, worker: int, message: ToWorker) -> None:
        process = self.processes.get(worker)
        if process is not None and process.connected:
            event = CoordinatorSaid(_to_worker.decode(_encode(message)))
            link = f"c -> {process.name}"
            self.links.put(link, f"{link}: {self._text}", partial(self.to_worker, process, event))

    def expel(self, effect: Expel) -> None:
        """The coordinator has cut the connection; the process lives on and does not know."""
        self.processes[effect.worker].connected = False
        for link in (f"w{effect.worker} -> c", f"c -> w{effect.worker}"):
            self.links.take(link)

    def let_go(self, worker: int) -> None:
        """The transcript says so; a worker that is let go may as well stay."""

    def found(self, effect: StateFound) -> None:
        """The transcript says so."""

    def stopped(self, effect: StopEnded) -> None:
        """The transcript says so."""

    def refuse(self, reason: str) -> None:
        """The transcript says so."""

    def put(self, link: str, text: str, deliver: Callable[[], None]) -> None:
        self.trace.append(text + " [held]" * (link in self.links.held))
        self.links.put(link, text, deliver)

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        self.links.put("c log", self._text, lambda: fenced([]))

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        def deliver() -> None:
            if marker.app_version != self.began[max(self.began)]:
                self.began[marker.snapshot_epoch + 1] = marker.app_version
            self.storage.append(Stream.EPOCHS, EPOCHS_PARTITION, epoch_record.encode(marker))
            self.storage.fence = marker.generation
            appended()

        self.put("c log", self._text, deliver)

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        def deliver() -> None:
            self.storage.append(Stream.EPOCHS, EPOCHS_PARTITION, epoch_record.encode(note))
            appended()

        self.put("c log", self._text, deliver)

    def release_records(self, wanted: ReleaseLog) -> None:
        self.storage.release_records(wanted)

    def _submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        deliver = partial(self.try_store, what, run, ended, gave_up)
        if what.startswith(TOLD):
            self.put("c store", self._text, deliver)
        else:
            self.links.put("c store", self._text, deliver)

    def try_store(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        done, result = self.storage.try_store(run)
        if done:
            ended(cast(T, result))
        else:
            self.trace.append("(the store does not answer)")
            gave_up(OSError(what))

    # A worker's effects ------------------------------------------------------------------------------------

    def _do_worker(self, process: Process, effect: WorkerEffect) -> None:
        """Says it, unless whoever carries it out does, and has it carried out."""
        name = process.name
        if isinstance(effect, AppendEpochRecord | AppendVerdicts):
            record = epoch_record.decode(effect.payload)
            assert isinstance(record, EpochRecord | Verdicts)
            text = narration.epoch_record(record) if isinstance(record, EpochRecord) else narration.verdicts(record)
            process.text = f"{name}: {text}"
        elif isinstance(effect, EmitReplies):
            process.text = f"{name}: replies " + "; ".join(map(narration.reply, effect.replies))
        elif not isinstance(effect, SendFrame | Tell | SyncReplies | ReportEnds):
            process.text = f"{name}: {narration.worker_effect(effect)}"
            if not isinstance(effect, LoadState | StoreSlots | AppendExternal):  # those can be held
                self.trace.append(process.text)
        process.host.do(effect)

    # Input and external calls -------------------------------------------------------------------------------

    def feed(self, slot: int) -> None:
        """Whoever owns the slot gets its new requests, all that are there by then in one piece."""
        for process in self.processes.values():
            if slot in process.fed:
                self.links.put(f"{process.name} input", f"slot {slot}", partial(self._input, process, slot))

    def _input(self, process: Process, slot: int) -> None:
        records = self.storage.log.read(Stream.REQUESTS, slot, process.fed[slot])
        arrivals = list(records)
        if arrivals:
            process.fed[slot] = arrivals[-1].offset + 1
            self.to_worker(process, RequestsArrived(process.core.generation, slot, arrivals))

    def redeliver(self, slot: int) -> None:
        """The log delivers all it has of a slot once more."""
        for process in self.processes.values():
            if slot in process.fed:
                process.fed[slot], _ = self.storage.log.bounds(Stream.REQUESTS, slot)
        self.feed(slot)

    def external_ended(self, tid: int, outcome: ExternalOutcome) -> None:
        """The external function of a transaction has ended."""
        key, ended = self.externals.pop(tid)
        self.outcomes[key] = outcome.value if outcome.value is not None else outcome.error or ("", "")
        ended(_encode(outcome))

    def clock(self, now_us: int) -> None:
        """The workers' clocks show this: alarms that are due ring."""
        self.now_us = now_us
        for name in sorted(self.alarms):
            self.ring(name)

    def ring(self, name: str) -> None:
        """Rings a worker's alarm if it is due."""
        due_us, told = self.alarms[name]
        if due_us <= self.now_us:
            del self.alarms[name]
            self.links.put(f"{name} clock", "", partial(told, self.now_us))

    # What is there -----------------------------------------------------------------------------------------

    def state(self) -> dict[tuple[str, Any], bytes]:
        """Committed state over all connected workers."""
        found: dict[tuple[str, Any], bytes] = {}
        for process in self.processes.values():
            for slot in process.core.slots.values() if process.connected else ():
                found.update(slot.state.entities(NEWEST))
        return found

    @property
    def at_rest(self) -> bool:
        """Every request is answered and nothing is open."""
        cores = [process.core for process in self.processes.values()]
        return (
            sum(delivery_name(reply.request_id) is None for reply in self.storage.replies) == len(self.storage.sent)
            and bool(cores)
            and all(core.reached is Step.IDLE and not core.unfinished and not core.replaying for core in cores)
        )


def script_request(
    request_id: str, key: str, script: str, idempotency_key: str, function: str = run.__name__
) -> Request:
    return Request(request_id, entity.name, key, function, _encode([script]), idempotency_key)


def _same_message(a: CoordinatorEffect, b: CoordinatorEffect) -> bool:
    return isinstance(a, TellWorker) and isinstance(b, TellWorker) and a.message == b.message
