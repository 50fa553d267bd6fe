"""Appends on their way into one partition: queued, built into a batch, and resolved when the batch is acknowledged.

Pure bookkeeping, no I/O. One batch of a partition is under way at once; it is repeated as the same bytes until it is
acknowledged, and only then is the next one built. So records can be neither doubled, nor lost, nor reordered.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx.kafka.transaction import ProducerIdentity

BATCH_BYTES_MAX: Final = 256 * 1024
"""One batch, unless a single record is larger."""
RECORD_BYTES_MAX: Final = 8 * 1024 * 1024 - 4096
"""Key, value and headers of one record: what topics allow for a batch, without its frame."""

NewRecord: TypeAlias = tuple[bytes | None, bytes, list[tuple[str, bytes | None]]]
"""Key, value, headers."""

_SEQUENCES: Final = 2**31
_FORMAT: Final = 2
_NOT_COMPRESSED: Final = 0
_FRAME_BYTES: Final = 32
"""About what a record takes beside its contents."""


def size_of(record: NewRecord) -> int:
    """Bytes of a record, its frame included, for limits."""
    key, value, headers = record
    size = _FRAME_BYTES + len(value) if key is None else _FRAME_BYTES + len(value) + len(key)
    for name, content in headers:
        size += len(name) + len(content or b"")
    return size


class Append:
    """Records that belong to one future; `taken` of them are in batches."""

    __slots__ = ("future", "records", "taken")

    def __init__(self, records: Sequence[NewRecord], future: asyncio.Future[int]) -> None:
        self.records = records
        self.future = future
        self.taken = 0


class Batch(NamedTuple):
    """`completed`: futures of appends that end in it, with the number of the batch's records up to their end."""

    data: bytearray
    n_bytes: int
    completed: list[tuple[asyncio.Future[int], int]]


class Lane:
    """One partition's queue. `since` is when it last got on, or had nothing to do, by the loop's clock in seconds."""

    __slots__ = ("_sequence", "batch", "busy", "partition", "since", "topic", "waiting")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[Append] = deque()
        self.batch: Batch | None = None
        self.busy = False
        self.since = 0.0
        self._sequence = 0

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    def build(self, identity: ProducerIdentity, transactional: bool) -> None:
        """Makes `batch` of everything that waits, up to `BATCH_BYTES_MAX`."""
        builder = DefaultRecordBatchBuilder(
            _FORMAT, _NOT_COMPRESSED, int(transactional), *identity, self._sequence, BATCH_BYTES_MAX
        )
        count, n_bytes, now_ms = 0, 0, int(time.time() * 1000)
        completed: list[tuple[asyncio.Future[int], int]] = []
        add, waiting, full = builder.append, self.waiting, False
        while waiting and not full:
            append = waiting[0]
            records = append.records
            for index in range(append.taken, len(records)):
                record = records[index]
                if add(count, now_ms, record[0], record[1], record[2]) is None:
                    append.taken, full = index, True
                    break
                count += 1
                n_bytes += size_of(record)
            else:
                completed.append((append.future, count))
                waiting.popleft()
        self._sequence = (self._sequence + count) % _SEQUENCES
        self.batch = Batch(builder.build(), n_bytes, completed)

    def acknowledged(self, first_offset: int) -> int:
        """Resolves what the batch completes; returns its bytes."""
        assert self.batch is not None
        _, n_bytes, completed = self.batch
        self.batch = None
        for future, count in completed:
            if not future.done():
                future.set_result(first_offset + count)
        return n_bytes

    def fail(self, error: BaseException) -> None:
        """Fails everything that is under way or waits, in order."""
        futures = [] if self.batch is None else [future for future, _ in self.batch.completed]
        futures += [append.future for append in self.waiting]
        self.batch = None
        self.waiting.clear()
        for future in futures:
            fail(future, error)


def fail(future: asyncio.Future[int], error: BaseException) -> None:
    """Who appends may leave it to `on_failure` to learn of it: no complaint that nobody looked at the future."""
    if not future.done():
        future.set_exception(error)
        future.exception()
