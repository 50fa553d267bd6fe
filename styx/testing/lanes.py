"""The lanes of a serial replay: what stands in each, to find a delivery that has overtaken another one, and entries
whose ids are not in the order in which their transactions were serialized.

It knows ids alone, and nothing of how an engine keeps its lanes.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from styx.model.lane import lane_of


class Lanes:
    """`misplaced` is the first entry that was given behind one with a higher id, with that one; None: all are right."""

    def __init__(self) -> None:
        self.misplaced: tuple[str, str] | None = None
        self._standing: dict[str, list[str]] = {}
        self._last: dict[str, str] = {}
        self._known: set[str] = set()

    def given(self, its_id: str) -> None:
        """A transaction has given this entry, or put it off."""
        lane = lane_of(its_id)
        if not lane:
            return
        standing = self._standing.setdefault(lane, [])
        at = bisect_left(standing, its_id)
        if standing[at : at + 1] != [its_id]:
            insort(standing, its_id)
        if its_id not in self._known:
            self._known.add(its_id)
            last = self._last.get(lane, "")
            if its_id < last and self.misplaced is None:
                self.misplaced = its_id, last
            self._last[lane] = max(last, its_id)

    def gone(self, its_id: str) -> None:
        """The entry was delivered, or given up."""
        standing = self._standing.get(lane_of(its_id), [])
        if its_id in standing:
            standing.remove(its_id)

    def together(self, its_id: str, count: int) -> list[str]:
        """So many entries of the lane from this one on, in order; fewer if there are no more."""
        standing = self._standing.get(lane_of(its_id), [])
        at = bisect_left(standing, its_id)
        return standing[at : at + count]

    def before(self, its_id: str) -> str | None:
        """The first entry of the lane, if it is another one."""
        standing = self._standing.get(lane_of(its_id), [])
        return standing[0] if standing and standing[0] < its_id else None
