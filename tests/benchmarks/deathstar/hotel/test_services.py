"""The site's functions: what is near, what is best, who may log in, and reservations that happen as a whole or not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date

import pytest

import styx
from benchmarks.deathstar.hotel.app import app
from benchmarks.deathstar.hotel.services.flight import Seats
from benchmarks.deathstar.hotel.services.geo import Spot
from benchmarks.deathstar.hotel.services.geography import Cell, Place, cell_of
from benchmarks.deathstar.hotel.services.hotel import Rooms
from benchmarks.deathstar.hotel.services.profile import Profile
from benchmarks.deathstar.hotel.services.rate import RatePlan
from benchmarks.deathstar.hotel.services.recommendation import Known
from benchmarks.deathstar.hotel.services.user import User, hashed
from styx.client.embedded import EmbeddedClient
from tests.benchmarks.deathstar.counted import counting

MIDDLE = Place(38.0, -122.0)
PLACES = [Place(38.0 + 0.02 * number, -122.0) for number in range(8)]
"""Of hotels 0 to 7: 2.2 km from each to the next, so that 0 to 4 are near the middle."""
MONDAY, TUESDAY, THURSDAY = "2015-04-13", "2015-04-14", "2015-04-16"


async def _open(client: EmbeddedClient) -> None:
    cells: dict[Cell, list[int]] = {}
    for hotel, place in enumerate(PLACES):
        cells.setdefault(cell_of(place), []).append(hotel)
    numbers = range(len(PLACES))
    await client.load("geo", ((cell, [Spot(n, PLACES[n]) for n in here]) for cell, here in cells.items()))
    await client.load(
        "recommendation",
        ((cell, [Known(n, PLACES[n], 30 + n % 3, 9_000 - n) for n in here]) for cell, here in cells.items()),
    )
    await client.load("profile", ((n, Profile(f"H{n}", "", "", "", 30 + n % 3)) for n in numbers))
    await client.load("rate", ((n, RatePlan([100 * n + day for day in range(7)])) for n in numbers))
    await client.load("hotel", ((n, Rooms(1, {})) for n in numbers))
    await client.load("flight", (((7, day), Seats(2, 0)) for day in (MONDAY, TUESDAY)))
    await client.load("user", [("ada", User(b"salt", hashed(b"salt", "secret"), []))])


def with_site(use: Callable[[EmbeddedClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with styx.embedded(app) as client:
            await _open(client)
            await use(client)

    asyncio.run(run())


def key(place: Place) -> Cell:
    return cell_of(place)


def test_a_search_finds_the_nearest_hotels_that_have_a_room_and_what_the_stay_costs() -> None:
    async def use(client: EmbeddedClient) -> None:
        found = await client.call("search", key(MIDDLE), "nearby", MIDDLE, MONDAY, THURSDAY)
        assert found[1] == {"hotel": 1, "name": "H1", "metres": 2224, "rating": 31, "price": 100 + 101 + 102}
        assert [offer["hotel"] for offer in found] == [0, 1, 2, 3, 4]
        await client.call("user", "ada", "reserve", "secret", 1, TUESDAY, THURSDAY, 7)
        found = await client.call("search", key(MIDDLE), "nearby", MIDDLE, MONDAY, THURSDAY)
        assert [offer["hotel"] for offer in found] == [0, 2, 3, 4]
        found = await client.call("search", key(MIDDLE), "nearby", MIDDLE, MONDAY, TUESDAY)
        assert [offer["hotel"] for offer in found] == [0, 1, 2, 3, 4]

    with_site(use)


def test_the_search_in_the_middle_of_many_gives_the_nearest_five_and_far_away_none() -> None:
    async def use(client: EmbeddedClient) -> None:
        there = Place(38.061, -122.0)
        found = await client.call("search", key(there), "nearby", there, MONDAY, TUESDAY)
        assert [offer["hotel"] for offer in found] == [3, 4, 2, 5, 1]
        # The next one is in a cell that is near, and 11 km away.
        north = Place(38.18, -122.0)
        found = await client.call("search", key(north), "nearby", north, MONDAY, TUESDAY)
        assert [offer["hotel"] for offer in found] == [7, 6, 5]
        nowhere = Place(38.0, -121.0)
        assert await client.call("search", key(nowhere), "nearby", nowhere, MONDAY, TUESDAY) == []

    with_site(use)


@pytest.mark.parametrize(("by", "best"), [("distance", [0, 1, 2]), ("rating", [2, 1, 4]), ("price", [4, 3, 2])])
def test_what_is_recommended_is_the_best_within_reach(by: str, best: list[int]) -> None:
    async def use(client: EmbeddedClient) -> None:
        found = await client.call("recommendation", key(MIDDLE), "recommend", MIDDLE, by)
        assert [one["hotel"] for one in found] == best
        first = found[0]
        assert first["name"] == f"H{best[0]}"
        assert first["price"] == 9_000 - best[0]
        assert first["rating"] == 30 + best[0] % 3

    with_site(use)


def test_only_the_right_password_logs_in() -> None:
    async def use(client: EmbeddedClient) -> None:
        assert await client.call("user", "ada", "login", "secret") is True
        assert await client.call("user", "ada", "login", "Secret") is False
        assert await client.call("user", "nobody", "login", "secret") is False

    with_site(use)


def test_a_reservation_is_a_room_for_each_night_and_a_seat_and_stands_in_its_users_list() -> None:
    async def use(client: EmbeddedClient) -> None:
        made = await client.call("user", "ada", "reserve", "secret", 3, MONDAY, THURSDAY, 7)
        assert await client.call("user", "ada", "reservations") == [made]
        assert await client.call("reservation", made, "read") == {
            "user": "ada",
            "hotel": 3,
            "in_date": MONDAY,
            "out_date": THURSDAY,
            "flight": 7,
        }
        nights = {f"2015-04-{day}": 1 for day in (13, 14, 15)}
        assert await client.call("hotel", 3, "occupancy") == {"rooms": 1, "taken": nights}
        assert await client.call("flight", (7, MONDAY), "occupancy") == {"seats": 2, "taken": 1}
        assert await client.call("flight", (7, TUESDAY), "occupancy") == {"seats": 2, "taken": 0}
        # The nights are from one day to the other, so the next guest can come on the day on which this one goes.
        assert client.entity("hotel", 3) == Rooms(1, {date.fromisoformat(day): 1 for day in nights})

    with_site(use)


@pytest.mark.parametrize(
    ("arguments", "aborted_by"),
    [
        (("wrong", 2, MONDAY, TUESDAY, 7), "WrongPassword"),
        (("secret", 0, MONDAY, TUESDAY, 7), "NoRoom"),
        # The room is there and taken before the seat is not.
        (("secret", 2, TUESDAY, THURSDAY, 7), "NoSeat"),
        (("secret", 99, MONDAY, TUESDAY, 7), "NoSuchHotel"),
        (("secret", 2, MONDAY, TUESDAY, 8), "NoSuchFlight"),
        (("secret", 2, TUESDAY, MONDAY, 7), "BadStay"),
        (("secret", 2, MONDAY, "2015-06-13", 7), "BadStay"),
        (("secret", 2, "yesterday", TUESDAY, 7), "BadArguments"),
    ],
)
def test_nothing_is_left_of_a_reservation_that_fails(arguments: tuple[object, ...], aborted_by: str) -> None:
    async def use(client: EmbeddedClient) -> None:
        first = await client.call("user", "ada", "reserve", "secret", 0, MONDAY, TUESDAY, 7)
        for hotel in (0, 1):
            await client.call("user", "ada", "reserve", "secret", hotel, TUESDAY, THURSDAY, 7)
        before = await client.call("user", "ada", "reservations")
        assert before[0] == first
        reply = await client.request("user", "ada", "reserve", *arguments)
        assert reply.error is not None
        assert reply.error.type == aborted_by
        assert await client.call("user", "ada", "reservations") == before
        assert await client.call("hotel", 2, "occupancy") == {"rooms": 1, "taken": {}}
        assert await client.call("flight", (7, MONDAY), "occupancy") == {"seats": 2, "taken": 1}

    with_site(use)


def test_each_kind_of_request_calls_no_more_than_it_needs() -> None:
    async def use(client: EmbeddedClient) -> None:
        with counting(app) as calls:
            await client.call("user", "ada", "login", "secret")
        assert calls == {"user.login": 1}

        with counting(app) as calls:
            await client.call("user", "ada", "reserve", "secret", 2, MONDAY, THURSDAY, 7)
        assert calls == {"user.reserve": 1, "hotel.take_room": 1, "flight.take_seat": 1, "reservation.store": 1}

        # Five hotels are within 5 km of the third one, and no farther cell is asked.
        there = PLACES[2]
        with counting(app) as calls:
            await client.call("search", key(there), "nearby", there, TUESDAY, THURSDAY)
        assert calls.pop("geo.nearest_here") < 6
        # The third one is full.
        assert calls == {"search.nearby": 1, "geo.nearest": 1, "hotel.offer": 5, "rate.price": 4, "profile.read": 4}

        with counting(app) as calls:
            await client.call("recommendation", key(MIDDLE), "recommend", MIDDLE, "price")
        assert calls.pop("recommendation.best_here") <= 12
        assert calls == {"recommendation.recommend": 1, "profile.read": 3}

    with_site(use)
