"""The lists, reservations, rooms and seats that must exist after a run, by the witnesses of all clients, and the
differences from those found.

A reservation without an answer has happened as a whole or not at all. If it has happened, its user's list names one
reservation that no reply named, and that reservation must equal the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.deathstar.hotel.seen import Booked, Flight, Seen, Stay
from benchmarks.deathstar.hotel.settings import Settings
from benchmarks.driver.reading import Unread

SHOWN_MAX: Final = 20
"""Violations of one rule that are told; further ones are counted."""


class Found(NamedTuple):
    """The results of `user.reservations`, `reservation.read`, `hotel.occupancy` and `flight.occupancy`."""

    lists: Mapping[str, Any]
    reservations: Mapping[str, Any]
    rooms: Mapping[int, Any]
    seats: Mapping[Flight, Any]


class Ledger:
    """The sum of what all clients have seen. Without any of them, what the lists name must fit the rest."""

    def __init__(self, settings: Settings, reports: Iterable[Any]) -> None:
        self._rooms, self._seats = settings.capacity
        self.seen = Seen()
        self.counts: Counter[str] = Counter()
        self.witnessed = False
        for report in reports:
            self.witnessed = True
            self._add(msgspec.convert(report, Seen))

    def _add(self, seen: Seen) -> None:
        whole = self.seen
        for name in sorted(whole.made.keys() & seen.made.keys()):
            whole.violations.append(f"two clients were told of the reservation {name}")
        whole.made |= seen.made
        whole.places |= seen.places
        whole.unanswered += seen.unanswered
        whole.no_room += seen.no_room
        whole.offered += seen.offered
        whole.no_seat |= seen.no_seat
        whole.users |= seen.users
        whole.hotels |= seen.hotels
        whole.flights |= seen.flights
        whole.violations += seen.violations
        self.counts.update(seen.counts)

    def violations(self, found: Found) -> list[str]:
        """The violations. `found` must have everything that the clients have seen, and may have more."""
        untold = self._untold(found)
        standing = [*self.seen.made.values(), *(booked for booked in untold.values() if booked is not None)]
        rules = (
            self._replies(),
            _unreadable(found),
            self._kept(found),
            self._listed(found),
            self._in_order(found),
            self._explained(untold),
            self._taken_rooms(standing, found),
            self._taken_seats(standing, found),
            self._really_full(found),
            self._offered_too_late(),
        )
        return [text for rule in rules for text in _some_of([*rule])]

    def _untold(self, found: Found) -> dict[str, Booked | None]:
        """The reservations that lists name and no reply named; None for an entry that is not a reservation."""
        named = {name for names in found.lists.values() if isinstance(names, list) for name in names}
        return {name: _booked(found.reservations.get(name)) for name in sorted(named - self.seen.made.keys())}

    def _replies(self) -> Iterator[str]:
        yield from self.seen.violations
        more = self.counts["violations"] - len(self.seen.violations)
        if more > 0:
            yield f"and {more} replies more that cannot be"

    def _kept(self, found: Found) -> Iterator[str]:
        """Checks that each reservation in a reply equals its request."""
        for name, wanted in self.seen.made.items():
            kept = found.reservations.get(name)
            if _booked(kept) != wanted:
                yield f"reservation {name} is {kept} rather than {wanted}"

    def _listed(self, found: Found) -> Iterator[str]:
        """Checks that each reservation is in its user's list once, and in no other list."""
        times = Counter(
            (user, name) for user, names in found.lists.items() if isinstance(names, list) for name in names
        )
        for name, wanted in self.seen.made.items():
            if not times[wanted.user, name]:
                yield f"reservation {name} is not in the list of {wanted.user}"
        for (user, name), count in times.items():
            kept = _booked(found.reservations.get(name))
            owner = kept.user if kept else user
            if owner != user:
                yield f"{user} has the reservation {name} of {owner} in the list"
            if count > 1:
                yield f"{user} has the reservation {name} {count} times in the list"

    def _in_order(self, found: Found) -> Iterator[str]:
        """Each list has its reservations in the order in which they were made: the serial order."""
        made, places = self.seen.made, self.seen.places
        for user, names in found.lists.items():
            own = dict.fromkeys(names) if isinstance(names, list) else {}
            for name, later in pairwise(name for name in own if name in made and made[name].user == user):
                if places[later] < places[name]:
                    yield f"{user} has the reservation {later} behind the later one {name}"

    def _explained(self, untold: Mapping[str, Booked | None]) -> Iterator[str]:
        """Checks that no reservation is left of a request that did not commit."""
        unanswered = Counter(self.seen.unanswered)
        for name, booked in untold.items():
            if booked is None:
                yield f"a list names the reservation {name}, which does not stand"
                continue
            if self.witnessed and not unanswered[booked]:
                yield f"{booked.user} has the reservation {name}, {booked}, which no request without an answer explains"
            unanswered[booked] -= 1

    def _taken_rooms(self, standing: list[Booked], found: Found) -> Iterator[str]:
        """Each hotel has as many rooms as there were, and in each night as many are taken as are reserved."""
        reserved: dict[int, Counter[str]] = {}
        for booked in standing:
            reserved.setdefault(booked.hotel, Counter()).update(booked.stay.nights)
        for hotel, rooms in _results(found.rooms):
            nights, taken = reserved.get(hotel, Counter()), rooms["taken"]
            if rooms["rooms"] != self._rooms:
                yield f"hotel {hotel} has {rooms['rooms']} rooms rather than {self._rooms}"
            for night in sorted(nights.keys() | taken.keys()):
                if taken.get(night, 0) != nights[night]:
                    yield f"hotel {hotel}, {night}: {taken.get(night, 0)} rooms are taken, {nights[night]} are reserved"
                if taken.get(night, 0) > self._rooms:
                    yield f"hotel {hotel}, {night}: {taken[night]} rooms are taken of {self._rooms}"

    def _taken_seats(self, standing: list[Booked], found: Found) -> Iterator[str]:
        """Each flight has as many seats as there were, and as many are taken as are reserved."""
        reserved = Counter(booked.seat for booked in standing)
        for key, seats in _results(found.seats):
            if seats["seats"] != self._seats:
                yield f"flight {key} has {seats['seats']} seats rather than {self._seats}"
            if seats["taken"] != reserved[key]:
                yield f"flight {key}: {seats['taken']} seats are taken, {reserved[key]} are reserved"
            if seats["taken"] > self._seats:
                yield f"flight {key}: {seats['taken']} seats are taken of {self._seats}"

    def _really_full(self, found: Found) -> Iterator[str]:
        """Checks that hotels and flights that a reply called full are full at the end, because nothing is given
        back.
        """
        rooms, seats = dict(_results(found.rooms)), dict(_results(found.seats))
        for stay in sorted({stay for stay, _ in self.seen.no_room}):
            if stay.hotel in rooms:
                taken = rooms[stay.hotel]["taken"]
                if all(taken.get(night, 0) < self._rooms for night in stay.nights):
                    yield f"hotel {stay.hotel} was said to be full from {stay.in_date} to {stay.out_date}, and is not"
        for key in sorted(self.seen.no_seat):
            if key in seats and seats[key]["taken"] < self._seats:
                yield f"flight {key} was said to be full, and is not"

    def _offered_too_late(self) -> Iterator[str]:
        """Checks that a stay without a room in one epoch is not offered in a later one; nor is a longer stay."""
        full: dict[int, list[tuple[Stay, int]]] = {}
        for stay, epoch in self.seen.no_room:
            full.setdefault(stay.hotel, []).append((stay, epoch))
        for offered, epoch in self.seen.offered:
            for stay, since in full.get(offered.hotel, ()):
                if since < epoch and stay.within(offered):
                    yield f"{offered} was offered in epoch {epoch}, and {stay} had no room in epoch {since}"


def _results(read: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    return ((key, result) for key, result in read.items() if not isinstance(result, Unread))


def _unreadable(found: Found) -> Iterator[str]:
    for what, read in (("the list of", found.lists), ("hotel", found.rooms), ("flight", found.seats)):
        for key, result in read.items():
            if isinstance(result, Unread):
                yield f"{what} {key}: {result}"


def _booked(read: Any) -> Booked | None:
    """A reservation that was read, if it is one."""
    return Booked(**read) if isinstance(read, dict) else None


def _some_of(violations: list[str]) -> list[str]:
    more = len(violations) - SHOWN_MAX
    return violations if more <= 0 else [*violations[:SHOWN_MAX], f"and {more} more of this kind"]
