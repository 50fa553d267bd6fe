"""Flights, and how many seats of each are taken.

An entity is one flight of one day, its key the flight's number and the day as in 2015-04-09: a reservation needs only
one day of a flight, so reservations of different days do not conflict.
"""

from __future__ import annotations

import msgspec

from styx import Context, Operator


class NoSuchFlight(Exception):
    """No flight of this number goes on this day."""


class NoSeat(Exception):
    """All seats are taken."""


class Seats(msgspec.Struct):
    """`taken` of `seats`."""

    seats: int
    taken: int


flight = Operator("flight", key_type=tuple[int, str], state_type=Seats)


def _text(ctx: Context) -> str:
    number, day = ctx.key
    return f"flight {number} on {day}"


async def _seats(ctx: Context) -> Seats:
    seats: Seats | None = await ctx.get()
    if seats is None:
        raise NoSuchFlight(f"there is no {_text(ctx)}")
    return seats


@flight.register
async def take_seat(ctx: Context) -> None:
    """Takes one seat; raises `NoSeat`."""
    seats = await _seats(ctx)
    if seats.taken >= seats.seats:
        raise NoSeat(f"{_text(ctx)} is full")
    seats.taken += 1
    await ctx.put(seats)


@flight.register
async def occupancy(ctx: Context) -> Seats:
    """How many seats there are, and how many of them are taken."""
    return await _seats(ctx)
