"""What a replay gives, matched with what stands in the log, while both are read: each in the order of its partition,
except where a recovery has appended later what was lost.

What the log has ahead of the replay is kept until the replay comes to it. If that is too much, nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from styx.audit.verdict import CannotJudge

AHEAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""Records of the log that the replay has not come to."""
_ENTRY_BYTES: Final = 200
"""What one costs beside its bytes."""

K = TypeVar("K")


class Matching(Generic[K]):
    """The records of some partitions, by name; `open_partition` reads one, as (key, record)."""

    def __init__(self, open_partition: Callable[[str], Iterator[tuple[K, bytes]]]) -> None:
        self._open = open_partition
        self._partitions: dict[str, Iterator[tuple[K, bytes]]] = {}
        self._ahead: dict[K, bytes] = {}
        self._bytes = 0

    def take(self, partition: str, key: K) -> bytes | None:
        """The record of this key, once; None if the partition has none. Raises `CannotJudge`."""
        found = self._ahead.pop(key, None)
        if found is not None:
            self._bytes -= len(found) + _ENTRY_BYTES
            return found
        records = self._partitions.get(partition)
        if records is None:
            records = self._partitions[partition] = self._open(partition)
        for each, record in records:
            if each == key:
                return record
            self._keep(each, record)
        return None

    def rest(self, partitions: list[str]) -> Iterator[tuple[K, bytes]]:
        """All that was not taken, of partitions that were never asked for as well."""
        yield from self._ahead.items()
        self._ahead = {}
        for partition in partitions:
            yield from self._partitions.get(partition) or self._open(partition)

    def _keep(self, key: K, record: bytes) -> None:
        # The first one stands: a reply or event is appended once, and what follows it is nothing of this engine's.
        if key in self._ahead:
            return
        self._ahead[key] = record
        self._bytes += len(record) + _ENTRY_BYTES
        if self._bytes > AHEAD_BYTES_MAX:
            raise CannotJudge(
                f"the log has more than {AHEAD_BYTES_MAX} bytes of replies or events that are not in the order of "
                "their epochs"
            )
