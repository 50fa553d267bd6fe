"""A topic in memory, which a feed reads, and to which all can happen that can happen to somebody else's topic."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from styx.cluster.ingest.source import Bounds, OutOfRange, SourceRecord
from styx.kafka.topic_look import Look

READ_MAX = 37
"""Records of a partition that one read gives."""


class FakeRecord(NamedTuple):
    """A record as aiokafka gives it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass
class FakeTopic:
    """`records` by partition; `first` is the first offset that a partition has. No `topic_id`: there is no topic."""

    records: list[list[FakeRecord]]
    first: list[int] = field(default_factory=list)
    topic_id: str = "t1"
    away: bool = False
    looks: int = 0
    marks: dict[int, int] = field(default_factory=dict)
    """By partition, offsets behind its last record that no reader is given."""

    def __post_init__(self) -> None:
        self.first = self.first or [0] * len(self.records)

    def write(self, partition: int, value: bytes | None) -> None:
        """Appends a record."""
        offset = self.end(partition)
        self.records[partition].append(FakeRecord(offset, 1_700_000_000_000, None, value))

    def end(self, partition: int) -> int:
        """The offset behind the last record, and behind what follows it that nobody is given."""
        last = self.records[partition][-1].offset + 1 if self.records[partition] else self.first[partition]
        return max(last, self.marks.get(partition, 0))

    def delete_before(self, partition: int, offset: int) -> None:
        """As a retention time does."""
        self.first[partition] = offset
        self.records[partition] = [each for each in self.records[partition] if each.offset >= offset]

    def source(self) -> FakeSource:
        """A connection."""
        return FakeSource(self)


class FakeSource:
    """One connection to a topic."""

    def __init__(self, topic: FakeTopic) -> None:
        self._topic = topic
        self._positions: dict[int, int] = {}
        self._paused: set[int] = set()

    async def open(self) -> None:
        self._check()

    async def close(self) -> None:
        self._positions.clear()

    async def look(self) -> Look | None:
        self._check()
        self._topic.looks += 1
        topic = self._topic
        return Look(topic.topic_id, len(topic.records)) if topic.topic_id else None

    async def bounds(self, partition: int) -> Bounds:
        self._check()
        return Bounds(self._topic.first[partition], self._topic.end(partition))

    def read_from(self, positions: dict[int, int]) -> None:
        self._positions, self._paused = dict(positions), set()

    def pause(self, partition: int) -> None:
        self._paused.add(partition)

    def resume(self, partition: int) -> None:
        self._paused.discard(partition)

    async def read(self) -> dict[int, list[SourceRecord]]:
        await asyncio.sleep(0.001)
        self._check()
        found: dict[int, list[SourceRecord]] = {}
        outside = []
        for partition, position in self._positions.items():
            if partition in self._paused or partition >= len(self._topic.records):
                continue
            if not self._topic.first[partition] <= position <= self._topic.end(partition):
                outside.append(partition)
                continue
            records: list[SourceRecord] = [
                each  # type: ignore[misc]  # its fields cannot be set
                for each in self._topic.records[partition]
                if each.offset >= position
            ]
            if records:
                found[partition] = records[:READ_MAX]
                self._positions[partition] = found[partition][-1].offset + 1
        if outside:
            raise OutOfRange(outside)
        return found

    async def reached(self, partition: int) -> int:
        self._check()
        position = self._positions[partition]
        behind = not any(each.offset >= position for each in self._topic.records[partition])
        return self._topic.end(partition) if behind else position

    def _check(self) -> None:
        if self._topic.away:
            raise ConnectionError("nobody answers there")
