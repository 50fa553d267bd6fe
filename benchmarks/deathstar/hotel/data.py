"""The data set: hotels in their cities, with rates and profiles, flights, and users with passwords.

It depends only on the settings, so every process makes the same data. The season is DeathStarBench's: guests come from
April 9 to April 23, 2015. So are the users' names and passwords, and the place of the first city.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from math import cos, degrees, pi, radians, sin, sqrt
from typing import Any, Final, NamedTuple

from benchmarks.deathstar.hotel.services.flight import Seats, flight
from benchmarks.deathstar.hotel.services.geo import Spot, geo
from benchmarks.deathstar.hotel.services.geography import EARTH_RADIUS_M, Cell, Place, cell_of
from benchmarks.deathstar.hotel.services.hotel import Rooms, hotel
from benchmarks.deathstar.hotel.services.profile import Profile, profile
from benchmarks.deathstar.hotel.services.rate import RatePlan, rate
from benchmarks.deathstar.hotel.services.recommendation import Known, recommendation
from benchmarks.deathstar.hotel.services.user import User, hashed, user
from benchmarks.deathstar.hotel.settings import Settings
from benchmarks.driver.workload import Loading

FIRST_DAY: Final = date(2015, 4, 9)
ARRIVAL_DAYS: Final = 15
FIRST_CITY: Final = Place(38.0235, -122.095)
CITY_RADIUS_M: Final = 8_000
PLACES_RADIUS_M: Final = 6_000
"""The largest distance from a city's centre of a place that requests are about."""
SEED: Final = 20150409
WRONG_PASSWORD: Final = "guessed"
"""A password that no user has."""


class Hotel(NamedTuple):
    """`rating` in tenths of a star, `nightly` in cents, from Monday on."""

    place: Place
    rating: int
    nightly: tuple[int, ...]


class DataSet:
    """`hotels` by number from 0; `places` is what requests are about."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        rng = random.Random(SEED)
        cities = [FIRST_CITY, *(_city(rng) for _ in range(settings.cities - 1))]
        # City after city, so that the most popular hotels are not all in one.
        self.hotels = [_hotel(cities[number % len(cities)], rng) for number in range(settings.hotels)]
        self.places = [
            _somewhere_in(cities[number % len(cities)], PLACES_RADIUS_M, rng) for number in range(settings.places)
        ]

    def initial(self) -> Iterator[Loading]:
        """See `Workload.initial`."""
        settings, hotels = self._settings, self.hotels
        rooms, seats = settings.capacity
        cells = self._cells()
        at = {cell: [Spot(number, hotels[number].place) for number in here] for cell, here in cells.items()}
        known = {cell: [_known(number, hotels[number]) for number in here] for cell, here in cells.items()}
        days = [day.isoformat() for day in arrival_days()]
        yield Loading(geo, len(at), at.items())
        yield Loading(recommendation, len(known), known.items())
        yield Loading(profile, len(hotels), ((n, _profile(n, hotels[n])) for n in range(len(hotels))))
        yield Loading(rate, len(hotels), ((n, RatePlan([*hotels[n].nightly])) for n in range(len(hotels))))
        yield Loading(hotel, len(hotels), ((n, Rooms(rooms, {})) for n in range(len(hotels))))
        yield Loading(
            flight,
            settings.flights * len(days),
            (((number, day), Seats(seats, 0)) for number in range(1, settings.flights + 1) for day in days),
        )
        yield Loading(user, settings.users, _users(settings.users))

    def _cells(self) -> dict[Cell, list[int]]:
        """The hotels of each cell."""
        cells: defaultdict[Cell, list[int]] = defaultdict(list)
        for number, each in enumerate(self.hotels):
            cells[cell_of(each.place)].append(number)
        return cells


def arrival_days() -> list[date]:
    """On which guests come."""
    return [FIRST_DAY + timedelta(days=number) for number in range(ARRIVAL_DAYS)]


def hotel_name(number: int) -> str:
    """As in its profile."""
    return f"Hotel {number}"


def user_name(number: int) -> str:
    """The user's key."""
    return f"Cornell_{number}"


def user_password(number: int) -> str:
    """The right one."""
    return str(number) * 10


def _city(rng: random.Random) -> Place:
    return Place(round(rng.uniform(-50, 60), 4), round(rng.uniform(-179, 179), 4))


def _somewhere_in(city: Place, radius_m: int, rng: random.Random) -> Place:
    """Anywhere in the disc, to some 10 m."""
    metres, angle = radius_m * sqrt(rng.random()), rng.uniform(0, 2 * pi)
    north, east = degrees(metres * cos(angle) / EARTH_RADIUS_M), degrees(metres * sin(angle) / EARTH_RADIUS_M)
    return Place(round(city.lat + north, 4), round(city.lon + east / cos(radians(city.lat)), 4))


def _hotel(city: Place, rng: random.Random) -> Hotel:
    usual = rng.randrange(8_000, 30_000)
    weekend = usual * rng.randrange(80, 150) // 100
    return Hotel(_somewhere_in(city, CITY_RADIUS_M, rng), rng.randint(20, 50), (*[usual] * 4, weekend, weekend, usual))


def _known(number: int, of: Hotel) -> Known:
    return Known(number, of.place, of.rating, min(of.nightly))


def _profile(number: int, of: Hotel) -> Profile:
    return Profile(
        name=hotel_name(number),
        phone=f"(415) 284-{number % 10_000:04}",
        address=f"{1 + number % 999} Market Street, at {of.place.lat}, {of.place.lon}",
        description=f"A hotel with {min(of.nightly) // 100} dollars' worth of comfort and a view of the next one.",
        rating=of.rating,
    )


def _users(count: int) -> Iterable[tuple[Any, User]]:
    rng = random.Random(SEED)
    for number in range(count):
        salt = rng.randbytes(8)
        yield user_name(number), User(salt, hashed(salt, user_password(number)), [])
