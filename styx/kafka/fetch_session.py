"""A fetch session: a broker remembers which partitions a tail reads and from where, so a fetch names only what has
changed, and an answer only where something came (KIP-227). It decides nothing about what is read.

Where most partitions have changed, as under load, a fetch beside the session is cheaper for the broker. A broker may
forget a session at any time, or have no room for one. Then all partitions are named again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from styx.kafka.wire import Fetch, Fetched, fetch_request

_FIRST_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1
_FORGOTTEN: Final = (70, 71)
"""Kafka's codes: there is no such session, or it expects another epoch."""


class FetchSession:
    """Of one tail with one broker. After a fetch without an answer it has to be dropped."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = _FIRST_EPOCH
        self._known: dict[int, int] = {}
        """Partitions and offsets as the broker remembers them."""
        self._last: Mapping[int, int] = {}
        self._beside = False

    def fetch(
        self, topic: str, wanted: Mapping[int, int], *, wait_ms: int, bytes_max: int, partition_bytes_max: int
    ) -> Fetch:
        """The next fetch: `wanted` maps all partitions to their offsets."""
        known, named, left = self._known, wanted, list[int]()
        last, self._last = self._last, dict(wanted)
        begun = self._epoch != _FIRST_EPOCH
        self._beside = begun and 2 * len(_changed(last, wanted)) > len(wanted)
        if begun and not self._beside:
            named, left = _changed(known, wanted), [partition for partition in known if partition not in wanted]
        request = fetch_request(
            topic, named, wait_ms=wait_ms, bytes_max=bytes_max, partition_bytes_max=partition_bytes_max
        )
        if not self._beside:
            self._known = dict(wanted)
            request.session = (self._id, self._epoch, left)
        return request

    def took(self, answer: Any) -> bool:
        """Learns from an answer; False if the broker has forgotten the session, and nothing was read."""
        if self._beside or not isinstance(answer, Fetched):
            return True  # the session is as it was; an old broker has none that we know of
        if answer.code in _FORGOTTEN and self._epoch != _FIRST_EPOCH:
            self._id = 0
            self.drop()
            return False
        self._id = answer.session
        self._epoch = _FIRST_EPOCH if not answer.session else self._epoch % _EPOCH_MAX + 1
        return True

    def drop(self) -> None:
        """The next fetch names all partitions, and ends the session if there is one."""
        self._epoch = _FIRST_EPOCH


def _changed(before: Mapping[int, int], wanted: Mapping[int, int]) -> dict[int, int]:
    return {partition: offset for partition, offset in wanted.items() if before.get(partition) != offset}
