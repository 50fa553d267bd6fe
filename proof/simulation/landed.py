"""What became of foreign records: each has become one call or event, in the order of its partition, or was left out, or
is set aside, and the offsets in the state are those of what was taken.

This goes by the records, the state of the operator that they were to land at, the events, and the dead calls. It knows
nothing of how an ingest takes records.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from proof.emit_steps import happened
from proof.landing_steps import CALLING, EMITTING, EVENT_NUMBERS, LANDED, TOPICS, Kind
from proof.simulation.foreign_topic import ForeignTopic, Written
from styx.errors import BadRecord
from styx.messages import EventRecord
from styx.model.agenda import dead_of, decode_dead
from styx.model.app import App
from styx.model.ingest import Ingest
from styx.model.ingest_position import Position, RawRecord
from styx.testing.history import SerializabilityViolation
from styx.values.codec import decode_plain

PARTITIONS_MAX: Final = 64
"""More than a simulated topic ever has."""
APPLIED: Final = "applied"
SET_ASIDE: Final = "set aside"
FAILED: Final = "set aside when their call had failed"
LEFT_OUT: Final = "left out"
LOST: Final = "deleted before they were read"

FATES: Final = (APPLIED, SET_ASIDE, FAILED, LEFT_OUT, LOST)
IN_ORDER: Final = ("steady", "choosy", "picky")

State = Mapping[tuple[str, Any], bytes]

_ALLOWED: Final[Mapping[Kind, set[str]]] = {
    "steady": {APPLIED},
    "busy": {APPLIED},
    "shaky": {APPLIED, FAILED},
    "failing": {FAILED},
    "left": {LEFT_OUT},
    "choosy": {APPLIED},
    "picky": {APPLIED},
    "poison": {SET_ASIDE},
}
"""What may become of a record of each kind."""


class _Landings:
    """What the final state and the events say of one topic. `fates` by a record's number: those that are not there were
    left out, or were never taken.
    """

    def __init__(self, name: str, state: State, emitted: Iterable[EventRecord], app: App) -> None:
        operator = app.operators[EMITTING if name == TOPICS[-1] else CALLING]
        assert isinstance(operator, Ingest)
        self.ingest, self.name, self._state = operator, name, state
        landed = app.operators[LANDED]
        self.applied = _numbers(emitted) if operator.event is not None else []
        for partition in range(PARTITIONS_MAX):
            data = state.get((LANDED, (name, partition)))
            if data is not None:
                self.applied += landed.decode_state(data)
        self.fates: dict[int, str] = {}
        for number, fate in [*((number, APPLIED) for number in self.applied), *self._dead()]:
            if number in self.fates:
                raise SerializabilityViolation(f"record {number} of {name} is {fate}, and {self.fates[number]} before")
            self.fates[number] = fate

    def _dead(self) -> Iterable[tuple[int, str]]:
        for (table, key), data in self._state.items():
            if table == dead_of(self.ingest.name) and key[0] == self.name:
                dead = decode_dead(data)
                if dead.entry.function != "record":
                    continue  # what such a call has done shows elsewhere
                raw = msgspec.convert(decode_plain(dead.entry.params)[0], RawRecord)
                yield raw.time_ms, SET_ASIDE if dead.error[0] == BadRecord.__name__ else FAILED

    def position(self, partition: int) -> tuple[Position | None, int, int]:
        """The partition's position, and how many records were counted as set aside and as left out."""
        place = (self.name, partition)
        data = self._state.get((self.ingest.name, place))
        rows = [self._state.get((self.ingest.counts.full_name, (*place, each))) for each in ("set_aside", "left_out")]
        counts = [0 if row is None else self.ingest.counts.row_type.decode(row).number for row in rows]
        return None if data is None else self.ingest.decode_state(data), counts[0], counts[1]


