"""A worker's interface: its events (inputs), its effects (outputs), and the steps that it goes through.

The worker's protocol is `step(event) -> effects`; its host turns the activity of sockets, logs and stores into events,
and effects into I/O. Events and effects never leave the process, so they are never encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from styx.log.base import Arrival
from styx.messages import EventRecord, ReplyRecord
from styx.model.app import App
from styx.model.limits import Limits
from styx.protocol.frames import Frame
from styx.protocol.manifest import Manifest, PassedOver, PendingTransaction, SlotPart
from styx.protocol.messages import NOTHING, Reached, ToCoordinator, ToWorker
from styx.sequencer.epoch_record import EpochPlan, ExternalRecord
from styx.state.slot_state import Declared, Delta, SlotState


class Step(Enum):
    """The step that a worker is in. Each value is a sentence for people."""

    LOADING = "it has no state: a generation has ended and the next one's is being loaded"
    LOADED = "it has its state and waits until all workers have theirs"
    IDLE = "no epoch is open"
    EXECUTING = "functions run, or others' do; barrier 1 is ahead or reported"
    VALIDATING = "conflicts are found, barrier 2 is ahead; they are reported when the epoch record is durable"
    LOCKING = "a lock-phase round runs or is reported"
    LOCAL = "all other transactions are decided; local ones run, or a verdict on one of them is not yet durable"
    HOLDING = "no epoch begins until the snapshot that is being stored has ended"


# Events --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RequestsArrived:
    """Records of a slot's requests stream, in log order. With `more`, requests of another slot follow for the same
    epoch.

    The host fetched them for `generation`, from the offset where the generation began.
    """

    generation: int
    slot: int
    arrivals: Sequence[Arrival]
    more: bool = False


@dataclass(slots=True)
class FrameArrived:
    """A peer's frame; frames of one peer arrive in the order they were sent."""

    frame: Frame


@dataclass(slots=True)
class CoordinatorSaid:
    """The coordinator's message, in the order it was sent."""

    message: ToWorker


@dataclass(slots=True)
class RecordDurable:
    """A record asked for by `AppendEpochRecord` or `AppendVerdicts` is on disk."""

    generation: int
    epoch: int


@dataclass(slots=True)
class Proceed:
    """The host has polled the network: run the next slice."""


@dataclass(slots=True)
class LogLags:
    """Whether too many bytes wait to be written to the log. While they do, no epoch takes new requests."""

    lags: bool


@dataclass(slots=True)
class Halted:
    """Whether the worker is halted, because another version of the app is to begin. While it is, only recorded epochs
    run, and no unfinished transaction continues.
    """

    halted: bool


@dataclass(slots=True)
class ClockTold:
    """What the host's clock shows, in microseconds since 1970: the answer to `WakeAt`, and it may come at any time."""

    now_us: int


@dataclass(slots=True)
class CheckFurther:
    """Check up to this number of further entities now, beside the epochs."""

    entities: int


@dataclass(slots=True)
class LoadedSlot:
    """A slot from a snapshot. Its state may be converted already for the version of the app that begins on it."""

    state: SlotState
    next_offset: int
    pending: list[PendingTransaction]
    passed_over: PassedOver | None = None


class StandingEvent(NamedTuple):
    """An event that stands in its log: its slot, its name, and the digest of its JSON."""

    slot: int
    event: str
    digest: bytes


@dataclass(slots=True)
class StateLoaded:
    """The answer to `LoadState`. `answered` has the replies that are already in the replies stream, or their digests,
    by sequence TID; they reach as far as `answered_until` (epoch, phase). `outcomes` has the outcomes of external calls
    by key, and never changes later. `aside` are the places (slot, offset) of requests that an operator has set aside.
    `emitted` are the events that stand already in the logs of these slots, by id.
    """

    generation: int
    epoch: int
    counter: int
    slots: dict[int, LoadedSlot]
    plans: list[EpochPlan]
    answered: dict[int, bytes | int]
    answered_until: Reached = NOTHING
    outcomes: Mapping[bytes, bytes] = field(default_factory=dict)
    aside: AbstractSet[tuple[int, int]] = frozenset()
    emitted: dict[str, StandingEvent] = field(default_factory=dict)


@dataclass(slots=True)
class StateUnusable:
    """The answer to `LoadState` if an object of the snapshot is missing or damaged."""

    generation: int
    reason: str


@dataclass(slots=True)
class SlotPartsStored:
    """The answer to `StoreSlots`; `parts` is None if the store has failed in spite of repetitions."""

    generation: int
    epoch: int
    parts: list[SlotPart] | None


@dataclass(slots=True)
class RepliesDurable:
    """The answer to `SyncReplies`: every reply that was emitted before it is in the replies stream."""

    generation: int
    epoch: int


@dataclass(slots=True)
class EpochWanted:
    """Begin an epoch up to this one as soon as none is open, with whatever there is: somebody waits for its record."""

    generation: int
    epoch: int


@dataclass(slots=True)
class ExternalAppended:
    """The answer to `AppendExternal`: the record is durable. Of several outcomes of one call, it has the
    log's first.
    """

    generation: int
    key: bytes
    outcome: bytes | None


@dataclass(slots=True)
class ExternalReturned:
    """The answer to `RunExternal`: the external function's encoded `ExternalOutcome`."""

    generation: int
    key: bytes
    outcome: bytes


Event = (
    RequestsArrived
    | FrameArrived
    | CoordinatorSaid
    | RecordDurable
    | Proceed
    | LogLags
    | Halted
    | ClockTold
    | CheckFurther
    | StateLoaded
    | StateUnusable
    | SlotPartsStored
    | RepliesDurable
    | EpochWanted
    | ExternalAppended
    | ExternalReturned
)

