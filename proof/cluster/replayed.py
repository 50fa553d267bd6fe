"""What the log says of each generation: on which snapshot it began, and how many recorded epochs it had to run again.

A planned change has none. Believes the epochs topic and nothing else, and asks no process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from proof.cluster.recorded import whole_stream
from styx.kafka.reader import KafkaReader
from styx.log.base import Stream
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, LogEntry, decode, replay_plan


class Begun(NamedTuple):
    """A generation: the epoch of the snapshot that it began on (-1: none), and the epochs behind it."""

    generation: int
    snapshot_epoch: int
    replayed: int


def generations(entries: Iterable[LogEntry], n_slots: int) -> list[Begun]:
    """Of an epochs stream from its first record on, in the order of their markers."""
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
    """Blocks, and raises what reading raises."""
    records = whole_stream(reader, Stream.EPOCHS)[EPOCHS_PARTITION]
    return generations((decode(record.payload) for record in records), n_slots)