def check_landed(
    topics: Iterable[ForeignTopic], state: State, emitted: Sequence[EventRecord], app: App, versions: Sequence[int]
) -> dict[str, int]:
    """Counts the records by what became of them. `versions` are those that ran, `app` is the last of them. Raises
    `SerializabilityViolation`.
    """
    found: Counter[str] = Counter()
    allowed = {kind: set(fates) for kind, fates in _ALLOWED.items()}
    if any(version % 2 for version in versions):
        allowed["choosy"].add(LEFT_OUT)
    if any(version % 3 == 2 for version in versions):
        allowed["picky"].add(SET_ASIDE)
    for topic in topics:
        if topic.name == TOPICS[-1] and EMITTING not in app.operators:
            continue
        landings = _Landings(topic.name, state, emitted, app)
        strange = landings.fates.keys() - {each.number for each in topic.written}
        if strange:
            raise SerializabilityViolation(f"{topic.name}: nobody has written the records {strange} there")
        for each in topic.written:
            fate = landings.fates.get(each.number)
            if fate is not None and fate not in allowed[each.kind]:
                raise SerializabilityViolation(f"a record is {fate}: {each}")
        for partition in sorted({each.partition for each in topic.written}):
            written = [each for each in topic.written if each.partition == partition]
            _check_order(written, landings.applied)
            found += _check_taken(topic, written, landings, allowed)
    return {fate: count for fate, count in found.items() if count}


def _check_order(written: list[Written], applied: list[int]) -> None:
    """Those have landed in their order whose calls never fail, and call nobody else: what does may be carried."""
    steady = {each.number for each in written if each.kind in IN_ORDER}
    numbers = [number for number in applied if number in steady]
    wrong = [(one, other) for one, other in itertools.pairwise(numbers) if one > other]
    if wrong:
        raise SerializabilityViolation(f"records have landed before earlier ones of their partition: {wrong}")


def _check_taken(
    topic: ForeignTopic, written: list[Written], landings: _Landings, allowed: Mapping[Kind, set[str]]
) -> Counter[str]:
    """Of one partition: something has become of all that stands before the offset in the state, and of nothing else."""
    position, set_aside, left_out = landings.position(written[0].partition)
    if position is None:
        position = Position(0)
    ends = {each.topic_id: each.offset + 1 for each in written if each.number in landings.fates}
    ends[position.topic_id] = position.next
    begun = {each.topic_id: each.offset for each in reversed(written) if not _may_be_lost(each, topic, landings)}
    fates: Counter[str] = Counter()
    missing = maybe = 0
    for each in written:
        fate, before = landings.fates.get(each.number), each.offset < ends.get(each.topic_id, 0)
        if fate is not None:
            if not before:
                raise SerializabilityViolation(f"a record is {fate}, and was not taken: {each} {position}")
            fates[fate] += 1
        elif each.number in topic.deleted and (
            not before or _in_gap(each, position) or each.offset < begun.get(each.topic_id, each.offset + 1)
        ):
            fates[LOST] += LEFT_OUT not in allowed[each.kind]
            maybe += LEFT_OUT in allowed[each.kind]
        elif before and LEFT_OUT not in allowed[each.kind]:
            raise SerializabilityViolation(f"a record was taken, and nothing has become of it: {each} {position}")
        else:
            missing += before
    handled = sum(fates.values()) - fates[LOST]
    if not missing <= left_out <= missing + maybe:
        raise SerializabilityViolation(f"{left_out} records are counted as left out of {missing}: {position}")
    if set_aside != fates[SET_ASIDE]:
        raise SerializabilityViolation(
            f"{set_aside} records are counted as set aside of {fates[SET_ASIDE]}: {position}"
        )
    if not position.taken == position.settled == handled + left_out:
        raise SerializabilityViolation(f"{handled} records were handled and {left_out} left out: {position}")
    return fates + Counter({LEFT_OUT: left_out})


def _may_be_lost(written: Written, topic: ForeignTopic, landings: _Landings) -> bool:
    """What was deleted before a topic is read at all is not even told."""
    return written.number in topic.deleted and written.number not in landings.fates


def _in_gap(written: Written, position: Position) -> bool:
    return any(begin <= written.offset < end for begin, end in position.gaps)


def _numbers(emitted: Iterable[EventRecord]) -> list[int]:
    """Of the records that became events."""
    values = (happened.decode(each.payload) for each in emitted if each.event == happened.name)
    return [value.n - EVENT_NUMBERS for value in values if value.n >= EVENT_NUMBERS]
