"""How far a foreign topic's partition is taken: the state of an `Ingest`'s entity, and what is sent to it.

Data only. Offsets are Kafka's, and grow within one partition of one topic; they may have gaps.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

BATCH_RECORDS_MAX: Final = 500
"""Records of one batch, which is one transaction."""
WAITING_MAX: Final = 2_000
"""Records of one partition that are taken and not handled yet; at this number no further batch is taken. It
decides outcomes, which a replay repeats: another number needs another version of the protocol.
"""
GAPS_MAX: Final = 100
"""Ranges of offsets that were lost which are remembered with their bounds, the latest ones."""
FORMER_MAX: Final = 100
"""Topics of the same name before the present one that are remembered."""

TAKEN: Final = "taken"
BUSY: Final = "busy"
ELSEWHERE: Final = "elsewhere"


class Position(msgspec.Struct, gc=False):
    """`next`: the offset behind the last record that was taken. `topic_id`: which topic of that name it is an offset
    of, "" where the brokers do not tell. `taken` and `settled` count records that were taken, and those of them that
    have been handled or given up; `lost` counts offsets that were gone before they were read, and `gaps` are the latest
    of these ranges, from an offset to the one behind it. `former` are the topics of the name before, and `reached` how
    far the last ones of them were taken.
    """

    next: int
    topic_id: str = ""
    taken: int = 0
    settled: int = 0
    lost: int = 0
    gaps: list[tuple[int, int]] = []
    former: list[str] = []
    reached: list[int] = []

    def renew(self, topic_id: str, offset: int) -> bool:
        """Goes on in the topic with this id, at `offset`; or where it was left, if it is one of the former. A process
        that has seen that one long ago may have led here, but nothing is taken twice. Gives whether it has gone.
        """
        left = dict(zip(self.former[len(self.former) - len(self.reached) :], self.reached, strict=True))
        if not topic_id or topic_id == self.topic_id or (topic_id in self.former and topic_id not in left):
            return False
        unknown = [each for each in self.former if each not in left]
        following = left.pop(topic_id, offset)
        left[self.topic_id] = self.next
        self.former, self.reached = [*unknown, *left][-FORMER_MAX:], [*left.values()][-FORMER_MAX:]
        self.topic_id, self.next = topic_id, following
        return True

    @property
    def waiting(self) -> int:
        """Records that are taken and not handled yet."""
        return self.taken - self.settled


class RawRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record as it stands in the topic. `time_ms` is Kafka's timestamp. `too_large`: the bytes of a record that no
    request has room for; then the value is only its beginning.
    """

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = []
    too_large: int = 0


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """The records of a partition from the offset `begin` to the one before `end`, in order: all that stand there."""

    topic_id: str
    begin: int
    end: int
    records: list[RawRecord]


class Outcome(msgspec.Struct, array_like=True, frozen=True):
    """What became of a batch: `TAKEN`, also if all of it was taken before; `BUSY`, nothing was taken as too much waits;
    `ELSEWHERE`, nothing was taken because it does not continue what was taken before. `position`: as it is now.
    """

    what: str
    position: Position


def outcome_of(data: Any) -> Outcome:
    """The outcome in a reply; raises `msgspec.ValidationError`."""
    return msgspec.convert(data, Outcome)


def position_of(data: Any) -> Position:
    """The position in a reply; raises `msgspec.ValidationError`."""
    return msgspec.convert(data, Position)
