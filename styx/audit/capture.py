"""The capture of a case: what lies between two snapshots is read once, and copied.

The place is only read, piece by piece, so nothing of the deployment waits for it. What it releases meanwhile makes the
case incomplete, and it is taken anew. Blocks. Paper sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from styx import set_aside
from styx.audit.case import (
    PLANS,
    Case,
    CopiedObjects,
    events_name,
    replies_name,
    requests_name,
    write_case,
)
from styx.audit.place import Place
from styx.audit.records import Budget, RecordWriter
from styx.audit.verdict import CannotJudge
from styx.log.base import LogReader, LogTruncated, Record, Stream
from styx.protocol.manifest import Manifest
from styx.sequencer.epoch_record import (
    EPOCHS_PARTITION,
    EpochPlan,
    EpochRecord,
    GenerationMarker,
    LogEntry,
    decode,
    replay_plan,
)
from styx.store.base import NotFound

PLANNED_RECORDS: Final = 4096
"""Epoch records that are put together to epochs at once; twice as many while they make less than two."""
_NEVER: Final = -1
"""No generation's number: all records count."""

encode = msgspec.msgpack.Encoder().encode


def capture(
    place: Place, before: Manifest | None, after: Manifest, directory: Path, objects: CopiedObjects, budget: Budget
) -> Case:
    """Copies the case to the empty `directory`, and its snapshots to `objects`. Raises `CannotJudge`, `passing` if the
    place has released something of it meanwhile, and `OSError`.
    """
    try:
        with RecordWriter(directory, budget) as writer:
            epochs, workers = _copy_epochs(place, before, after, writer)
            _copy_requests(place.log, before, after, writer)
            _copy_replies(place, before, after, writer)
            events, notes = place.copy_events(before, after, _event_writer(writer))
        for manifest in (before, after):
            if manifest is not None:
                objects.copy(place.store, manifest, budget)
        aside = sorted(set_aside.read(place.store))
    except (LogTruncated, NotFound) as error:
        raise CannotJudge(f"it went while it was copied: {error}", passing=True) from error
    case = Case(
        app=place.app,
        version=after.app_version,
        n_slots=place.n_slots,
        limits=place.limits(after.app_version),
        before=before,
        after=after,
        replies_by_slot=place.reply_partitions == 0,
        reply_partitions=place.reply_partitions,
        recorded_workers=workers,
        epochs=epochs,
        events=events,
        aside=aside,
        notes=notes,
    )
    write_case(directory, case)
    return case


def _event_writer(writer: RecordWriter) -> Callable[[str, int, str, bytes], None]:
    return lambda event, slot, its_id, json: writer.append(events_name(event, slot), encode((its_id, json)))


# Epochs --------------------------------------------------------------------------------------------------------


def _copy_epochs(place: Place, before: Manifest | None, after: Manifest, writer: RecordWriter) -> tuple[int, int]:
    """(how many there are, the most workers that recorded one of them)."""
    first = 0 if before is None else min(slot.part.epochs_offset for slot in before.slots)
    epoch, generation = (-1, -1) if before is None else (before.epoch, before.generation)
    if epoch == after.epoch:
        return 0, 0
    entries = _checked(place.log.read(Stream.EPOCHS, EPOCHS_PARTITION, first), before, after)
    workers = _Workers()
    number = 0
    for plan in plans(map(workers.counted, entries), place.n_slots, epoch, generation):
        writer.append(PLANS, encode(plan))
        number += 1
        if plan.epoch == after.epoch:
            return number, workers.most
    raise CannotJudge(f"the log has no complete record of epoch {epoch + number + 1}", passing=True)


class _Workers:
    """Counts the records of each epoch: a worker writes one."""

    def __init__(self) -> None:
        self.most = 0
        self._epoch = (-1, -1)
        self._records = 0

    def counted(self, entry: LogEntry) -> LogEntry:
        if isinstance(entry, EpochRecord):
            epoch = (entry.generation, entry.epoch)
            self._records = self._records + 1 if epoch == self._epoch else 1
            self._epoch = epoch
            self.most = max(self.most, self._records)
        return entry


