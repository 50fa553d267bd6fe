"""Ports of both hosts that write down what they are asked for; what it leads to happens when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from styx.coordinator.events import Expel, ReleaseLog, StateFound, StopEnded
from styx.host.ports import Identity, LogEnds
from styx.protocol.messages import ToCoordinator, ToWorker
from styx.sequencer.epoch_record import GenerationMarker, SnapshotNote
from styx.store.memory import MemoryStore
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    CallGivenUp,
    Effect,
    EmitEvents,
    EmitReplies,
    Event,
    EventDiffers,
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

T = TypeVar("T")


class World:
    """`asked` for what, in order; `pending` has what each thing leads to. `given` are the events that came back."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.given: list[Any] = []
        self.pending: list[Callable[..., None]] = []
        self.store = MemoryStore()
        self.store_fails = False

    def happens(self, *arguments: Any) -> list[Any]:
        """What was asked for first has happened; the events that it gives."""
        before = len(self.given)
        self.pending.pop(0)(*arguments)
        return self.given[before:]

    def _asked(self, what: Any, leads_to: Callable[..., None] | None = None) -> None:
        self.asked.append(what)
        if leads_to is not None:
            self.pending.append(leads_to)

    def submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None], /
    ) -> None:
        def do() -> None:
            try:
                if self.store_fails:
                    raise OSError("out of reach")
                result = run()
            except OSError as error:
                gave_up(error)
            else:
                ended(result)

        self._asked(what, do)


class CoordinatorWorld(World):
    """The coordinator's ports."""

    def tell(self, worker: int, message: ToWorker) -> None:
        self._asked((worker, message))

    def expel(self, effect: Expel) -> None:
        self._asked(effect)

    def let_go(self, worker: int) -> None:
        self._asked(("go", worker))

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        self._asked(("fence", generation), fenced)

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        self._asked(marker, appended)

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        self._asked(note, appended)

    def release_records(self, wanted: ReleaseLog) -> None:
        self._asked(wanted)

    def found(self, effect: StateFound) -> None:
        self._asked(effect)

    def stopped(self, effect: StopEnded) -> None:
        self._asked(effect)

    def refuse(self, reason: str) -> None:
        self._asked(reason)


class WorkerWorld(World):
    """The worker's core, which wants `effects` at each step, and its ports."""

    effects: Sequence[Effect] = ()

    def tell(self, message: ToCoordinator) -> None:
        self._asked(message)

    def send(self, effect: SendFrame) -> None:
        self._asked(effect)

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        self._asked(effect, durable)

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        self._asked(effect, durable)

    def emit(self, effect: EmitReplies) -> None:
        self._asked(effect)

    def emit_events(self, effect: EmitEvents) -> None:
        self._asked(effect)

    def mark_events(self, effect: MarkEvents) -> None:
        self._asked(effect)

    def when_durable(self, then: Callable[[], None]) -> None:
        self._asked("replies", then)

    def ends(self, wanted: StoreSlots) -> LogEnds:
        return LogEnds(7, _by_slot((content.slot for content in wanted.slots), {0: 5}))

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        self._asked(wanted, loaded)

    def step(self, event: Event) -> list[Effect]:
        return list(self.effects)

    def ended(self, effect: ReportEnds) -> None:
        self._asked(effect)

    def differs(self, effect: ReplyDiffers) -> None:
        self._asked(effect)

    def event_differs(self, effect: EventDiffers) -> None:
        self._asked(effect)

    def not_resumed(self, effect: NotResumed) -> None:
        self._asked(effect)

    def left(self, effect: ReportLeft) -> None:
        self._asked(effect)

    def gave_up(self, effect: CallGivenUp) -> None:
        self._asked(effect)

    def skipped(self, effect: ReportPoison) -> None:
        self._asked(effect)

    def run(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
        self._asked(wanted, ended)

    def wake(self, due_us: int, told: Callable[[int], None]) -> None:
        self._asked(due_us, told)


def _by_slot(slots: Iterable[int], ends: dict[int, int]) -> dict[int, dict[int, int]]:
    return dict.fromkeys(slots, ends)
