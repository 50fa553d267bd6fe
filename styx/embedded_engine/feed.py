"""The requests that the log holds beyond a snapshot, brought back in pieces, so that a long log never fills the memory.

Requests that arrive after the load go to the worker directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from styx.log.base import Log, Record, Stream
from styx.set_aside.places import Place, without
from styx.worker.events import RequestsArrived

FEED_RECORDS: Final = 4096
"""Records of each slot that are read at once."""


class Feed:
    """Requests from `first_offsets` (by slot) to what is durable now; or, if `ends` are given, to before these."""

    def __init__(
        self,
        log: Log,
        first_offsets: Mapping[int, int],
        ends: Mapping[int, int] | None = None,
        aside: frozenset[Place] = frozenset(),
    ) -> None:
        self._aside = aside
        self._records: dict[int, Iterator[Record]] = {}
        for slot, first in first_offsets.items():
            records = log.read(Stream.REQUESTS, slot, first)
            self._records[slot] = records if ends is None else islice(records, max(0, ends[slot] - first))

    @property
    def exhausted(self) -> bool:
        """Everything has been given."""
        return not self._records

    def take(self) -> list[RequestsArrived]:
        """The next piece of each slot; raises `LogCorrupt`."""
        taken = []
        for slot, records in list(self._records.items()):
            arrivals = list(islice(records, FEED_RECORDS))
            if len(arrivals) < FEED_RECORDS:
                del self._records[slot]
            if arrivals:
                taken.append(RequestsArrived(slot, without(self._aside, slot, arrivals)))
        return taken
