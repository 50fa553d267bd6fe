"""What a cluster of `proof.cluster.timed_app` has recorded, for the judges: requests and replies, deliveries, when each
was taken, states at snapshots, and what a serial execution emits.

It is read from topics and store, once nothing runs any more; only snapshots are looked at while the cluster runs. It
judges nothing but requests and replies, which `check_history` does.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from proof.cluster.audit import AuditFailed, answered_once
from proof.cluster.call_judge import Call, Delivery
from proof.cluster.cluster import ClusterUnderTest
from proof.cluster.event_judge import Cut, Emission
from proof.cluster.recorded import Topics as RecordedTopics
from proof.cluster.recorded import newest_manifest, read_topics, snapshot_state, whole_stream
from styx.cluster.options import cluster_limits
from styx.log.base import Stream
from styx.messages import EventRecord, ReplyRecord, Request
from styx.model.agenda import decode_dead
from styx.model.app import App
from styx.model.delivery import delivery_name
from styx.model.event_record import tid_of
from styx.model.table_names import holds_agenda, holds_dead
from styx.sequencer.epoch_record import EPOCHS_PARTITION, LogEntry, SnapshotNote, decode, replay_plan
from styx.sequencer.sequencer import tid
from styx.snapshot.load import Unusable
from styx.store.base import NotFound, Store, StoreCorrupt
from styx.testing.history import HistoryReport, check_history
from styx.testing.serial import State
from styx.values.codec import decode_plain

SNAPSHOTS_SECONDS: Final = 20.0
"""Between two looks at the newest snapshot."""
_NO_GENERATION: Final = 2**62
_GONE: Final = (OSError, NotFound, StoreCorrupt, Unusable)
"""A snapshot that is looked at may be deleted meanwhile, and the store may be away."""


class Recorded(NamedTuple):
    """All that was recorded, by whom it concerns."""

    topics: RecordedTopics
    entries: list[LogEntry]
    requests: dict[str, tuple[Request, int]]
    answers: list[ReplyRecord]
    deliveries: list[ReplyRecord]
    state: State
    n_slots: int


class Snapshots:
    """Looks at the newest snapshot now and then, as long as it runs: the accounts' states, by generation and epoch."""

    def __init__(self, cluster: ClusterUnderTest, seconds: float = SNAPSHOTS_SECONDS) -> None:
        self._cluster = cluster
        self._seconds = seconds
        self._store: Store | None = None
        self.seen: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}

    async def look_on(self) -> None:
        """Goes on until it is cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            await asyncio.to_thread(self._look)

    def _look(self) -> None:
        try:
            self._store = self._store or self._cluster.open_store()
            manifest = newest_manifest(self._store)
            if manifest is not None and (manifest.generation, manifest.epoch) not in self.seen:
                self.seen[manifest.generation, manifest.epoch] = accounts_of(snapshot_state(self._store, manifest))
        except _GONE:
            return

    def cuts(self, entries: Iterable[LogEntry]) -> list[Cut]:
        """Of those that the log confirms: a coordinator that was fenced may have stored one that counts for nothing."""
        noted = {(each.generation, each.epoch) for each in entries if isinstance(each, SnapshotNote)}
        return [
            Cut(epoch, f"the snapshot of generation {generation}", accounts, True)
            for (generation, epoch), accounts in sorted(self.seen.items())
            if (generation, epoch) in noted
        ]


def accounts_of(state: State) -> dict[int, tuple[int, int]]:
    """(events, balance) of each account."""
    accounts = {key: data for (operator, key), data in state.items() if operator == "account"}
    return {int(str(key)): msgspec.msgpack.decode(data, type=tuple[int, int]) for key, data in accounts.items()}


def read_recorded(cluster: ClusterUnderTest) -> Recorded:
    """Reads a cluster whose coordinator was stopped in order. Blocks. Raises `AuditFailed` if something is missing."""
    reader, store = cluster.reader(), cluster.open_store()
    try:
        topics = read_topics(reader)
        entries = [decode(record.payload) for record in whole_stream(reader, Stream.EPOCHS)[EPOCHS_PARTITION]]
    finally:
        reader.close()
    manifest = newest_manifest(store)
    if manifest is None:
        raise AuditFailed("there is no snapshot")
    for part in (slot.part for slot in manifest.slots):
        if part.next_offset < topics.ends[part.slot] or part.pending:
            raise AuditFailed(
                f"the last snapshot has slot {part.slot} at offset {part.next_offset} of {topics.ends[part.slot]}, "
                f"with {len(part.pending)} pending"
            )
    deliveries = [each for each in topics.replies if delivery_name(each.request_id) is not None]
    of_requests = topics._replace(replies=[each for each in topics.replies if delivery_name(each.request_id) is None])
    requests, answers = answered_once(of_requests, cluster.options.slots)
    state = snapshot_state(store, manifest)
    return Recorded(topics, entries, requests, answers, deliveries, state, cluster.options.slots)


def check_serial(app: App, recorded: Recorded) -> HistoryReport:
    """Holds all replies and the state against a serial execution. Raises `SerializabilityViolation`."""
    return check_history(
        app,
        recorded.requests,
        [*recorded.answers, *recorded.deliveries],
        recorded.state,
        limits=cluster_limits(),
        n_slots=recorded.n_slots,
        externals=recorded.topics.externals,
        complete=True,
    )


def emissions_of(app: App, emitted: Iterable[EventRecord]) -> list[Emission]:
    """As they should stand in the topics."""
    return [
        Emission(
            each.event,
            each.slot,
            each.id,
            each.epoch,
            each.phase,
            each.tid,
            each.version,
            each.time_us,
            each.operator,
            each.key,
            json.loads(app.events[each.event].to_json(each.payload)),
        )
        for each in emitted
    ]


def taken_at(entries: Iterable[LogEntry], n_slots: int) -> dict[int, int]:
    """By the TID of a delivery, the time at which its epoch's record says that calls were due."""
    found: dict[int, int] = {}
    for plan in replay_plan(entries, n_slots, -1, -1, _NO_GENERATION):
        for batch in plan.batches.values():
            first = plan.counter + batch.count
            for number in range(first, first + batch.due):
                found[tid(batch.slot, number, n_slots)] = batch.now_us
    return found


