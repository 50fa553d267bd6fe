"""What a cluster's topics and store hold, read as a whole: requests, replies, outcomes of outside calls, the state.

Blocks; for a thread. Nothing of it asks a process of the cluster. The topics must be there from their first record on:
run the coordinator with `--keep-log`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from styx.kafka.reader import KafkaReader
from styx.log.base import Record, Stream
from styx.messages import ReplyRecord, Request, decode_reply, decode_request
from styx.protocol.frames import decode_outcome
from styx.protocol.manifest import Manifest
from styx.sequencer.epoch_record import decode_external
from styx.snapshot.load import read_states
from styx.snapshot.manifest import read_manifests
from styx.store.base import Store
from styx.testing.recorded_history import HistoryReleased
from styx.testing.serial import ExternalResult, State

_NOT_REQUESTS: Final = (msgspec.DecodeError, ValueError, RecursionError)


class RequestAt(NamedTuple):
    """A request record that is one: where it stands, and when it entered the log (microseconds since 1970)."""

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
    """All of it. Raises `HistoryReleased`, and what reading raises."""
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
                externals.setdefault(call.key, _result(call.outcome))
    return Topics(requests, ends, garbage, replies, externals)


def newest_manifest(store: Store) -> Manifest | None:
    """Of the newest snapshot; None if there is none."""
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


def _result(outcome: bytes) -> ExternalResult:
    decoded = decode_outcome(outcome)
    if decoded.error is not None:
        return decoded.error
    assert decoded.value is not None
    return decoded.value