def _checked(records: Iterable[Record], before: Manifest | None, after: Manifest) -> Iterator[LogEntry]:
    """The decoded records. Raises `CannotJudge` if a snapshot is void, or another version of the app ran between."""
    version = after.app_version
    for record in records:
        entry = decode(record.payload)
        if isinstance(entry, GenerationMarker):
            for snapshot in (before, after):
                if snapshot is not None and entry.generation > snapshot.generation and record.offset < _end(snapshot):
                    raise CannotJudge(
                        f"the snapshot of epoch {snapshot.epoch} is void: a newer generation began before its epoch "
                        "was whole",
                        passing=True,
                    )
            between = record.offset < _end(after)
            if between and entry.generation <= after.generation and _is_other(entry, version, before):
                raise CannotJudge(
                    f"version {entry.app_version} of the app ran a part of these epochs, and version {version} the "
                    "rest: an interval that begins at the snapshot between the two can be judged",
                    passing=True,
                )
        yield entry


def _is_other(marker: GenerationMarker, version: int, before: Manifest | None) -> bool:
    if marker.app_version == version:
        since = -1 if before is None else before.epoch
        # It may have begun on a later snapshot, with other code before it.
        other = before is not None and before.app_version != version
        return other and marker.snapshot_epoch != since
    return True


def _end(manifest: Manifest) -> int:
    return max(slot.part.epochs_offset for slot in manifest.slots)


def plans(entries: Iterator[LogEntry], n_slots: int, epoch: int, generation: int) -> Iterator[EpochPlan]:
    """The complete epochs behind `epoch`, which was of `generation`, while they are read. An epoch comes with all its
    verdicts, since the next one is complete, or the log ends.
    """
    held: list[LogEntry] = []
    look_at = PLANNED_RECORDS
    for entry in entries:
        held.append(entry)
        if len(held) < look_at:
            continue
        found = replay_plan(held, n_slots, epoch, generation, _NEVER)
        look_at = 2 * look_at
        if len(found) > 1:
            yield from map(_settled, found[:-1])
            epoch = found[-2].epoch
            begin = next(at for at, each in enumerate(held) if isinstance(each, EpochRecord) and each.epoch > epoch)
            generation = max([generation, *[each.generation for each in held[:begin]]])
            held = held[begin:]
            look_at = len(held) + PLANNED_RECORDS
    yield from map(_settled, replay_plan(held, n_slots, epoch, generation, _NEVER))


def _settled(plan: EpochPlan) -> EpochPlan:
    """A snapshot stands behind the epoch, so each of its transactions is known to have ended."""
    return replace(plan, last=False, open=[])


# Requests and replies ------------------------------------------------------------------------------------------


def _copy_requests(log: LogReader, before: Manifest | None, after: Manifest, writer: RecordWriter) -> None:
    firsts = {} if before is None else {slot.part.slot: slot.part.next_offset for slot in before.slots}
    for slot in after.slots:
        part = slot.part
        first = firsts.get(part.slot, 0)
        if first >= part.sequenced:
            continue
        for record in log.read(Stream.REQUESTS, part.slot, first):
            if record.offset >= part.sequenced:
                break
            writer.append(requests_name(part.slot), encode((record.offset, record.timestamp_us, record.payload)))


def unanswered(manifest: Manifest) -> set[int]:
    """The TIDs of requests that are sequenced and not answered at a snapshot, repetitions that wait among them."""
    pending = [each for slot in manifest.slots for each in slot.part.pending]
    return {each.tid for each in pending} | {sequence for each in pending for _, sequence, _ in each.repeats}


def _copy_replies(place: Place, before: Manifest | None, after: Manifest, writer: RecordWriter) -> None:
    """Those of transactions that may have ended between the two."""
    pending = set() if before is None else unanswered(before)
    counter = 0 if before is None else before.counter
    n_slots = place.n_slots
    for partition, sequence, record in place.replies(before):
        number = (sequence - 1) // n_slots
        if (counter <= number < after.counter) or sequence in pending:
            writer.append(replies_name(partition), record)
