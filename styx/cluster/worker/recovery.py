"""Recovery on a worker of a cluster: the load of a generation's first state, and the reports on its replay.

A load blocks, so it runs on threads. If log or store cannot be reached, it raises `OSError`, and is tried again. Damage
is part of the answer. A fault of the app's functions does not end a recovery, because a better version can be deployed
only to a running cluster. So each fault is logged as an error and counted, and the worker goes on. A reply in the log
stays, and no client is given another one. Paper section 7.2.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from styx import set_aside
from styx.cluster.event_record import id_of_record
from styx.cluster.worker.node import Node
from styx.kafka.reader import KafkaReader
from styx.log.base import LogReader, Stream
from styx.messages import ReplyRecord, decode_reply
from styx.model.app import App
from styx.model.placement import Misplaced, misplaced
from styx.model.table_names import entities_of, owner_of
from styx.protocol.messages import Recover
from styx.sequencer.epoch_record import EPOCHS_PARTITION, decode_external
from styx.sequencer.sequencer import slot_of
from styx.snapshot.load import Behind, Unusable, behind_snapshot, state_of
from styx.snapshot.part import spans
from styx.snapshot.prefetch import PrefetchingStore
from styx.store.base import Store
from styx.worker.emissions import event_digest
from styx.worker.events import (
    CallGivenUp,
    EventDiffers,
    LoadState,
    NotResumed,
    ReplyDiffers,
    ReportEnds,
    ReportLeft,
    ReportPoison,
    StandingEvent,
    StateLoaded,
    StateUnusable,
)
from styx.worker.given_replies import (
    CAUSES,
    GivenReplies,
    Told,
    causes,
    contradicts,
    difference,
    function_of,
    given_replies,
    not_resumed,
)


class LoadedGeneration(NamedTuple):
    """The answer to `LoadState`, with the ends of the epochs stream and of each replies partition after the fence."""

    answer: StateLoaded | StateUnusable
    epochs_end: int
    reply_ends: list[int]
    event_ends: Mapping[tuple[str, int], int]


def load(
    wanted: LoadState, n_slots: int, reader: KafkaReader, store: Store, topics: Mapping[str, str] = MappingProxyType({})
) -> LoadedGeneration:
    """Answers `LoadState`; `topics` are those of the app's events, by the event's name. Raises `OSError` if log or
    store are out of reach.

    Reading the log takes as long as decoding the state, so they run in parallel: another thread reads the log.
    """

    def reply_ends() -> list[int]:
        return [end for _, (_, end) in sorted(reader.bounds_of(Stream.REPLIES).items())]

    def behind() -> Behind:
        ends = {slot: end for slot, (_, end) in reader.bounds_of(Stream.REQUESTS).items()}
        return behind_snapshot(wanted, n_slots, reader, ends, scan)

    def scan(wanted: LoadState, _: LogReader) -> GivenReplies:
        replies = reader.replies_of(_reply_starts(wanted, len(reading_ends.result())))
        own = frozenset(wanted.slots)
        return given_replies(
            (record for _, _, _, record in replies), lambda sequence: slot_of(sequence, n_slots) in own
        )

    answer: StateLoaded | StateUnusable
    missing = [slot for slot in wanted.slots if slot not in wanted.held]
    with ThreadPoolExecutor(1, thread_name_prefix="styx-load-log") as beside:
        reading_ends = beside.submit(reply_ends)
        reading = beside.submit(behind)
        reading_rest = beside.submit(lambda: (reader.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], _outcomes(reader)))
        try:
            with PrefetchingStore(store, spans(wanted.manifest, missing)) as objects:
                answer = state_of(wanted, objects, reading.result)
        except Unusable as error:
            answer = StateUnusable(wanted.generation, str(error))
        epochs_end, outcomes = reading_rest.result()
        event_ends: dict[tuple[str, int], int] = {}
        if isinstance(answer, StateLoaded):
            answer.outcomes, answer.aside = outcomes, set_aside.read(store)
            event_ends, answer.emitted = _events(wanted, reader, topics)
        return LoadedGeneration(answer, epochs_end, reading_ends.result(), event_ends)


def _events(
    wanted: LoadState, reader: KafkaReader, topics: Mapping[str, str]
) -> tuple[dict[tuple[str, int], int], dict[str, StandingEvent]]:
    """The ends of the topics of events, by event and slot, and what stands in them behind the snapshot."""
    ends, standing = dict[tuple[str, int], int](), dict[str, StandingEvent]()
    parts = {} if wanted.manifest is None else {slot.part.slot: slot.part for slot in wanted.manifest.slots}
    for name, topic in topics.items():
        ends.update({(name, slot): end for slot, end in reader.ends_of(topic).items()})
        firsts = {slot: parts[slot].events.get(name, 0) if parts else 0 for slot in wanted.slots}
        for slot, record in reader.committed_of(topic, firsts):
            its_id = id_of_record(record)
            if its_id is not None:
                standing[its_id] = StandingEvent(slot, name, event_digest(record.value or b""))
    return ends, standing


def _outcomes(reader: KafkaReader) -> dict[bytes, bytes]:
    """The outcomes in all partitions. An outcome is in the partition of the transaction's root slot, and a function on
    this worker may make a call for a root of another worker.
    """
    outcomes: dict[bytes, bytes] = {}
    for slot, (first, end) in reader.bounds_of(Stream.EXTERNALS).items():
        if first == end:
            continue
        for record in reader.read(Stream.EXTERNALS, slot, first):
            external = decode_external(record.payload)
            if external.outcome is not None:
                outcomes.setdefault(external.key, external.outcome)
    return outcomes


def _reply_starts(wanted: LoadState, partitions: int) -> dict[int, int]:
    """The offset of each replies partition from which the replies of this worker's slots must be read."""
    if wanted.manifest is None:
        return dict.fromkeys(range(partitions), 0)
    parts = [slot.part.replies for slot in wanted.manifest.slots if slot.part.slot in wanted.slots]
    return {partition: min((part.get(partition, 0) for part in parts), default=0) for partition in range(partitions)}


