"""A topic that others own, in virtual time, and all that they may do to it; with a reader of it for feeds.

Nothing is forgotten: `written` has every record that ever stood in it, for the check at the end.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from proof.landing_steps import Kind
from styx.cluster.ingest.source import Bounds, OutOfRange, SourceRecord
from styx.kafka.topic_look import Look

READ_MAX: Final = 7
"""Records of a partition that one read gives."""
READ_SECONDS: Final = 0.2
"""How long a reader waits for records, by its own clock."""


class ForeignRecord(NamedTuple):
    """A record as aiokafka gives it; `timestamp` is its number."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Written(NamedTuple):
    """A record that stood in the topic with this id."""

    topic_id: str
    partition: int
    offset: int
    number: int
    kind: Kind


@dataclass
class Partition:
    """`first` is the first offset that is kept, `end` the one behind the last."""

    records: list[ForeignRecord] = field(default_factory=list)
    first: int = 0
    end: int = 0


class ForeignTopic:
    """`away`: its brokers do not answer. Without `there` the topic is deleted. `deleted` are the numbers of records
    that may have gone before anybody read them.
    """

    def __init__(self, name: str, n_partitions: int) -> None:
        self.name = name
        self.away = False
        self.there = True
        self.partitions = [Partition() for _ in range(n_partitions)]
        self.written: list[Written] = []
        self.deleted: set[int] = set()
        self._made = 1

    @property
    def topic_id(self) -> str:
        """Another one for each topic of the name."""
        return f"t{self._made}"

    def write(self, partition: int, number: int, kind: Kind, value: bytes | None) -> None:
        """Appends a record; if there is no such partition, to the last one."""
        partition = min(partition, len(self.partitions) - 1)
        there = self.partitions[partition]
        there.records.append(ForeignRecord(there.end, number, None, value))
        self.written.append(Written(self.topic_id, partition, there.end, number, kind))
        there.end += 1

    def mark(self, partition: int) -> None:
        """Offsets pass that no reader sees: a transaction's mark, or what it has written and aborted."""
        self.partitions[min(partition, len(self.partitions) - 1)].end += 1

    def truncate(self, partition: int, behind: int) -> None:
        """Deletes all but the last `behind` offsets, as a time of retention does."""
        there = self.partitions[min(partition, len(self.partitions) - 1)]
        there.first = max(there.first, there.end - behind)
        self.deleted.update(each.timestamp for each in there.records if each.offset < there.first)
        there.records = [each for each in there.records if each.offset >= there.first]

    def grow(self) -> None:
        """There is one partition more."""
        self.partitions.append(Partition())

    def delete(self) -> None:
        """The topic is no more."""
        for partition in range(len(self.partitions)):
            self.truncate(partition, 0)
        self.there = False

    def make_anew(self) -> None:
        """Another topic has the name."""
        self._made += 1
        self.partitions = [Partition() for _ in self.partitions]
        self.there = True


class ForeignSource:
    """One connection to a topic: a `Source` of the feeds."""

    def __init__(self, topic: ForeignTopic) -> None:
        self._topic = topic
        self._positions: dict[int, int] = {}
        self._paused: set[int] = set()

    async def open(self) -> None:
        """As `Source.open`."""
        self._check()

    async def close(self) -> None:
        """As `Source.close`."""
        self._positions.clear()

    async def look(self) -> Look | None:
        """As `Source.look`."""
        self._check()
        await asyncio.sleep(0)
        topic = self._topic
        return Look(topic.topic_id, len(topic.partitions)) if topic.there else None

    async def bounds(self, partition: int) -> Bounds:
        """As `Source.bounds`."""
        await asyncio.sleep(0)
        there = self._partition(partition)
        return Bounds(there.first, there.end)

    def read_from(self, positions: dict[int, int]) -> None:
        """As `Source.read_from`."""
        self._positions, self._paused = dict(positions), set()

    def pause(self, partition: int) -> None:
        """As `Source.pause`."""
        self._paused.add(partition)

    def resume(self, partition: int) -> None:
        """As `Source.resume`."""
        self._paused.discard(partition)

    async def read(self) -> dict[int, list[SourceRecord]]:
        """As `Source.read`."""
        await asyncio.sleep(READ_SECONDS)
        found: dict[int, list[SourceRecord]] = {}
        outside = []
        for partition, position in self._positions.items():
            if partition in self._paused:
                continue
            there = self._partition(partition)
            if not there.first <= position <= there.end:
                outside.append(partition)
                continue
            records = [each for each in there.records if each.offset >= position][:READ_MAX]
            if records:
                found[partition] = [*map(_as_source, records)]
                self._positions[partition] = records[-1].offset + 1
        if outside:
            raise OutOfRange(outside)
        return found

    async def reached(self, partition: int) -> int:
        """As `Source.reached`."""
        there, position = self._partition(partition), self._positions[partition]
        return position if any(each.offset >= position for each in there.records) else there.end

    def _partition(self, number: int) -> Partition:
        self._check()
        if not self._topic.there or number >= len(self._topic.partitions):
            raise ConnectionError(f"{self._topic.name} has no partition {number}")
        return self._topic.partitions[number]

    def _check(self) -> None:
        if self._topic.away:
            raise ConnectionError("nobody answers there")


def _as_source(record: ForeignRecord) -> SourceRecord:
    return record  # type: ignore[return-value]  # its fields cannot be set
