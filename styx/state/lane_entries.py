"""The entries of one lane, in the order of their ids, which is the order in which their calls are made.

Entries that are gone may be among them: whoever asks finds out, and drops those at the beginning. It is nearly always
the end to which an entry is added, and the beginning from which they go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

InLane = tuple[str, str, Any]
"""(id, table, key) of an entry."""


class LaneEntries:
    """`entries` may be in any order, and have other ids each."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[InLane]) -> None:
        self._entries = deque(sorted(entries))

    def add(self, entry: InLane) -> bool:
        """Adds an entry, unless it is there; whether it is the first now."""
        entries, its_id = self._entries, entry[0]
        if not entries or entries[-1][0] < its_id:
            entries.append(entry)
            return len(entries) == 1
        # A transaction may commit behind another one whose ids are higher. Or the entry is put off.
        at = bisect_left(entries, (its_id,))  # before the entry with this id
        if entries[at][0] != its_id:
            entries.insert(at, entry)
        return not at

    @property
    def first(self) -> InLane | None:
        """The first entry, None if there is none."""
        return self._entries[0] if self._entries else None

    def drop_first(self) -> None:
        """Forgets the first entry, which is gone."""
        self._entries.popleft()

    def behind_first(self) -> Iterator[InLane]:
        """All but the first, in order; nothing may be added meanwhile."""
        return islice(self._entries, 1, None)