def ends_of_lives(deliveries: Iterable[ReplyRecord], outcome: str) -> list[Delivery]:
    """The deliveries that have deleted something: whose `outcome` is that."""
    found = []
    for each in deliveries:
        name = delivery_name(each.request_id)
        if name is not None and not name.puts_off and each.error is None and decode_plain(each.result) == outcome:
            found.append(Delivery(each.epoch, each.phase, each.tid, tid_of(name.call_id), outcome))
    return found


def looks(recorded: Recorded) -> list[Cut]:
    """What clients saw of accounts in read-only transactions: the state at the end of the epoch before."""
    found = []
    for each in recorded.answers:
        request: Any = recorded.requests[each.request_id][0]
        if request.function == "look" and each.error is None:
            seen: Mapping[int, tuple[int, int]] = {
                account: (told, balance) for account, told, balance in decode_plain(each.result)
            }
            found.append(Cut(each.epoch - 1, f"look {each.request_id}", seen, False))
    return found


def dead_calls(state: State) -> list[Call]:
    """(giver, number) of the calls that are kept as dead ones."""
    entries = [decode_dead(data).entry for (table, _), data in state.items() if holds_dead(table)]
    return [tuple(msgspec.msgpack.decode(entry.params)[:2]) for entry in entries]


def waiting_calls(state: State) -> dict[str, int]:
    """By table, the calls that wait in agendas."""
    found: dict[str, int] = defaultdict(int)
    for table, _ in state:
        if holds_agenda(table):
            found[table] += 1
    return dict(found)
