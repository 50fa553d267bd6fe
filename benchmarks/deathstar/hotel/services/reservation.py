"""The reservations. An entity is one reservation; `user.reserve` draws the id that is its key. It is written once and
never changes. The hotel and the flight decide whether there is a room and a seat.
"""

from __future__ import annotations

from datetime import date

import msgspec

from styx import Context, Operator


class NoSuchReservation(Exception):
    """This reservation does not exist."""


class Reservation(msgspec.Struct):
    """A room from `in_date` to `out_date`, and a seat on the flight of `in_date`."""

    user: str
    hotel: int
    in_date: date
    out_date: date
    flight: int


reservation = Operator("reservation", state_type=Reservation)


@reservation.register
async def store(ctx: Context, made: Reservation) -> None:
    """Keeps it."""
    await ctx.put(made)


@reservation.register
async def read(ctx: Context) -> Reservation:
    """The reservation."""
    made: Reservation | None = await ctx.get()
    if made is None:
        raise NoSuchReservation(f"there is no reservation {ctx.key}")
    return made
