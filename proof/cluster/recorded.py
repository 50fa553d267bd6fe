"""Reads the whole content of a cluster's topics and store: requests, replies, outcomes of external calls, the state,
and for each generation its snapshot and the number of epochs that it had to replay.

The functions block, so they belong on a thread. They ask no process of the cluster. The topics must be complete from
their first record on: run the coordinator with `--keep-log`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from styx.kafka.reader import KafkaReader
from styx.log.base import Record, Stream
from styx.messages import ReplyRecord, Request, decode_reply, decode_request
from styx.protocol.manifest import Manifest
from styx.sequencer.epoch_record import (
    EPOCHS_PARTITION,
    GenerationMarker,
    LogEntry,
    decode,
    decode_external,
    replay_plan,
)
from styx.snapshot.load import read_states
from styx.snapshot.manifest import read_manifests
from styx.store.base import Store
from styx.testing.recorded_history import HistoryReleased
from styx.testing.serial import ExternalResult, State, external_result

_NOT_REQUESTS: Final = (msgspec.DecodeError, ValueError, RecursionError)


class RequestAt(NamedTuple):
    """A request record that can be decoded: its place, and when it entered the log (microseconds since 1970)."""

    offset: int
    timestamp_us: int
    request: Request


class Topics(NamedTuple):
    """`requests` by slot in the order of the log, and where each slot's log ends; `garbage` counts other records."""

    requests: dict[int, list[RequestAt]]
    ends: dict[int, int]
    garbage: int
    replies: list[ReplyRecord]
    externals: dict[bytes, ExternalResult]


def read_topics(reader: KafkaReader) -> Topics:
    """Reads the topics. Raises `HistoryReleased`, and the errors of the reader."""
    requests: dict[int, list[RequestAt]] = {}
    ends: dict[int, int] = {}
    garbage = 0
    for slot, records in whole_stream(reader, Stream.REQUESTS).items():
        requests[slot] = []
        ends[slot] = records[-1].offset + 1 if records else 0
        for record in records:
            try:
                request = decode_request(record.payload)
            except _NOT_REQUESTS:
                garbage += 1
            else:
                requests[slot].append(RequestAt(record.offset, record.timestamp_us, request))
    replies = [
        decode_reply(record.payload) for part in whole_stream(reader, Stream.REPLIES).values() for record in part
    ]
    externals: dict[bytes, ExternalResult] = {}
    for part in whole_stream(reader, Stream.EXTERNALS).values():
        for record in part:
            call = decode_external(record.payload)
            if call.outcome is not None:
                externals.setdefault(call.key, external_result(call.outcome))
    return Topics(requests, ends, garbage, replies, externals)


def newest_manifest(store: Store) -> Manifest | None:
    """The manifest of the newest snapshot; None if there is none."""
    manifests, _ = read_manifests(store)
    return max(manifests, key=lambda manifest: (manifest.generation, manifest.epoch), default=None)


def snapshot_state(store: Store, manifest: Manifest) -> State:
    """The state of all entities in a snapshot."""
    state: State = {}
    for slot in read_states(manifest, range(len(manifest.slots)), store).values():
        state.update(slot.entities(manifest.epoch))
    return state


def whole_stream(reader: KafkaReader, stream: Stream) -> dict[int, list[Record]]:
    """All records by partition. Raises `HistoryReleased` if the first ones were released."""
    parts: dict[int, list[Record]] = {}
    for partition, (first, end) in sorted(reader.bounds_of(stream).items()):
        if first > 0:
            raise HistoryReleased(f"the first records of {stream.name} partition {partition} were released")
        parts[partition] = list(reader.read(stream, partition, 0)) if end else []
    return parts


class Begun(NamedTuple):
    """A generation: the epoch of the snapshot that it began on (-1: none), and the epochs behind it."""

    generation: int
    snapshot_epoch: int
    replayed: int


def generations(entries: Iterable[LogEntry], n_slots: int) -> list[Begun]:
    """The generations of an epochs stream, read from its first record on, in the order of their markers."""
    records = list(entries)
    markers = [record for record in records if isinstance(record, GenerationMarker)]
    return [
        Begun(
            marker.generation,
            marker.snapshot_epoch,
            len(replay_plan(records, n_slots, marker.snapshot_epoch, -1, marker.generation)),
        )
        for marker in markers
    ]


def read_generations(reader: KafkaReader, n_slots: int) -> list[Begun]:
    """Reads the generations from the log. Blocks. Raises the errors of the reader."""
    records = whole_stream(reader, Stream.EPOCHS)[EPOCHS_PARTITION]
    return generations((decode(record.payload) for record in records), n_slots)
