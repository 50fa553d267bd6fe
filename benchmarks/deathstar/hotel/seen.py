"""One client's witness for the audit, as data that travels between processes."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

import msgspec

Flight = tuple[int, str]
"""A flight's key: its number and the day."""


Place = tuple[int, int, int]
"""A transaction's in the serial order: epoch, phase and TID."""


def nights_between(in_date: str, out_date: str) -> list[date]:
    """Each night as the day on which it begins; not by the application, which may be wrong."""
    first, last = date.fromisoformat(in_date), date.fromisoformat(out_date)
    return [first + timedelta(days=number) for number in range((last - first).days)]


class Stay(NamedTuple):
    """In a hotel, from one day to another, both as in 2015-04-09."""

    hotel: int
    in_date: str
    out_date: str

    def within(self, longer: Stay) -> bool:
        """Whether the longer one has all of these nights, in the same hotel."""
        return self.hotel == longer.hotel and longer.in_date <= self.in_date and self.out_date <= longer.out_date

    @property
    def nights(self) -> list[str]:
        """Each as the day on which it begins."""
        return [night.isoformat() for night in nights_between(self.in_date, self.out_date)]


class Booked(NamedTuple):
    """The arguments of a request to reserve, in the order of `reserve`; also the result of `reservation.read`."""

    user: str
    hotel: int
    in_date: str
    out_date: str
    flight: int

    @property
    def stay(self) -> Stay:
        """The room's part."""
        return Stay(self.hotel, self.in_date, self.out_date)

    @property
    def seat(self) -> Flight:
        """The seat's part."""
        return self.flight, self.in_date


class Seen(msgspec.Struct):
    """`made` are the reservations of which a reply told the id, `places` where in the serial order each was made,
    `unanswered` those that may have been made or not.

    `no_room` and `no_seat` are what replies said to have nothing left, and `offered` what searches found: stays, with
    the first epoch in which there was no room, or the last one in which there was. `users`, `hotels` and `flights` are
    those that any request to reserve named, whatever came of it.
    """

    made: dict[str, Booked] = {}
    places: dict[str, Place] = {}
    unanswered: list[Booked] = []
    no_room: list[tuple[Stay, int]] = []
    offered: list[tuple[Stay, int]] = []
    no_seat: set[Flight] = set()
    users: set[str] = set()
    hotels: set[int] = set()
    flights: set[Flight] = set()
    counts: dict[str, int] = {}
    violations: list[str] = []