KEYS_LOOKED_AT: Final = 256
"""Keys of each operator that are checked in each slot. They suffice: a `partition_key` that differs between processes
moves most keys.
"""
POISON_TOLD_MAX: Final = 10
"""Undecodable request records that a process logs. The limit keeps a log full of them from filling a disk."""

EVENTS_TOLD_MAX: Final = 10
"""Events that a replay emitted otherwise, which a process logs; further ones are counted."""

_log = logging.getLogger("styx.worker")


class ReplayWatch:
    """Logs and counts the findings of one generation's replay."""

    def __init__(self, node: Node, recover: Recover, partitions: int) -> None:
        self._node = node
        self._recover = recover
        self._partitions = partitions
        self._told = Told()

    def ended(self, effect: ReportEnds) -> None:
        """As `Findings.ended`."""
        self._node.reports.take()

    def left(self, effect: ReportLeft) -> None:
        """As `Findings.left`."""
        self._node.reports.left.add(effect.functions)

    def gave_up(self, effect: CallGivenUp) -> None:
        """As `Findings.gave_up`."""
        self._node.reports.dead_calls.add(effect)

    def skipped(self, effect: ReportPoison) -> None:
        """As `Findings.skipped`."""
        counters = self._node.counters
        counters.poison += 1
        if counters.poison <= POISON_TOLD_MAX:
            further = "; further ones are counted only" if counters.poison == POISON_TOLD_MAX else ""
            where = (effect.offset, effect.slot)
            _log.warning("requests record %d of slot %d was skipped: %s%s", *where, effect.reason, further)

    def differs(self, effect: ReplyDiffers) -> None:
        """A replay's reply differs from the reply in the log."""
        self._node.counters.replay_differences += 1
        function = function_of(effect.request)
        further = self._told.again(function)
        if further is None:
            self._node.reports.replay_difference(function, effect.reply.tid, effect.reply.epoch, None)
        elif effect.answered is not None:
            self._tell(effect, effect.answered, further)
        else:
            self._node.background.submit(
                "looking for a reply in the log",
                lambda: self._answered(effect.reply),
                lambda answered: self._tell(effect, answered, further),
                lambda _: self._tell(effect, None, further),
            )

    def event_differs(self, effect: EventDiffers) -> None:
        """As `Findings.event_differs`."""
        counters = self._node.counters
        counters.event_differences += 1
        if counters.event_differences <= EVENTS_TOLD_MAX:
            _log.error(
                "a replay emits %s, where the log of events has event %r with id %s on slot %d; what stands there "
                "stays%s%s",
                "nothing" if effect.record is None else "another value",
                effect.event,
                effect.id,
                effect.slot,
                CAUSES,
                "; further ones are counted only" if counters.event_differences == EVENTS_TOLD_MAX else "",
            )

    def not_resumed(self, effect: NotResumed) -> None:
        """A replay does not make an external call after which a recorded epoch resumes the transaction."""
        self._node.counters.replay_differences += 1
        further, words = self._told.again(None), not_resumed(effect.tid, effect.slot)
        self._node.reports.replay_difference(None, effect.tid, None, None if further is None else words)
        if further is not None:
            _log.error("%s: %s%s", words, CAUSES, further)

    def _answered(self, reply: ReplyRecord) -> ReplyRecord | None:
        partition, manifest = reply.reply_to % self._partitions, self._recover.manifest
        parts = [] if manifest is None else [slot.part.replies for slot in manifest.slots]
        first = min((part.get(partition, 0) for part in parts), default=0)
        for _, _, tid, record in self._node.reader().replies_of({partition: first}):
            if tid == reply.sequence:
                return decode_reply(record)
        return None

    def _tell(self, effect: ReplyDiffers, answered: ReplyRecord | None, further: str) -> None:
        words = difference(effect.request, answered, effect.reply)
        function = function_of(effect.request)
        self._node.reports.replay_difference(function, effect.reply.tid, effect.reply.epoch, words)
        level = logging.ERROR if answered is None or contradicts(answered, effect.reply) else logging.WARNING
        why = causes(answered, effect.reply)
        _log.log(level, "%s; what was answered stands, and the state is the replay's: %s%s", words, why, further)


def first_lost(app: App, slots: Mapping[int, Mapping[str, Mapping[Any, bytes]]], n_slots: int) -> list[Misplaced]:
    """For each operator the first of the checked keys that requests would look for on another slot."""
    found: dict[str, Misplaced] = {}
    for slot, tables in slots.items():
        for name, table in tables.items():
            owner = owner_of(name)
            operator = app.operators.get(owner)
            if operator is not None and owner not in found:
                lost = misplaced(operator, slot, entities_of(operator, name, _some(table)), n_slots)
                if lost is not None:
                    found[owner] = lost
    return list(found.values())


def tell_lost(app: App, slots: Mapping[int, Mapping[str, Mapping[Any, bytes]]], n_slots: int) -> int:
    """Logs the operators with keys that cannot be found. Returns their number."""
    lost = first_lost(app, slots, n_slots)
    for each in lost:
        _log.error(
            "%s. Its entities cannot be found: partition_key or n_partitions has changed, or partition_key is not the "
            "same in every process (hash() of a str is not). Deploy a version that places them as they are stored, "
            "before anything is written",
            each,
        )
    return len(lost)


def _some(table: Mapping[Any, bytes]) -> list[Any]:
    return list(islice(table, 0, None, max(1, len(table) // KEYS_LOOKED_AT)))
