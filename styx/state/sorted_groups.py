"""Sorted entries by group: a plain list for each group, and a list of chunks for a group with many entries.

In a plain list, an entry that comes or goes moves all behind it: among a million this takes longer than the transaction
that does it. In chunks it moves at most a chunk. Which form a group has makes no difference to what it gives.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from styx.relational.index_range import Group

PLAIN_MAX: Final = 1_024
"""Entries of a plain list."""
CHUNK_MAX: Final = 1_024
"""Entries of a chunk; a longer one is divided."""
_CHUNK: Final = 512
_COPIED_MAX: Final = 128
"""Entries of a range that are copied: to copy one costs less than to ask for it by its number, but most queries of long
ranges want only the first ones.
"""


class Chunks:
    """A sorted list in chunks, none of them empty. `length`: of all."""

    __slots__ = ("_chunks", "_lowest", "length")

    def __init__(self, entries: list[Any]) -> None:
        """The entries are sorted."""
        self._chunks: list[list[Any]] = [entries[at : at + _CHUNK] for at in range(0, len(entries), _CHUNK)]
        self._lowest: list[Any] = [chunk[0] for chunk in self._chunks]
        self.length = len(entries)

    def add(self, entry: Any) -> None:
        """Puts an entry in its place."""
        at = len(self._chunks) - 1
        chunk = self._chunks[at]
        if chunk[-1] < entry:  # as most do: numbers and times grow
            chunk.append(entry)
        else:
            at = self._chunk_of(entry)
            chunk = self._chunks[at]
            insort(chunk, entry)
            self._lowest[at] = chunk[0]
        self.length += 1
        if len(chunk) > CHUNK_MAX:
            half = len(chunk) // 2
            self._chunks.insert(at + 1, chunk[half:])
            self._lowest.insert(at + 1, chunk[half])
            del chunk[half:]

    def take(self, bound: Any) -> Any:
        """Removes and gives the first entry that is not below the bound; there is one."""
        at, place = self._place(bound)
        chunk = self._chunks[at]
        entry = chunk.pop(place)
        self.length -= 1
        if chunk:
            self._lowest[at] = chunk[0]
        else:
            del self._chunks[at]
            del self._lowest[at]
        return entry

    def rank(self, bound: Any) -> int:
        """How many entries are below the bound."""
        at, place = self._place(bound)
        for before in range(at):
            place += len(self._chunks[before])
        return place

    def between(self, low: Any, high: Any, backwards: bool) -> Iterator[Any]:
        """The entries with `low <= entry < high`, in order, or in the reverse order."""
        first, begin = self._place(low)
        last, end = self._place(high)
        pieces = self._pieces(first, begin, last, end, backwards)
        return chain.from_iterable(pieces)

    def all(self) -> list[Any]:
        """All entries, in order."""
        return [entry for chunk in self._chunks for entry in chunk]

    def _pieces(self, first: int, begin: int, last: int, end: int, backwards: bool) -> Iterator[list[Any]]:
        """The range's part of each chunk, taken when it is asked for: most queries end in the first one."""
        numbers = range(last, first - 1, -1) if backwards else range(first, last + 1)
        for at in numbers:
            if at < len(self._chunks):
                chunk = self._chunks[at]
                piece = chunk[begin if at == first else 0 : end if at == last else len(chunk)]
                if backwards:
                    piece.reverse()
                yield piece

    def _chunk_of(self, bound: Any) -> int:
        """The last chunk that begins at or below the bound, or the first one."""
        return max(bisect_right(self._lowest, bound) - 1, 0)

    def _place(self, bound: Any) -> tuple[int, int]:
        """The chunk of the first entry that is not below the bound, and its place there."""
        if not self._chunks:
            return 0, 0
        at = self._chunk_of(bound)
        chunk = self._chunks[at]
        place = bisect_left(chunk, bound)
        return (at + 1, 0) if place == len(chunk) else (at, place)


class SortedGroups:
    """The groups that have entries."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[Group, list[Any] | Chunks] = {}

    def put(self, group: Group, entries: list[Any]) -> None:
        """A group that was not there, with its sorted entries, of which there are some; the list is the index's."""
        self._groups[group] = entries if len(entries) <= PLAIN_MAX else Chunks(entries)

    def add(self, group: Group, entry: Any) -> int:
        """Puts an entry in its place. Returns how many the group has then."""
        entries = self._groups.get(group)
        if entries is None:
            self._groups[group] = [entry]
            return 1
        if isinstance(entries, list):
            if entries[-1] < entry:  # as in `Chunks.add`
                entries.append(entry)
            else:
                insort(entries, entry)
            length = len(entries)
            if length > PLAIN_MAX:
                self._groups[group] = Chunks(entries)
            return length
        entries.add(entry)
        return entries.length

    def take(self, group: Group, bound: Any) -> Any:
        """Removes and gives the group's first entry that is not below the bound; there is one."""
        entries = self._groups[group]
        if isinstance(entries, list):
            entry = entries.pop(bisect_left(entries, bound))
            if not entries:
                del self._groups[group]
            return entry
        entry = entries.take(bound)
        if entries.length <= PLAIN_MAX // 2:
            self._groups[group] = entries.all()
        return entry

    def walk(self, group: Group, low: Any, high: Any, backwards: bool) -> Iterator[Any]:
        """The group's entries with `low <= entry < high`, in order, or in the reverse order. Until the walk has ended,
        nothing may come or go.
        """
        entries = self._groups.get(group)
        if entries is None:
            return iter(())
        if isinstance(entries, list):
            begin, end = bisect_left(entries, low), bisect_left(entries, high)
            if end - begin <= _COPIED_MAX:
                found = entries[begin:end]
                if backwards:
                    found.reverse()
                return iter(found)
            return map(entries.__getitem__, range(end - 1, begin - 1, -1) if backwards else range(begin, end))
        return entries.between(low, high, backwards)

    def count(self, group: Group, low: Any, high: Any) -> int:
        """How many entries `walk` gives."""
        entries = self._groups.get(group)
        if entries is None:
            return 0
        if isinstance(entries, list):
            return max(0, bisect_left(entries, high) - bisect_left(entries, low))
        return max(0, entries.rank(high) - entries.rank(low))

    def length(self, group: Group) -> int:
        """How many entries the group has."""
        entries = self._groups.get(group)
        if entries is None:
            return 0
        return len(entries) if isinstance(entries, list) else entries.length

    def everything(self) -> dict[Group, list[Any]]:
        """All entries by group; for tests."""
        return {
            group: entries if isinstance(entries, list) else entries.all() for group, entries in self._groups.items()
        }
