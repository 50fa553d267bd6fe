"""Loading a generation's start: slot state from the snapshot's objects, epochs to replay and replies given from the
log.

All I/O of a recovery that a cluster and an embedded engine share. A missing or damaged object raises `Unusable`, with a
reason that an operator can act on. Paper sections 7.1, 7.2 and 7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

import msgspec

from styx.errors import EngineFailed
from styx.log.base import LogReader, LogTruncated, Stream
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.protocol.manifest import Manifest
from styx.schema.conversion import conversion
from styx.schema.cron_entries import cron_entries
from styx.schema.entries import new_entries
from styx.sequencer.epoch_record import (
    EPOCHS_PARTITION,
    EpochPlan,
    GenerationMarker,
    LogEntry,
    decode,
    replay_plan,
)
from styx.snapshot.part import decode_delta, spans
from styx.state.slot_state import Delta, SlotState, from_changes, merge_into
from styx.state.table import NEWEST
from styx.store.base import NotFound
from styx.worker.events import LoadedSlot, LoadState, StateLoaded
from styx.worker.given_replies import GivenReplies, given_replies

Scan = Callable[[LoadState, LogReader], GivenReplies]


class Unusable(EngineFailed):
    """This snapshot, or the log behind it, cannot give the state that was acknowledged."""


class Objects(Protocol):
    """The store, as far as a load reads it."""

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """As `StoreReader.get_range`."""
        ...


class Behind(NamedTuple):
    """What the log has behind a snapshot: epochs to replay, and the replies given."""

    plans: list[EpochPlan]
    given: GivenReplies


def load_state(
    wanted: LoadState, n_slots: int, log: LogReader, store: Objects, scan: Scan | None = None
) -> StateLoaded:
    """Answers `LoadState`; raises `Unusable`. A store that is only out of reach raises its own error: try again.

    `scan` finds the replies that stand in the log, where slots' replies are not in partitions of their own.
    """

    def behind() -> Behind:
        ends = {slot: log.bounds(Stream.REQUESTS, slot)[1] for slot in wanted.slots}
        return behind_snapshot(wanted, n_slots, log, ends, answered_in_own_partition if scan is None else scan)

    return state_of(wanted, store, behind)


def state_of(wanted: LoadState, store: Objects, behind: Callable[[], Behind]) -> StateLoaded:
    """As `load_state`, where the log is read elsewhere: `behind` waits for it, and raises what reading raises."""
    manifest = wanted.manifest
    try:
        slots = _converted(wanted, _load_slots(wanted, store), store)
        _fill_indexes(wanted, slots)
        plans, given = behind()
    except LogTruncated as error:
        what = "without a snapshot" if manifest is None else f"on the snapshot of epoch {manifest.epoch}"
        raise Unusable(
            f"The log no longer reaches back far enough to recover {what}: {error} The newer ones are missing or "
            "damaged. Nothing was changed. Restore the whole data directory from a copy."
        ) from error
    except (EngineFailed, msgspec.DecodeError) as error:
        raise Unusable(str(error)) from error
    epoch, counter = (-1, 0) if manifest is None else (manifest.epoch, manifest.counter)
    return StateLoaded(wanted.generation, epoch, counter, slots, plans, *given)


def behind_snapshot(
    wanted: LoadState, n_slots: int, log: LogReader, request_ends: Mapping[int, int], scan: Scan
) -> Behind:
    """Reads it; `request_ends` are those of the wanted slots. Raises `Unusable`, and what reading raises."""
    plans = _plans(wanted, n_slots, log)
    known = {} if wanted.manifest is None else {slot.part.slot: slot.part.sequenced for slot in wanted.manifest.slots}
    for slot in wanted.slots:
        _check_requests(slot, known.get(slot, 0), plans, request_ends[slot])
    return Behind(plans, scan(wanted, log))


def answered_in_own_partition(wanted: LoadState, log: LogReader) -> GivenReplies:
    """The replies that stand in the log, where each slot's are in the partition of its number."""
    known = {} if wanted.manifest is None else {s.part.slot: s.part.replies for s in wanted.manifest.slots}
    return given_replies(
        record.payload
        for slot in wanted.slots
        for record in log.read(Stream.REPLIES, slot, known.get(slot, {}).get(slot, 0))
    )


def _load_slots(wanted: LoadState, store: Objects) -> dict[int, LoadedSlot]:
    manifest = wanted.manifest
    if manifest is None:
        return {slot: LoadedSlot(SlotState(), 0, []) for slot in wanted.slots}
    # Here, on the loading thread: a worker that applied it itself would be silent meanwhile.
    states = read_states(manifest, [slot for slot in wanted.slots if slot not in wanted.held], store)
    parts = {slot.part.slot: slot.part for slot in manifest.slots}
    return {
        slot: LoadedSlot(
            states.get(slot) or SlotState(),
            parts[slot].next_offset,
            list(parts[slot].pending),
            passed_over=parts[slot].passed_over,
        )
        for slot in wanted.slots
    }


