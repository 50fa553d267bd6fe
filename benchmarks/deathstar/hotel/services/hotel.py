"""A hotel's rooms: how many there are, and how many are taken in each night.

An entity is one hotel with all of its nights. A stay needs several nights together, so one entity can decide on it, and
a search sees with one read whether there is a room. An entity for each night would let reservations of different nights
pass each other, but stays within the same few weeks mostly have a night in common, and each search would read as many
entities as a stay has nights, for each of the hotels that it finds.

Its rate plan and its profile have the same key, so they are on the same slot.
"""

from __future__ import annotations

from datetime import date

import msgspec

from benchmarks.deathstar.hotel.services import profile as profiles
from benchmarks.deathstar.hotel.services import rate as rates
from benchmarks.deathstar.hotel.services.profile import Profile, profile
from benchmarks.deathstar.hotel.services.rate import rate
from benchmarks.deathstar.hotel.services.stay import nights_of
from styx import Context, Operator


class NoSuchHotel(Exception):
    """There is no hotel of this number."""


class NoRoom(Exception):
    """In some night of the stay all rooms are taken."""


class Rooms(msgspec.Struct):
    """`taken` of `rooms`, in those nights in which any is."""

    rooms: int
    taken: dict[date, int]

    def full(self, nights: list[date]) -> date | None:
        """The first of these nights in which no room is left."""
        return next((night for night in nights if self.taken.get(night, 0) >= self.rooms), None)


class Offer(msgspec.Struct):
    """A room that can be had: of which hotel, and for how many cents for the whole stay; `rating` as in `Profile`."""

    name: str
    rating: int
    price: int


hotel = Operator("hotel", key_type=int, state_type=Rooms)


async def _rooms(ctx: Context) -> Rooms:
    rooms: Rooms | None = await ctx.get()
    if rooms is None:
        raise NoSuchHotel(f"there is no hotel {ctx.key}")
    return rooms


@hotel.register
async def offer(ctx: Context, in_date: date, out_date: date) -> Offer | None:
    """A room for this stay; None if there is none in one of its nights."""
    rooms = await _rooms(ctx)
    if rooms.full(nights_of(in_date, out_date)):
        return None
    price: int = await ctx.call(rate, rates.price, ctx.key, (in_date, out_date))
    described: Profile = await ctx.call(profile, profiles.read, ctx.key)
    return Offer(described.name, described.rating, price)


@hotel.register
async def take_room(ctx: Context, in_date: date, out_date: date) -> None:
    """Takes one room for every night of the stay; raises `NoRoom`."""
    rooms = await _rooms(ctx)
    nights = nights_of(in_date, out_date)
    if full := rooms.full(nights):
        raise NoRoom(f"hotel {ctx.key} has no room left in the night of {full}")
    for night in nights:
        rooms.taken[night] = rooms.taken.get(night, 0) + 1
    await ctx.put(rooms)


@hotel.register
async def occupancy(ctx: Context) -> Rooms:
    """How many rooms there are, and how many of them are taken in each night."""
    return await _rooms(ctx)