# Effects -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SendFrame:
    """Send to a peer, in order."""

    peer: int
    frame: Frame


@dataclass(slots=True)
class Tell:
    """Send to the coordinator, in order."""

    message: ToCoordinator


@dataclass(slots=True)
class AppendEpochRecord:
    """Append to the epochs stream and answer `RecordDurable`."""

    generation: int
    epoch: int
    payload: bytes


@dataclass(slots=True)
class AppendVerdicts:
    """Append the watchdog's verdicts to the epochs stream, and answer `RecordDurable`."""

    generation: int
    epoch: int
    payload: bytes


@dataclass(slots=True)
class EmitReplies:
    """Append to a slot's replies stream and answer the callers; the records that the replies depend on are durable."""

    slot: int
    replies: list[ReplyRecord]


@dataclass(slots=True)
class EmitEvents:
    """Append to the logs of a slot's events, in this order, which is the serial one. The records that they depend on
    are durable.
    """

    slot: int
    events: list[EventRecord]


@dataclass(slots=True)
class MarkEvents:
    """Append a mark to each partition of this worker's slots in each log of events: all events up to `epoch` were given
    before.
    """

    epoch: int


@dataclass(slots=True)
class EventDiffers:
    """A replay emits another value than stands in the event's log, or nothing there (`record` is None). What stands
    there stays.
    """

    slot: int
    event: str
    id: str
    record: EventRecord | None


@dataclass(slots=True)
class ReportEnds:
    """Write the worker's notes to the process's log. It comes before the replies, because a recovery does not repeat
    the notes of a transaction whose reply is in the log.
    """


@dataclass(slots=True)
class ReplyDiffers:
    """A replay's reply differs from the one in the replies stream, which stays valid.

    `request` and `answered` are as they stand in the log; `answered` is None if only a digest was kept.
    """

    slot: int
    reply: ReplyRecord
    request: bytes
    answered: ReplyRecord | None = None


@dataclass(slots=True)
class NotResumed:
    """A recorded epoch resumes this transaction after an external call, but in the replay it waits for no such call."""

    slot: int
    tid: int


@dataclass(slots=True)
class Converting:
    """State is to be converted to the types of `app`. `held` is the state that the worker keeps, which stays
    unchanged.
    """

    app: App
    limits: Limits
    held: Mapping[int, SlotState]


@dataclass(slots=True)
class LoadState:
    """Load these slots from the snapshot and the log, then feed their requests from `next_offset` on.

    The worker keeps the state of the slots in `held`, which equals the snapshot's. `converting` is set if another
    version of the app made the snapshot. `indexes` are those of the app's tables, of which loading makes what it can.
    """

    generation: int
    slots: list[int]
    manifest: Manifest | None
    held: AbstractSet[int] = frozenset()
    converting: Converting | None = None
    indexes: Declared = field(default_factory=dict, compare=False)
    n_slots: int = field(default=0, compare=False)


@dataclass(slots=True)
class SlotContent:
    """The content of a slot for a snapshot. `delta` has the changes since the last snapshot, or all state (`whole`)."""

    slot: int
    delta: Delta
    whole: bool
    next_offset: int
    pending: list[PendingTransaction]
    passed_over: PassedOver | None = None


@dataclass(slots=True)
class StoreSlots:
    """Store the contents of the worker's slots for the snapshot after `epoch`, in the background."""

    generation: int
    epoch: int
    worker: int
    slots: list[SlotContent]


@dataclass(slots=True)
class SyncReplies:
    """Answer `RepliesDurable` once every reply that was emitted so far is durable."""

    generation: int
    epoch: int


@dataclass(slots=True)
class AppendExternal:
    """Append to the slot's externals stream, and answer `ExternalAppended`."""

    generation: int
    slot: int
    record: ExternalRecord


@dataclass(slots=True)
class RunExternal:
    """Run an external function, and answer `ExternalReturned`."""

    generation: int
    tid: int
    root_slot: int
    key: bytes
    function: Callable[..., Any]
    args: tuple[Any, ...] = field(default=())


@dataclass(slots=True)
class WakeAt:
    """Answer `ClockTold` when the clock shows `due_us`, in microseconds since 1970, or some seconds after a part of the
    wait. It takes the place of an earlier one.
    """

    due_us: int


@dataclass(slots=True)
class CallGivenUp:
    """A call that an entity of `giver` gave for later has aborted at its last attempt, with this (type, message). If
    `function` is `EXPIRE_FUNCTION`, a value or row of that entity could not be deleted, and that is tried again. So
    many of the oldest dead calls of its partition were `dropped`, because there were too many.
    """

    giver: str
    giver_key: Any
    operator: str
    function: str
    key: Any
    attempts: int
    error: tuple[str, str]
    dropped: int = 0


@dataclass(slots=True)
class ReportLeft:
    """Transactions whose functions are declared as local have left their slots. `functions` counts them by (operator,
    function).
    """

    functions: dict[tuple[str, str], int]


@dataclass(slots=True)
class ReportPoison:
    """A requests record that cannot be decoded was skipped."""

    slot: int
    offset: int
    reason: str


Effect = (
    SendFrame
    | Tell
    | AppendEpochRecord
    | AppendVerdicts
    | EmitReplies
    | EmitEvents
    | MarkEvents
    | EventDiffers
    | ReportEnds
    | ReplyDiffers
    | NotResumed
    | LoadState
    | StoreSlots
    | SyncReplies
    | AppendExternal
    | RunExternal
    | WakeAt
    | CallGivenUp
    | ReportLeft
    | ReportPoison
)
