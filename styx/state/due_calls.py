"""Which calls of a slot's agendas are due: the order of what the agenda tables hold.

It is derived from the tables, kept up by their commits, and in no snapshot. What it gives depends on the tables and on
what was taken alone, never on the order of commits. It never changes a table.

A delivery that fails puts its entry off in a commit, and ends a moment later. Until then the entry is taken, so its new
place is kept with what is taken, and joins the order when the delivery lets go.

Of the entries of one lane (`styx.model.lane`) only the first has a place in the order, and none while a delivery from
the lane is under way. So a delivery that fails keeps the lane waiting until it is made or given up. With the first one
those behind it are taken that may be made in one transaction with it: a lane is quicker by that, and its order stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

from styx.model.agenda import AT_ONCE, decode_entry, due_of
from styx.model.lane import lane_of
from styx.state.lane_entries import InLane, LaneEntries

_SLACK: Final = 1_000
"""Places that may be outdated before the order is made anew, beside twice as many as it had when it was made."""

TOGETHER_MAX: Final = 64
"""Calls of one lane that one transaction makes."""
TOGETHER_BYTES_MAX: Final = 256 * 1024
"""Bytes of the entries of these calls, unless the first one alone has more."""
BEHIND_MAX: Final = 250
"""Calls behind the first ones of their lanes that an epoch takes of a slot, so that lanes do not keep requests from
their turn. A replay takes as many, so a release that changes one of these three raises `VERSION`.
"""

_Place = tuple[int, str, str, Any]
"""(due time, id, table, key) of an entry."""
Find = Callable[[str, Any], bytes | None]
"""Gives the present entry of a table under a key."""


class DueCall(NamedTuple):
    """An entry that was taken: its id, and where it stands. `behind` are the ids of those that follow it in its lane,
    of the same agenda, and are made in one transaction with it.
    """

    id: str
    table: str
    key: Any
    behind: tuple[str, ...] = ()


class DueCalls:
    """`taken` are the ids of entries whose delivery is under way, each with the place to which it was put off
    meanwhile, if it was; they are not given again until it has ended. Of entries that are made together it has the
    first.

    Calls after commit and timers have an order each, so that neither keeps the other from its turn. `_lanes` are the
    entries of each lane.
    """

    __slots__ = ("_at_once", "_entries", "_find", "_lanes", "_most", "_timers", "taken")

    def __init__(
        self,
        find: Find,
        entries: Callable[[], Iterable[tuple[str, Any, bytes]]],
        taken: dict[str, _Place | None] | None = None,
    ) -> None:
        """`entries` gives all (table, key, entry) that there are."""
        self.taken: dict[str, _Place | None] = {} if taken is None else taken
        self._find = find
        self._entries = entries
        self._at_once: list[_Place] = []
        self._timers: list[_Place] = []
        self._lanes: dict[str, LaneEntries] = {}
        self._most = 0
        self._make()

    def _make(self) -> None:
        taken = self.taken
        self._at_once, self._timers, self._lanes = [], [], {}
        lanes: dict[str, list[InLane]] = {}
        for table, key, data in self._entries():
            due_us, its_id = due_of(data)
            lane = lane_of(its_id)
            if lane:
                lanes.setdefault(lane, []).append((its_id, table, key))
            elif its_id not in taken:
                (self._timers if due_us else self._at_once).append((due_us, its_id, table, key))
        heapify(self._at_once)
        heapify(self._timers)
        self._lanes = {lane: LaneEntries(entries) for lane, entries in lanes.items()}
        for lane in lanes:
            self._open(lane)
        self._most = 2 * self._places + _SLACK

    @property
    def _places(self) -> int:
        return len(self._at_once) + len(self._timers)

    def take_up(self, its_id: str) -> None:
        """A snapshot has found this entry's delivery under way."""
        self.taken.setdefault(its_id)

    def let_go(self, its_id: str) -> None:
        """The entry's delivery has ended."""
        place = self.taken.pop(its_id, None)
        lane = lane_of(its_id)
        if lane:
            self._open(lane)
        elif place is not None:
            self._push(place)

    def put(self, table: str, key: Any, data: bytes) -> None:
        """An entry was committed."""
        due_us, its_id = due_of(data)
        place = (due_us, its_id, table, key)
        lane = lane_of(its_id)
        if its_id in self.taken:
            self.taken[its_id] = place
        elif lane:
            entries = self._lanes.get(lane)
            if entries is None:  # the usual one: nobody waits there
                self._lanes[lane] = LaneEntries([(its_id, table, key)])
                self._push(place)
            elif entries.add((its_id, table, key)):
                self._open(lane)
        else:
            self._push(place)

    def _push(self, place: _Place) -> None:
        heappush(self._timers if place[0] else self._at_once, place)

    # Lanes -------------------------------------------------------------------------------------------------

    def _open(self, lane: str) -> None:
        """Gives the first entry of a lane its place, unless its delivery is under way: till then it stands."""
        first = self._first(lane)
        if first is not None and first[1] not in self.taken:
            self._push(first)

    def _first(self, lane: str) -> _Place | None:
        """The place of the first entry of a lane that still stands there; forgets those before it."""
        entries = self._lanes.get(lane)
        if entries is None:
            return None
        while (entry := entries.first) is not None:
            its_id, table, key = entry
            data = self._find(table, key)
            if data is not None:
                due_us, its_present_id = due_of(data)
                if its_present_id == its_id:
                    return due_us, its_id, table, key
            entries.drop_first()
        del self._lanes[lane]
        return None

    def _behind(self, place: _Place, most: int) -> tuple[str, ...]:
        """Those that may be made in one transaction with the first entry of a lane, which stands at `place`: of the
        same agenda, and due at once. One that was put off has a time, and is made alone.

        The first alone is among the `taken`: while it is, none of its lane is given.
        """
        due_us, its_id, table, key = place
        lane = lane_of(its_id)
        if not lane or due_us != AT_ONCE or most < 1:
            return ()
        found: list[str] = []
        data = self._find(table, key)
        room = TOGETHER_BYTES_MAX - len(data or b"")
        for next_id, its_table, its_key in self._lanes[lane].behind_first():
            data = self._find(its_table, its_key)
            if data is None:
                continue
            room -= len(data)
            alike = due_of(data) == (AT_ONCE, next_id) and its_table == table and its_key[:-1] == key[:-1]
            if not alike or room < 0:
                break
            found.append(next_id)
            if len(found) == most:
                break
        return tuple(found)

    def _has_turn(self, place: _Place) -> bool:
        """Whether an entry, which stands, is in no lane, or the first one of its lane."""
        lane = lane_of(place[1])
        if not lane:
            return True
        entries = self._lanes.get(lane)
        first = None if entries is None else entries.first
        return (first is not None and first[0] == place[1]) or self._first(lane) == place

    # What is due -------------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Forgets the places of entries that were removed or replaced before their time, if they may be many."""
        if len(self._at_once) + len(self._timers) > self._most:  # each write of an agenda asks
            self._make()

    @property
    def waiting(self) -> bool:
        """Whether there may be a call that is due as soon as possible."""
        return self._next(self._at_once) is not None

    @property
    def next_us(self) -> int | None:
        """When the next timer is due, in microseconds since 1970; None without one."""
        place = self._next(self._timers)
        return None if place is None else place[0]

    @property
    def oldest_us(self) -> int | None:
        """Since when the first call is due, or will be; one that is due as soon as possible since it was given."""
        place, next_us = self._next(self._at_once), self.next_us
        if place is None:
            return next_us
        data = self._find(place[2], place[3])
        assert data is not None, "a place of an entry that has gone"
        given_us = decode_entry(data).given_us
        return given_us if next_us is None else min(given_us, next_us)

    def has_due(self, now_us: int) -> bool:
        """Whether `take` would give an entry."""
        if self.waiting:
            return True
        next_us = self.next_us
        return next_us is not None and next_us <= now_us

    def take(self, now_us: int, limit: int) -> list[DueCall]:
        """At most `limit` entries that are due, those of one order in their order; half of the room for each, and what
        one of them leaves for the other. Those behind one in its lane are not counted, and are `BEHIND_MAX` at most.
        """
        at_once, timers = list[DueCall](), list[DueCall]()
        self._pop(self._at_once, AT_ONCE, -(-limit // 2), at_once)
        self._pop(self._timers, now_us, limit - len(at_once), timers)
        self._pop(self._at_once, AT_ONCE, limit - len(timers), at_once)
        return at_once + timers

    def _pop(self, heap: list[_Place], now_us: int, limit: int, found: list[DueCall]) -> None:
        """Adds to what was `found`, up to `limit`."""
        behind = sum([len(call.behind) for call in found])
        while len(found) < limit:
            place = self._next(heap)
            if place is None or place[0] > now_us:
                break
            heappop(heap)
            _, its_id, table, key = place
            self.taken[its_id] = None  # at once: the order may have a place twice
            call = DueCall(its_id, table, key, self._behind(place, min(TOGETHER_MAX - 1, BEHIND_MAX - behind)))
            behind += len(call.behind)
            found.append(call)

    def _next(self, heap: list[_Place]) -> _Place | None:
        """The first place of an entry that still stands there; forgets those before it."""
        while heap:
            due_us, its_id, table, key = heap[0]
            data = self._find(table, key)
            stands = data is not None and due_of(data) == (due_us, its_id) and its_id not in self.taken
            if stands and self._has_turn(heap[0]):
                return heap[0]
            heappop(heap)
        return None
