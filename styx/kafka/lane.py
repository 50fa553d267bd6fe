"""One partition's queue on its way into Kafka, and the batch that is under way. No I/O.

One batch of a partition is under way at once. It stays the same bytes, with the same sequence numbers, until its
outcome is known, so that the broker recognises a repetition; only then is the next one built. So records can be neither
doubled, nor lost, nor reordered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sized
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx.kafka.transaction import ProducerIdentity

BATCH_BYTES_MAX: Final = 256 * 1024
"""One batch, unless a single record is larger."""

Add: TypeAlias = Callable[[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]], Any]
"""Adds a record to a batch: its number there, its time in ms, key, value and headers; gives None if the batch is full.
"""

_FORMAT: Final = 2
_NOT_COMPRESSED: Final = 0
_SEQUENCES: Final = 2**31


class Queue(Protocol):
    """What waits for a partition, whoever is told of its end, and the same of what is in the batch."""

    @property
    def waiting(self) -> Sized:
        """What is in no batch yet."""

    def fill(self, add: Add, now_ms: int, /) -> int:
        """Moves what waits into a batch, in order, for as long as it takes more; returns the number of records."""


Q = TypeVar("Q", bound=Queue)


class Lane(Generic[Q]):
    """`batch` is None while none is under way.

    `engaged` is its producer's mark: there is something to send. `since_s` is when it last got on: when its batch was
    built or acknowledged, or when the first was queued.
    """

    __slots__ = ("_identity", "_sequence", "batch", "engaged", "partition", "queue", "since_s", "topic")

    def __init__(self, topic: str, partition: int, queue: Q) -> None:
        self.topic = topic
        self.partition = partition
        self.queue = queue
        self.batch: bytearray | None = None
        self.engaged = False
        self.since_s = 0.0
        self._identity: ProducerIdentity | None = None
        self._sequence = 0

    def build(self, identity: ProducerIdentity, transactional: bool) -> bytearray | None:
        """Makes `batch` of what waits, up to `BATCH_BYTES_MAX`; None if that is nothing.

        Sequence numbers begin anew with each identity.
        """
        if identity is not self._identity:
            self._identity, self._sequence = identity, 0
        builder = DefaultRecordBatchBuilder(
            _FORMAT, _NOT_COMPRESSED, int(transactional), *identity, self._sequence, BATCH_BYTES_MAX
        )
        count = self.queue.fill(builder.append, int(time.time() * 1000))
        if count:
            self._sequence = (self._sequence + count) % _SEQUENCES
            self.batch = builder.build()
        return self.batch