def _converted(wanted: LoadState, slots: dict[int, LoadedSlot], store: Objects) -> dict[int, LoadedSlot]:
    """The slots with what the version that begins here converts. Deterministic: a recovery does the same again.

    What rows imply elsewhere is made anew of the rows of all slots, so those that are not wanted are read as well.
    """
    converting, manifest = wanted.converting, wanted.manifest
    if converting is None:
        return slots
    app = converting.app
    if manifest is None:
        for index, slot in slots.items():
            begun = cron_entries(app, {}, _lives_in(index, wanted.n_slots))
            if begun:
                slot.state = slot.state.replaced(begun)
        return slots
    states = {index: converting.held.get(index, slot.state) for index, slot in slots.items()}
    numbers = [slot.part.slot for slot in manifest.slots]
    others = [slot for slot in numbers if slot not in states] if next(app.entries(), None) else []
    everywhere = {**states, **read_states(manifest, others, store)} if others else states
    tables = {index: state.at(NEWEST) for index, state in everywhere.items()}
    changes = {index: conversion(app, tables[index], converting.limits, len(numbers)) for index in tables}
    entries = new_entries(app, tables, changes, states.keys(), len(numbers))
    for index, state in states.items():
        changed = changes[index]
        crons = cron_entries(app, tables[index], _lives_in(index, len(numbers)))
        if changed or entries[index] or crons:
            writes = {**changed.writes, **entries[index]}
            for name, cron_writes in crons.items():  # an agenda can have ends of lives to be written as well
                writes[name] = {**writes.get(name, {}), **cron_writes}
            slots[index].state = state.replaced(writes, changed.renamed, changed.dropped)
    return slots


def _lives_in(slot: int, n_slots: int) -> Callable[[Operator, Key], bool]:
    return lambda operator, key: operator.slot_of(key, n_slots) == slot


def _fill_indexes(wanted: LoadState, slots: Mapping[int, LoadedSlot]) -> None:
    """Here, on the loading thread, which gives way to others at each step. State that the worker holds is the worker's
    own: what it lacks is made by the queries that ask for it.
    """
    if wanted.indexes:
        for index, slot in slots.items():
            if index not in wanted.held:
                slot.state.declare(wanted.indexes, wanted.n_slots)
                for _ in slot.state.fill_indexes():
                    pass


def read_states(manifest: Manifest, slots: Collection[int], store: Objects) -> dict[int, SlotState]:
    """The state of each of these slots that has any. Raises `Unusable`, and `ObjectCorrupt` where one is damaged."""
    merged: dict[int, Delta] = {}
    for name, start, size, parts in spans(manifest, slots):
        try:
            data = memoryview(store.get_range(name, start, size))
        except NotFound:
            raise Unusable(f"snapshot object {name} is missing from the store") from None
        for slot, ref in parts:
            begin = ref.start - start
            changes = decode_delta(ref, data[begin : begin + ref.size])
            if slot in merged:
                merge_into(merged[slot], changes)
            else:
                merged[slot] = changes
    return {slot: from_changes(changes, manifest.epoch) for slot, changes in merged.items()}


def _plans(wanted: LoadState, n_slots: int, log: LogReader) -> list[EpochPlan]:
    manifest = wanted.manifest
    first = 0 if manifest is None else min(slot.part.epochs_offset for slot in manifest.slots)
    records: list[LogEntry] = []
    for record in log.read(Stream.EPOCHS, EPOCHS_PARTITION, first):
        decoded = decode(record.payload)
        records.append(decoded)
        if isinstance(decoded, GenerationMarker) and decoded.generation == wanted.generation:
            break
    epoch, generation = (-1, -1) if manifest is None else (manifest.epoch, manifest.generation)
    return replay_plan(records, n_slots, epoch, generation, wanted.generation)


def _check_requests(slot: int, first: int, plans: list[EpochPlan], end: int) -> None:
    """The requests that recorded epochs name must still be there, or a reply that was given could not be given
    again.
    """
    needed = max([first, *(plan.batches[slot].next for plan in plans)])
    if needed > end:
        raise Unusable(
            f"requests partition {slot} ends at offset {end}, but epochs up to offset {needed} are recorded: "
            "acknowledged requests are missing. Nothing was changed. Restore the whole data directory from a copy."
        )
