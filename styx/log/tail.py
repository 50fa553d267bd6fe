"""The log's tail: records that are appended in memory and not yet durable, and the bounds of all partitions.

The engine's thread appends and takes groups; the writer's thread reports committed groups. Each number has one writing
thread, so there is no lock.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from styx.log.base import LogOverloaded, LogTruncated, Stream

_TIMESTAMP_END: Final = 2**63


class Run(NamedTuple):
    """Consecutive records of one partition, column by column."""

    stream: Stream
    partition: int
    first_offset: int
    timestamps_us: list[int]
    payloads: list[bytes]


class Group(NamedTuple):
    """The records of one flush, which become durable together."""

    lsn: int
    """LSN of its last record."""
    bytes_end: int
    """Payload bytes ever appended, up to and with this group."""
    runs: list[Run]


class _Partition:
    __slots__ = ("durable_next", "first", "next", "partition", "payloads", "stream", "timestamps_us")

    def __init__(self, stream: Stream, partition: int, first: int, next_offset: int) -> None:
        self.stream = stream
        self.partition = partition
        self.first = first
        self.durable_next = next_offset
        self.next = next_offset
        self.timestamps_us: list[int] = []
        self.payloads: list[bytes] = []


class LogTail:
    """The part of a `Log` that is the same whatever makes the records durable: bounds and unflushed records.
    `records_max` and `bytes_max` limit the records that are not yet durable.
    """

    def __init__(self, records_max: int, bytes_max: int) -> None:
        self.lsn = 0
        self.durable_lsn = 0
        self._bytes_appended = 0
        self._bytes_durable = 0
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._partitions: dict[tuple[int, int], _Partition] = {}
        self._unflushed: list[_Partition] = []

    @property
    def backlog_records(self) -> int:
        return self.lsn - self.durable_lsn

    @property
    def backlog_bytes(self) -> int:
        return self._bytes_appended - self._bytes_durable

    def restore(self, stream: Stream, partition: int, first: int, next_offset: int) -> None:
        """Adds a partition that is on the disk with these bounds; before the first append."""
        self._partitions[stream, partition] = _Partition(stream, partition, first, next_offset)
        self.lsn += next_offset
        self.durable_lsn = self.lsn

    def append(self, stream: Stream, partition: int, timestamp_us: int, payload: bytes) -> int:
        """Queues one record; as in `Log.append`."""
        # Checked here, since in the writer one bad record would fail the log.
        if type(payload) is not bytes or not 0 <= timestamp_us < _TIMESTAMP_END:
            raise ValueError(
                f"append needs a payload of bytes and a timestamp from 0 to 2**63 - 1, not "
                f"{type(payload).__name__} at {timestamp_us}"
            )
        bytes_appended = self._bytes_appended + len(payload)
        if bytes_appended - self._bytes_durable > self._bytes_max or self.backlog_records >= self._records_max:
            raise self._overloaded(len(payload))
        into = self._partitions.get((stream, partition)) or self._new_partition(stream, partition)
        if not into.payloads:
            self._unflushed.append(into)
        into.timestamps_us.append(timestamp_us)
        into.payloads.append(payload)
        offset = into.next
        into.next = offset + 1
        self._bytes_appended = bytes_appended
        self.lsn += 1
        return offset

    def take(self) -> Group | None:
        """All records since the last take, None without any."""
        if not self._unflushed:
            return None
        runs = []
        for source in self._unflushed:
            first_offset = source.next - len(source.payloads)
            runs.append(Run(source.stream, source.partition, first_offset, source.timestamps_us, source.payloads))
            source.timestamps_us, source.payloads = [], []
        self._unflushed = []
        return Group(self.lsn, self._bytes_appended, runs)

    def committed(self, group: Group) -> None:
        """Takes note of a durable group; from the writer's thread, in the order of `take`."""
        for run in group.runs:
            self._partitions[run.stream, run.partition].durable_next = run.first_offset + len(run.payloads)
        self._bytes_durable = group.bytes_end
        self.durable_lsn = group.lsn

    def bounds(self, stream: Stream, partition: int) -> tuple[int, int]:
        found = self._partitions.get((stream, partition))
        return (found.first, found.next) if found else (0, 0)

    def durable_next(self, stream: Stream, partition: int) -> int:
        found = self._partitions.get((stream, partition))
        return found.durable_next if found else 0

    def check_retained(self, stream: Stream, partition: int, offset: int) -> None:
        """Raises `LogTruncated` if the record was released, `ValueError` for a negative offset."""
        if offset < 0:
            raise ValueError(f"offsets count from 0: {offset}")
        first, _ = self.bounds(stream, partition)
        if offset < first:
            raise LogTruncated(
                f"{Stream(stream).name} partition {partition}: record {offset} was released, the first one "
                f"left is {first}. Start from a newer snapshot."
            )

    def release(self, stream: Stream, partition: int, first_offset: int) -> bool:
        """As `Log.truncate`; False if the records were released before."""
        durable_next = self.durable_next(stream, partition)
        if first_offset > durable_next:
            raise ValueError(
                f"{Stream(stream).name} partition {partition} is durable up to {durable_next} only: records "
                f"below {first_offset} cannot be released"
            )
        found = self._partitions.get((stream, partition))
        if found is None or first_offset <= found.first:
            return False
        found.first = first_offset
        return True

    def _new_partition(self, stream: Stream, partition: int) -> _Partition:
        if partition < 0:
            raise ValueError(f"partitions count from 0: {partition}")
        created = _Partition(Stream(stream), partition, 0, 0)
        self._partitions[stream, partition] = created
        return created

    def _overloaded(self, payload_bytes: int) -> LogOverloaded:
        return LogOverloaded(
            f"{self.backlog_records} records with {self.backlog_bytes} bytes wait to become durable; one "
            f"more of {payload_bytes} bytes is over the limit of {self._records_max} records and "
            f"{self._bytes_max} bytes. Take fewer requests until the backlog shrinks."
        )
