"""Fetching records of many partitions with one request to each broker, and decoding the answers.

Sees records as soon as they are replicated, whether their transaction is committed or not. Control records are left
out, and leave gaps in the offsets; so are strangers' records, where only the engine appends. Repeats nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords

from styx.kafka.wire import Fetch

_READ_UNCOMMITTED = 0
_NO_OFFSET = -1


class Damaged(Exception):
    """A batch does not fit its checksum, or cannot be taken apart."""


class Unreadable(NamedTuple):
    """Stands for a record that a broker took from somebody else, and that cannot be read, or has another's offset."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Chunk(NamedTuple):
    """What came of one partition. `end` is behind its last record; `code` is 0 or the broker's error."""

    code: int
    end: int
    data: bytes

    def next_offset(self, position: int) -> int:
        """Where to fetch on, behind control records too."""
        batches = MemoryRecords(self.data)
        while batches.has_next():
            position = max(position, batches.next_batch().next_offset)
        return position

    def records(self, position: int, stranger: Callable[[int], None] | None = None) -> Iterator[Any]:
        """aiokafka's records from `position` on, verified, each offset once. Raises `Damaged`.

        With `stranger`, only those of transactions, as which the engine appends all it does; `stranger` is told the
        offset of each other one, which is not decoded. Without, anybody may have appended: brokers check neither
        headers nor offsets within a batch, so from the first record on that is not in order, what remains of its batch
        is `Unreadable`.
        """
        for batch in self._batches():
            following, end = batch.base_offset, batch.next_offset
            if stranger is not None and not batch.is_transactional:
                for offset in range(max(position, following), end):
                    stranger(offset)
                continue
            try:
                for record in batch:
                    offset = record.offset
                    if not following <= offset < end:
                        raise Damaged(f"the batch at offset {batch.base_offset} has a record at offset {offset}")
                    following = offset + 1
                    # A batch comes whole, whatever the offset asked for.
                    if offset >= position:
                        yield record
            except Exception as error:  # noqa: BLE001 - whatever its bytes make of aiokafka's reader
                if stranger is not None:
                    raise Damaged(str(error)) from None
                for offset in range(max(position, following), end):
                    yield Unreadable(offset, batch.max_timestamp)

    def behind_damage(self, position: int) -> int:
        """The offset behind the batch at `position`, which is damaged; the next one if its length is not credible."""
        try:
            batches = MemoryRecords(self.data)
            while batches.has_next():
                batch = batches.next_batch()
                behind: int = batch.next_offset
                if behind > position and batch.is_control_batch and batch.validate_crc():
                    position = behind
                elif behind > position:
                    return behind if behind <= self.end else position + 1
        except Exception:  # noqa: BLE001 - whatever a damaged batch makes of its reader
            return position + 1
        return position + 1

    def _batches(self) -> Iterator[Any]:
        """Those that came whole, verified, without control records. Raises `Damaged`."""
        batches = MemoryRecords(self.data)
        try:
            while batches.has_next():
                batch = batches.next_batch()
                if not batch.validate_crc():
                    raise Damaged(f"the checksum of the batch at offset {batch.base_offset} is wrong")
                if not batch.is_control_batch:
                    yield batch
        except CorruptRecordException as error:
            raise Damaged(str(error)) from None


async def fetch(
    send: Callable[[Any], Awaitable[Any]],
    topic: str,
    positions: dict[int, int],
    *,
    wait_ms: int,
    bytes_max: int,
    partition_bytes_max: int,
) -> dict[int, Chunk]:
    """One request by `send`; waits up to `wait_ms` for a first record. The first of `positions` come first.

    Raises what `send` raises.
    """
    wanted = [(partition, offset, partition_bytes_max) for partition, offset in positions.items()]
    answer = await send(Fetch(wait_ms, 1, bytes_max, _READ_UNCOMMITTED, [(topic, wanted)]))
    return {
        entry[0]: Chunk(code=entry[1], end=entry[2], data=entry[-1] or b"")
        for _, partitions in answer.topics
        for entry in partitions
    }
