"""Records of a worker in the log. The epoch record says what a worker brought into an epoch, so that a replay forms the
same epoch with the same TIDs; a record of the externals stream says which external call was begun, and how it ended.

One epoch record a worker and epoch, appended while the epoch executes; no reply leaves before every record of the
epoch is durable. An epoch is complete when its records cover every slot; records of an older generation behind a
newer one's marker are void. Paper sections 5.1, 7.2 and 7.5.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

EPOCHS_PARTITION = 0
"""The epochs stream has one partition: its order is total."""


class Resumed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A transaction that had waited for an external function, with the outcomes it now has, by key."""

    tid: int
    outcomes: dict[bytes, bytes]


class SlotBatch(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A slot's part: requests of offsets `first` to before `next`, but for those `passed` over; before them the ones
    in `late`, which an earlier epoch has passed over. `count` were there in all.

    `idle`: nothing of the slot took part, and what was carried stays so. `due` calls of its agendas were taken behind
    the requests; of those that were due at `now_us`, in microseconds since 1970.
    """

    slot: int
    first: int
    next: int
    count: int
    resumed: list[Resumed] = []
    late: list[int] = []
    passed: list[int] = []
    idle: bool = False
    due: int = 0
    now_us: int = 0


class EpochRecord(msgspec.Struct, array_like=True, frozen=True, tag=1, gc=False):
    """One worker's part of one epoch; `counter` is where every slot's counter stood at its start."""

    generation: int
    epoch: int
    counter: int
    batches: list[SlotBatch]


class GenerationMarker(msgspec.Struct, array_like=True, frozen=True, tag=2, gc=False):
    """A new generation began here, on the snapshot of `snapshot_epoch` (-1: none), with this version of the app."""

    generation: int
    snapshot_epoch: int
    app_version: int = 0


class SnapshotNote(msgspec.Struct, array_like=True, frozen=True, tag=3, gc=False):
    """The snapshot of `epoch` is complete, and its coordinator was not yet fenced when it said so. Replays skip it."""

    generation: int
    epoch: int


class Verdicts(msgspec.Struct, array_like=True, frozen=True, tag=4, gc=False):
    """Outcomes of an epoch that time has decided, since a function ran too long: a replay must not ask time again.

    `ended` transactions ended in these errors (code, type, message), or (None) left the epoch to come back in
    sequential mode; no replay runs them. Outcomes of local transactions are of phase 3. Those in `unlocked` took no
    part in its lock phase, and were carried.
    """

    generation: int
    epoch: int
    ended: list[tuple[int, tuple[str, str, str] | None]]
    unlocked: list[int]


LogEntry = EpochRecord | GenerationMarker | SnapshotNote | Verdicts


class EpochPlan(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An epoch to replay: batches by slot, and its verdicts. `last`: nothing shows that a later epoch was begun. `open`
    are slots of which nothing shows that their worker began one: their local transactions may not have ended.
    """

    epoch: int
    counter: int
    batches: dict[int, SlotBatch]
    ended: dict[int, tuple[str, str, str] | None] = {}
    unlocked: list[int] = []
    last: bool = False
    open: list[int] = []


_decoder: msgspec.msgpack.Decoder[LogEntry] = msgspec.msgpack.Decoder(LogEntry)
_encoder = msgspec.msgpack.Encoder()


def encode(record: LogEntry) -> bytes:
    """The record for the epochs stream."""
    return _encoder.encode(record)


def decode(data: bytes) -> LogEntry:
    """Raises `msgspec.DecodeError` for garbage."""
    return _decoder.decode(data)


def replay_plan(
    records: Iterable[LogEntry],
    n_slots: int,
    after_epoch: int,
    after_generation: int,
    generation: int,
) -> list[EpochPlan]:
    """The complete epochs after the snapshot of `after_epoch` (taken in `after_generation`), up to `generation`'s
    marker.

    `records` are the epochs stream in log order, from any point at or before the first record of `after_epoch` + 1.
    """
    plans: list[EpochPlan] = []
    current = after_generation
    gathered: dict[int, SlotBatch] = {}
    gathered_epoch = begun = -1
    begun_by: dict[int, int] = {}
    verdicts: list[Verdicts] = []
    for record in records:
        if isinstance(record, SnapshotNote):
            continue
        if record.generation > current:
            # What the older generation left incomplete has given no reply: its requests are sequenced anew.
            current, gathered, gathered_epoch = record.generation, {}, -1
            # Verdicts of an epoch that was complete hold for all that follows, whichever generation has run it again.
            verdicts = [verdict for verdict in verdicts if verdict.epoch <= after_epoch + len(plans)]
        if isinstance(record, GenerationMarker):
            if record.generation == generation:
                break
            continue
        if record.generation < current:
            continue
        if isinstance(record, Verdicts):
            verdicts.append(record)
            continue
        begun = max(begun, record.epoch)  # its worker had ended the one before
        begun_by.update((batch.slot, record.epoch) for batch in record.batches)
        if record.epoch <= after_epoch + len(plans):
            continue
        if record.epoch != gathered_epoch:
            gathered, gathered_epoch = {}, record.epoch
        gathered.update({batch.slot: batch for batch in record.batches})
        if len(gathered) == n_slots and record.epoch == after_epoch + len(plans) + 1:
            plans.append(EpochPlan(record.epoch, record.counter, gathered))
            gathered, gathered_epoch = {}, -1
    if plans:  # the records of the next epoch show that all others are ended
        last = plans[-1]
        plans[-1] = replace(last, open=[slot for slot in last.batches if begun_by[slot] <= last.epoch])
    return [_with_verdicts(plan, verdicts, plan.epoch >= begun) for plan in plans]


def _with_verdicts(plan: EpochPlan, verdicts: list[Verdicts], last: bool) -> EpochPlan:
    own = [verdict for verdict in verdicts if verdict.epoch == plan.epoch]
    ended = {tid: outcome for verdict in own for tid, outcome in verdict.ended}
    unlocked = sorted({tid for verdict in own for tid in verdict.unlocked})
    return EpochPlan(plan.epoch, plan.counter, plan.batches, ended, unlocked, last, plan.open)


class ExternalRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record of the stream: the intent to run a call, or (with the encoded `ExternalOutcome`) its end."""

    tid: int
    key: bytes
    outcome: bytes | None = None


_encode_external = msgspec.msgpack.Encoder().encode
_external_decoder = msgspec.msgpack.Decoder(ExternalRecord)


def encode_external(record: ExternalRecord) -> bytes:
    """The record for the externals stream."""
    return _encode_external(record)


def decode_external(data: bytes) -> ExternalRecord:
    """Raises `msgspec.DecodeError` for garbage."""
    return _external_decoder.decode(data)
