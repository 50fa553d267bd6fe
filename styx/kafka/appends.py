"""Appends to one partition: those that wait, those in the batch that is under way, and the future of each.

Apart from the appender, because this module is compiled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from styx.kafka.producer import Add

RECORD_BYTES_MAX: Final = 8 * 1024 * 1024 - 4096
"""Key, value and headers of one record: a topic's limit for a batch, without the batch's frame."""

NewRecord: TypeAlias = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Key, value, headers."""

_FRAME_BYTES: Final = 32
"""About the size of a record without contents."""


def size_of(record: NewRecord) -> int:
    """Bytes of a record, its frame included, for limits."""
    key, value, headers = record
    size = _FRAME_BYTES if value is None else _FRAME_BYTES + len(value)
    if key is not None:
        size += len(key)
    for name, content in headers:
        size += len(name) + len(content or b"")
    return size


class Append:
    """Records of `n_bytes` that belong to one future. `taken` of them are in batches; `up_to` is the number of records
    of the last batch up to the end of the append.
    """

    __slots__ = ("future", "n_bytes", "records", "taken", "up_to")

    def __init__(self, records: Sequence[NewRecord], n_bytes: int, future: asyncio.Future[int]) -> None:
        self.records = records
        self.n_bytes = n_bytes
        self.future = future
        self.taken = 0
        self.up_to = 0


class Appends:
    """Appends to one partition: those that wait, and those that end in the batch under way. A `Queue` of a lane."""

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
        """Fails all appends, in order."""
        failing, self._ending = [*self._ending, *self.waiting], []
        self.waiting.clear()
        for append in failing:
            fail(append.future, error)


def fail(future: asyncio.Future[int], error: BaseException) -> None:
    """Fails a future; asyncio does not complain if only `on_failure` is listened to."""
    if not future.done():
        future.set_exception(error)
        future.exception()
