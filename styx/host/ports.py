"""Ports: what a host needs from its surroundings. The embedded engine, a cluster's processes, the simulator and the
transcripts each implement them. A port must decide nothing of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol, TypeVar

from styx.coordinator.control_events import (
    Admit,
    Announce,
    Answer,
    Disconnect,
    HandOut,
    RolloutEnded,
    Serve,
    StandBy,
    TurnAway,
)
from styx.coordinator.events import Expel, ReleaseLog, StateFound, StopEnded
from styx.protocol.messages import ToCoordinator, ToWorker
from styx.sequencer.epoch_record import GenerationMarker, SnapshotNote
from styx.store.base import Store
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    CallGivenUp,
    EmitEvents,
    EmitReplies,
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
Identity = tuple[int, int]
"""What a member appends with in a generation: a producer (id, epoch)."""


ATTEMPTS_MAX: Final = 5
"""How often blocking work is tried before it counts as failed."""


class Submit(Protocol):
    """Blocking work beside the core's thread."""

    def __call__(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None], /
    ) -> None:
        """Runs it, again if it raises `OSError`, `ATTEMPTS_MAX` times in all; its result goes to `ended`, or the last
        of its errors to `gave_up`, on the core's thread. What was begun when the process ends may have been done or
        not.
        """


class Objects(NamedTuple):
    """The object store, and who does its work."""

    store: Store
    submit: Submit


class Members(Protocol):
    """The workers, as the coordinator reaches them."""

    def tell(self, worker: int, message: ToWorker) -> None:
        """Sends to a worker, in order; to one that is gone, nothing."""

    def expel(self, effect: Expel) -> None:
        """Cuts its connection."""

    def let_go(self, worker: int) -> None:
        """It has no slots any more, and may end."""


class CoordinatorJournal(Protocol):
    """The log, as the coordinator writes it. What a coordinator that was replaced appends is refused."""

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        """Has the log refuse what members of older generations append, then tells what this one's append with. A fence
        that is asked for later makes it void: it may never be told then.
        """

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        """Appends it, then tells."""

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        """Appends it, then tells."""

    def release_records(self, wanted: ReleaseLog) -> None:
        """Lets go of records, sooner or later."""


class Links(Protocol):
    """The others, as a worker reaches them."""

    def tell(self, message: ToCoordinator) -> None:
        """Sends to the coordinator, in order."""

    def send(self, effect: SendFrame) -> None:
        """Sends to a peer, in order."""


class LogEnds(NamedTuple):
    """Where streams end, or a little before: of the epochs, of the replies' partitions by slot, and by slot of that
    slot's partition in each log of events, by the event's name.
    """

    epochs: int
    replies: Mapping[int, dict[int, int]]
    events: Mapping[int, dict[str, int]] = {}


class WorkerJournal(Protocol):
    """The log, as a worker writes it in one generation. In a newer one, all that is left of it is refused."""

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        """Appends to the epochs stream, then tells."""

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        """Appends to the externals stream, then tells; of an outcome, the one that counts: the first in the log."""

    def emit(self, effect: EmitReplies) -> None:
        """Appends replies, and answers whoever waits for them."""

    def emit_events(self, effect: EmitEvents) -> None:
        """Appends events to their logs."""

    def mark_events(self, effect: MarkEvents) -> None:
        """Appends a mark to the logs of events."""

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once all replies and events that were emitted so far are durable."""

    def ends(self, wanted: StoreSlots) -> LogEnds:
        """From where a recovery on the state that is to be stored has to read."""


class Recovery(Protocol):
    """How a worker comes by its state, and by requests from there on."""

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        """Loads, then tells, then has the slots' requests arrive."""


class Findings(Protocol):
    """Who tells people of what a worker finds."""

    def ended(self, effect: ReportEnds) -> None:
        """Transactions have ended that left notes."""

    def differs(self, effect: ReplyDiffers) -> None:
        """A replay gives another reply than was given."""

    def event_differs(self, effect: EventDiffers) -> None:
        """A replay does not emit an event as it stands in the event's log."""

    def not_resumed(self, effect: NotResumed) -> None:
        """A replay cannot go on with a transaction behind an external call."""

    def left(self, effect: ReportLeft) -> None:
        """Transactions have left the slot in which their functions were declared to stay."""

    def gave_up(self, effect: CallGivenUp) -> None:
        """A call that was given for later is given up."""

    def skipped(self, effect: ReportPoison) -> None:
        """A request cannot be decoded."""


class External(Protocol):
    """Who runs external functions."""

    def run(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
        """Runs it, then gives its encoded `ExternalOutcome`."""


class Wakes(Protocol):
    """Who wakes a worker that waits for a time."""

    def wake(self, due_us: int, told: Callable[[int], None]) -> None:
        """Tells the time when it is `due_us`, in microseconds since 1970, or earlier; takes the place of the last such
        order.
        """


class WorkerPorts(NamedTuple):
    """All that a worker's effects need."""

    links: Links
    journal: WorkerJournal
    objects: Objects
    recovery: Recovery
    findings: Findings
    external: External
    alarm: Wakes


class Operator(Protocol):
    """Who is told of what people have to know."""

    def found(self, effect: StateFound) -> None:
        """What a check of all state has found."""

    def stopped(self, effect: StopEnded) -> None:
        """An orderly stop is over: the process may end."""

    def refuse(self, reason: str) -> None:
        """The data cannot be served: the process ends."""


class Connections(Protocol):
    """Workers, gateways and operators, as a cluster's control plane reaches them. One that is gone hears nothing."""

    def admit(self, effect: Admit) -> None:
        """Welcomes a worker."""

    def turn_away(self, effect: TurnAway) -> None:
        """Tells a worker why, and ends its connection."""

    def disconnect(self, effect: Disconnect) -> None:
        """Ends a worker's connection, and tells that it is lost."""

    def hand_out(self, effect: HandOut) -> None:
        """Sends a version to a worker, in order with all else that it is told."""

    def stand_by(self, effect: StandBy) -> None:
        """Tells a worker."""

    def serve(self, effect: Serve) -> None:
        """Tells a gateway what it serves."""

    def announce(self, effect: Announce) -> None:
        """Tells gateways and clients which version runs."""

    def answer(self, effect: Answer) -> None:
        """Tells whoever asked."""

    def rollout_ended(self, effect: RolloutEnded) -> None:
        """Counts it."""
