"""Counts replies that are in an app's replies topic twice.

A client cannot detect them: it takes the first reply to each request and skips all others, which may belong to other
clients. In the topic each reply carries the TID of its request, so a reply that was given twice has the same TID twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from styx.kafka.address import parse_kafka_url
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import topics_of
from styx.log.base import Stream


class Replies(NamedTuple):
    """The number of replies read, and how many of these were repetitions."""

    read: int
    repeated: int


class RepliesSeen(Protocol):
    """The stored replies. Its methods block, so call them on a thread."""

    def ends(self) -> dict[int, int]:
        """The present end of each partition. Raises `ConnectionError` or `EngineFailed`."""

    def since(self, offsets: Mapping[int, int]) -> Replies:
        """The replies after `offsets`, which are by partition. Raises as `ends` does."""


class RepliesTopic:
    """`RepliesSeen` of the app called `app_name` at `url`."""

    def __init__(self, url: str, app_name: str) -> None:
        self._address = parse_kafka_url(url)
        self._topics = topics_of(app_name)

    def ends(self) -> dict[int, int]:
        """See `RepliesSeen.ends`."""
        reader = KafkaReader(self._address, self._topics)
        try:
            return {partition: end for partition, (_, end) in reader.bounds_of(Stream.REPLIES).items()}
        finally:
            reader.close()

    def since(self, offsets: Mapping[int, int]) -> Replies:
        """See `RepliesSeen.since`."""
        reader = KafkaReader(self._address, self._topics)
        read = repeated = 0
        try:
            # All replies to one client are in one partition, and so are all replies to one request.
            for partition, offset in offsets.items():
                counted = count_replies(tid for _, _, tid, _ in reader.replies_of({partition: offset}))
                read, repeated = read + counted.read, repeated + counted.repeated
        finally:
            reader.close()
        return Replies(read, repeated)


def count_replies(tids: Iterable[int]) -> Replies:
    """Of the requests with these TIDs."""
    seen: set[int] = set()
    read = 0
    for tid in tids:
        read += 1
        seen.add(tid)
    return Replies(read, read - len(seen))
