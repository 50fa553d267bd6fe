"""The logs of events as they were read, in the serial order of their transactions; packed, because an hour's events are
millions. It judges nothing.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from benchmarks.marketplace.record import Place
from styx import Event
from styx.model.event_seen import EventSeen

T = TypeVar("T")

CHUNK: Final = 1_000
"""Events that are packed together."""
_LEVEL: Final = 1


class Told(NamedTuple, Generic[T]):
    """An event that was told: by which transaction, as which one of its events, when, at which entity.

    `(place, id)` sorts events as the serial order does.
    """

    place: Place
    id: str
    time: datetime
    key: Any
    value: T


class History:
    """The events of a run by their names. Iterating decodes them again each time."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}

    def add(self, event: Event[Any], told: Told[Any]) -> None:
        """Takes an event behind those of its kind that it has."""
        topic = self._topics.get(event.name)
        if topic is None:
            topic = self._topics[event.name] = _Topic(event)
        topic.add(told)

    def of(self, event: Event[T]) -> Iterator[Told[T]]:
        """All events of one kind."""
        topic = self._topics.get(event.name)
        return iter(()) if topic is None else iter(topic)

    def merged(self, *events: Event[Any]) -> Iterator[tuple[Event[Any], Told[Any]]]:
        """All events of these kinds, in one order."""
        streams = [_named(event, self.of(event)) for event in events]
        return heapq.merge(*streams, key=lambda each: (each[1].place, each[1].id))

    def transactions(self, *events: Event[Any]) -> Iterator[tuple[Place, list[tuple[Event[Any], Told[Any]]]]]:
        """The events of these kinds, each transaction's together."""
        for place, found in groupby(self.merged(*events), key=lambda each: each[1].place):
            yield place, list(found)

    def until(self, epoch: int) -> History:
        """What was told up to the end of that epoch."""
        made = History()
        for topic in self._topics.values():
            for told in topic:
                if told.place.epoch <= epoch:
                    made.add(topic.event, told)
        return made

    def count(self, event: Event[Any]) -> int:
        """How many events of one kind there are."""
        topic = self._topics.get(event.name)
        return 0 if topic is None else topic.count


def told_of(seen: EventSeen) -> Told[Any]:
    """What is kept of an event that was read."""
    return Told(Place(seen.epoch, seen.phase, seen.tid), seen.id, seen.time, seen.key, seen.value)


def _named(event: Event[Any], those: Iterator[Told[Any]]) -> Iterator[tuple[Event[Any], Told[Any]]]:
    return ((event, told) for told in those)


class _Topic:
    """The events of one kind."""

    def __init__(self, event: Event[Any]) -> None:
        self.event = event
        self.count = 0
        self._chunks: list[bytes] = []
        self._rest: list[Told[Any]] = []
        self._encode = msgspec.msgpack.Encoder().encode
        kind = tuple[tuple[int, int, int], str, datetime, int | list[int], event.type]  # type: ignore[name-defined]
        self._decode = msgspec.msgpack.Decoder(list[kind]).decode

    def add(self, told: Told[Any]) -> None:
        self.count += 1
        self._rest.append(told)
        if len(self._rest) == CHUNK:
            self._chunks.append(zlib.compress(self._encode(self._rest), _LEVEL))
            self._rest = []

    def __iter__(self) -> Iterator[Told[Any]]:
        for chunk in self._chunks:
            yield from _decoded(self._decode(zlib.decompress(chunk)))
        yield from list(self._rest)


def _decoded(found: Iterable[Any]) -> Iterator[Told[Any]]:
    for place, number, time, key, value in found:
        yield Told(Place(*place), number, time, tuple(key) if isinstance(key, list) else key, value)
