"""Partitions of one event's topic, merged to the serial order: an event is given once marks in all partitions stand
behind its epoch. Pure.

A partition that is far ahead of the others waits, so that what is gathered is bounded. The one that holds the others up
never does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from styx.model import event_topic
from styx.model.event_seen import EventMessage, cursor_of

GATHERED_MAX: Final = 5_000
"""Events of one partition that wait for marks in others; then it is not read on."""
GATHERED_BYTES_MAX: Final = 4 * 1024 * 1024
"""And bytes of their values."""
_NO_MARK: Final = -1
_LAST_PHASE: Final = 3
_LAST_ID: Final = "2" + "f" * 16 + ".d.ffffffff"

_decode_key = msgspec.json.Decoder(str | int | list[str | int]).decode


class Unreadable(ValueError):
    """A record in a topic of events is neither an event nor a mark."""


def message_of(event: str, record: Any) -> EventMessage | int:
    """The event of a record, or the epoch of a mark; raises `Unreadable`."""
    try:
        told = {name: bytes(value).decode() for name, value in record.headers}
        if event_topic.MARK in told:
            return int(told[event_topic.MARK])
        return EventMessage(
            event=event,
            version=int(told[event_topic.VERSION]),
            id=told[event_topic.ID],
            epoch=int(told[event_topic.EPOCH]),
            phase=int(told[event_topic.PHASE]),
            tid=int(told[event_topic.TID]),
            operator=told[event_topic.OPERATOR],
            key=_decode_key(told[event_topic.KEY]),
            time_us=int(told[event_topic.TIME]),
            value=msgspec.Raw(record.value),
        )
    except (KeyError, ValueError, TypeError) as error:  # msgspec's are ValueErrors
        raise Unreadable(
            f"offset {record.offset} of partition {record.partition} of {record.topic}: {error!r}; let nobody but the "
            "cluster write there"
        ) from None


def place_of(read: EventMessage | int) -> str:
    """A cursor: an event's own, or one behind all events of a mark's epoch."""
    if isinstance(read, EventMessage):
        return read.cursor
    return f"{cursor_of(read, _LAST_PHASE, '')}{_LAST_ID}"


class EventMerge:
    """Of `partitions`; events up to the cursor `after` are left out."""

    def __init__(self, partitions: Iterable[int], after: str | None) -> None:
        self._marked = dict.fromkeys(partitions, _NO_MARK)
        self._gathered: dict[int, list[EventMessage]] = {each: [] for each in self._marked}
        self._bytes = dict.fromkeys(self._marked, 0)
        self._after = after

    @property
    def gathered(self) -> int:
        """Events that wait for marks."""
        return sum(map(len, self._gathered.values()))

    @property
    def wanted(self) -> list[int]:
        """The partitions to read on."""
        least = min(self._marked.values(), default=_NO_MARK)
        return [
            partition
            for partition, gathered in self._gathered.items()
            if (len(gathered) < GATHERED_MAX and self._bytes[partition] < GATHERED_BYTES_MAX)
            or self._marked[partition] == least
        ]

    def take(self, partition: int, read: Iterable[EventMessage | int]) -> None:
        """Takes the next records of a partition."""
        gathered = self._gathered[partition]
        for each in read:
            if not isinstance(each, EventMessage):
                self._marked[partition] = max(self._marked[partition], each)
            elif self._after is None or each.cursor > self._after:
                gathered.append(each)
                self._bytes[partition] += len(each.value)

    def ready(self) -> list[EventMessage]:
        """The events that all marks are behind, in the serial order; each is given once."""
        cut = min(self._marked.values(), default=_NO_MARK)
        found: list[EventMessage] = []
        for partition, gathered in self._gathered.items():
            count = next((at for at, each in enumerate(gathered) if each.epoch > cut), len(gathered))
            found += gathered[:count]
            self._gathered[partition] = gathered[count:]
            self._bytes[partition] -= sum([len(each.value) for each in gathered[:count]])
        found.sort(key=_cursor)
        return found


def _cursor(message: EventMessage) -> str:
    return message.cursor
