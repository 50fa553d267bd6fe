"""Appends to one partition: those that wait, those in the batch that is under way, and who is told of their end.

Pure bookkeeping, no I/O.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from styx.kafka.lane import Add

RECORD_BYTES_MAX: Final = 8 * 1024 * 1024 - 4096
"""Key, value and headers of one record: what topics allow for a batch, without its frame."""

NewRecord: TypeAlias = tuple[bytes | None, bytes, list[tuple[str, bytes | None]]]
"""Key, value, headers."""

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
    """Records of `n_bytes` that belong to one future. So many are `taken` into batches; the last one of these has so
    many records up to the append's end.
    """

    __slots__ = ("future", "n_bytes", "records", "taken", "up_to")

    def __init__(self, records: Sequence[NewRecord], n_bytes: int, future: asyncio.Future[int]) -> None:
        self.records = records
        self.n_bytes = n_bytes
        self.future = future
        self.taken = 0
        self.up_to = 0


class Appends:
    """A partition's; a `Queue` of a lane."""

    __slots__ = ("_ending", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Append] = deque()
        self._ending: list[Append] = []

    def fill(self, add: Add, now_ms: int) -> int:
        """As `Queue.fill`; an append may be spread over batches."""
        count, waiting, ending = 0, self.waiting, self._ending
        while waiting:
            append = waiting[0]
            records = append.records
            for index in range(append.taken, len(records)):
                record = records[index]
                if add(count, now_ms, record[0], record[1], record[2]) is None:
                    append.taken = index
                    return count
                count += 1
            append.up_to = count
            ending.append(append)
            waiting.popleft()
        return count

    def acknowledged(self, first_offset: int) -> int:
        """Resolves the appends that end in the batch; returns their bytes."""
        ending, self._ending = self._ending, []
        n_bytes = 0
        for append in ending:
            n_bytes += append.n_bytes
            if not append.future.done():
                append.future.set_result(first_offset + append.up_to)
        return n_bytes

    def fail(self, error: BaseException) -> None:
        """Fails everything that is under way or waits, in order."""
        failing, self._ending = [*self._ending, *self.waiting], []
        self.waiting.clear()
        for append in failing:
            fail(append.future, error)


def fail(future: asyncio.Future[int], error: BaseException) -> None:
    """Who appends may leave it to `on_failure` to learn of it: no complaint that nobody looked at the future."""
    if not future.done():
        future.set_exception(error)
        future.exception()
