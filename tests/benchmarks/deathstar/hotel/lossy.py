"""The site with one function that is not as it should be: what an audit must find."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import date
from typing import Any

import pytest

from benchmarks.deathstar.hotel.app import app
from benchmarks.deathstar.hotel.services.flight import Seats
from benchmarks.deathstar.hotel.services.geo import Near, Spot
from benchmarks.deathstar.hotel.services.geography import Place, metres_between, region_of
from benchmarks.deathstar.hotel.services.hotel import Offer, Rooms
from benchmarks.deathstar.hotel.services.rate import RatePlan
from benchmarks.deathstar.hotel.services.recommendation import Candidate, Criterion, Known
from benchmarks.deathstar.hotel.services.reservation import Reservation
from benchmarks.deathstar.hotel.services.stay import nights_of
from benchmarks.deathstar.hotel.services.user import User
from styx import App, Context, Operator

Function = Callable[..., Coroutine[Any, Any, Any]]

CELL: dict[str, Any] = {"key_type": tuple[int, int], "partition_key": region_of}
DECLARED: dict[str, dict[str, Any]] = {
    "flight": {"key_type": tuple[int, str], "state_type": Seats},
    "geo": {**CELL, "state_type": list[Spot]},
    "hotel": {"key_type": int, "state_type": Rooms},
    "rate": {"key_type": int, "state_type": RatePlan},
    "recommendation": {**CELL, "state_type": list[Known]},
    "reservation": {"state_type": Reservation},
    "user": {"state_type": User},
}


def app_with(monkeypatch: pytest.MonkeyPatch, operator: str, replacement: Function) -> App:
    """The site's app, but for one operator's function of the replacement's name; the other services call that, too."""
    name = replacement.__name__
    monkeypatch.setattr(f"benchmarks.deathstar.hotel.services.{operator}.{name}", replacement)
    other = Operator(operator, **DECLARED[operator])
    for function in app.operators[operator].functions.values():
        other.register(replacement if function.name == name else function.func)
    return App(app.name, [other if each.name == operator else each for each in app.operators.values()])


def reserving(room: bool = True, seat: bool = True, stored: bool = True, listed: int = 1, told: str = "") -> Function:
    """`user.reserve` for any password, without one of its effects."""

    async def reserve(
        ctx: Context, password: str, hotel_number: int, in_date: date, out_date: date, flight_number: int
    ) -> str:
        guest: User = await ctx.get()
        name = str(ctx.uuid())
        guest.reservations += [name] * listed
        await ctx.put(guest)
        if room:
            ctx.call_async("hotel", "take_room", hotel_number, (in_date, out_date))
        if seat:
            ctx.call_async("flight", "take_seat", (flight_number, in_date.isoformat()))
        if stored:
            made = Reservation(str(ctx.key), hotel_number, in_date, out_date, flight_number)
            ctx.call_async("reservation", "store", name, (made,))
        return told or name

    return reserve


async def take_room(ctx: Context, in_date: date, out_date: date) -> None:
    """Without a look at how many there are."""
    rooms: Rooms = await ctx.get()
    for night in nights_of(in_date, out_date):
        rooms.taken[night] = rooms.taken.get(night, 0) + 1
    await ctx.put(rooms)


async def take_seat(ctx: Context) -> None:
    """Says nothing if there is none."""
    seats: Seats = await ctx.get()
    if seats.taken < seats.seats:
        seats.taken += 1
        await ctx.put(seats)


def overbook() -> Function:
    """`flight.take_seat` without a look at how many there are."""

    async def take_seat(ctx: Context) -> None:
        seats: Seats = await ctx.get()
        seats.taken += 1
        await ctx.put(seats)

    return take_seat


async def store(ctx: Context, made: Reservation) -> None:
    """Keeps another flight."""
    made.flight += 1
    await ctx.put(made)


async def login(ctx: Context, password: str) -> bool:
    """Lets everybody in."""
    return True


async def offer(ctx: Context, in_date: date, out_date: date) -> Offer | None:
    """Whether there is a room or not."""
    price = await ctx.call("rate", "price", ctx.key, (in_date, out_date))
    described = await ctx.call("profile", "read", ctx.key)
    return Offer(described.name, described.rating, price)


def no_offer() -> Function:
    """`hotel.offer` that has no room, whether there is one or not."""

    async def offer(ctx: Context, in_date: date, out_date: date) -> Offer | None:
        return None

    return offer


async def price(ctx: Context, in_date: date, out_date: date) -> int:
    """One night less."""
    plan: RatePlan = await ctx.get()
    return sum(plan.nightly[night.weekday()] for night in nights_of(in_date, out_date)[1:])


async def nearest(ctx: Context, place: Place) -> list[Near]:
    """Of one cell."""
    spots: list[Spot] = await ctx.get([])
    return sorted(Near(metres_between(place, spot.place), spot.hotel) for spot in spots)[:5]


async def best_here(ctx: Context, place: Place, by: Criterion) -> list[Candidate]:
    """However far away."""
    known: list[Known] = await ctx.get([])
    return [Candidate(one.hotel, metres_between(place, one.place), one.rating, one.price) for one in known]
