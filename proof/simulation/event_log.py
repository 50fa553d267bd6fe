"""The logs of events as a simulation has them, one partition for each slot, and what must stand there at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from styx.log.base import LogReader, Stream
from styx.messages import EventRecord
from styx.model.app import App
from styx.testing.history import SerializabilityViolation
from styx.worker.emissions import event_digest
from styx.worker.events import StandingEvent

NAME = ""
"""All events are in one log."""

Entry = EventRecord | int
"""An event, or a mark: the epoch whose events all stand before it."""

encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


def entries(log: LogReader, slot: int, first: int = 0) -> list[Entry]:
    """What stands in a partition."""
    return [_decode.decode(record.payload) for record in log.read(Stream.EVENTS, slot, first)]


def standing(log: LogReader, app: App, firsts: dict[int, int]) -> dict[str, StandingEvent]:
    """The events of these slots that stand behind the first offsets, for a recovery."""
    return {
        entry.id: StandingEvent(slot, entry.event, event_digest(app.events[entry.event].to_json(entry.payload)))
        for slot, first in firsts.items()
        for entry in entries(log, slot, first)
        if isinstance(entry, EventRecord)
    }


def evenly_marked(partitions: Iterable[list[Entry]]) -> bool:
    """Whether the last mark of each partition is that of the last one of all."""
    return len({max((entry for entry in there if isinstance(entry, int)), default=-1) for there in partitions}) <= 1


def check_events(partitions: Sequence[list[Entry]], expected: Iterable[EventRecord]) -> int:
    """Every event of every committed transaction stands in its slot's partition once, in the serial order, in which
    `expected` has them, and the partitions, cut at the marks of one epoch, have the events up to it. Returns how many
    there are. What the ids say counts for nothing here.

    Raises `SerializabilityViolation`.
    """
    wanted: list[list[EventRecord]] = [[] for _ in partitions]
    for record in expected:
        wanted[record.slot].append(record)
    for slot, (there, serial) in enumerate(zip(partitions, wanted, strict=True)):
        _check_partition(slot, [each for each in there if isinstance(each, EventRecord)], serial)
        for position, mark in enumerate(there):
            if isinstance(mark, int):
                before = [each for each in there[:position] if isinstance(each, EventRecord) and each.epoch <= mark]
                if before != [each for each in serial if each.epoch <= mark]:
                    raise SerializabilityViolation(f"slot {slot}: events up to epoch {mark} stand behind its mark")
    last = max((record.epoch for serial in wanted for record in serial), default=-1)
    for slot, there in enumerate(partitions):
        marked = max((entry for entry in there if isinstance(entry, int)), default=-1)
        if marked < last:
            raise SerializabilityViolation(f"slot {slot} is marked up to epoch {marked}, and events go on to {last}")
    return sum(map(len, wanted))


def _check_partition(slot: int, there: list[EventRecord], serial: list[EventRecord]) -> None:
    if there == serial:
        return
    ids = [record.id for record in there]
    twice = sorted({each for each in ids if ids.count(each) > 1})
    lost = sorted({record.id for record in serial} - set(ids))
    strange = sorted(set(ids) - {record.id for record in serial})
    if twice or lost or strange:
        told = f"twice {twice[:3]}, lost {lost[:3]}, of no committed transaction {strange[:3]}"
        raise SerializabilityViolation(f"the events of slot {slot} are not those of the serial execution: {told}")
    first = next(at for at, (one, other) in enumerate(zip(there, serial, strict=True)) if one != other)
    told = f"event {first} is {there[first]}, and not {serial[first]}"
    raise SerializabilityViolation(f"the events of slot {slot} are not in the serial order, or differ: {told}")
