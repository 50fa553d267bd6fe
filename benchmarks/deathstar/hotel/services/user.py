"""The site's users: their passwords and their reservations.

A password is stored as one SHA-256 of the user's salt and the password; DeathStarBench has no salt. A real site needs a
deliberately slow hash, but here that would hold up every transaction of its slot. It belongs in front of the
transactions, in the service that keeps the users' sessions.
"""

from __future__ import annotations

from datetime import date
from hashlib import sha256
from hmac import compare_digest

import msgspec

from benchmarks.deathstar.hotel.services import flight as flights
from benchmarks.deathstar.hotel.services import hotel as hotels
from benchmarks.deathstar.hotel.services import reservation as made
from benchmarks.deathstar.hotel.services.flight import flight
from benchmarks.deathstar.hotel.services.hotel import hotel
from benchmarks.deathstar.hotel.services.reservation import Reservation, reservation
from styx import Context, Operator


class WrongPassword(Exception):
    """The password is wrong, or the user does not exist. The error does not say which."""


class User(msgspec.Struct):
    """`reservations` are their ids, in the order in which they were made."""

    salt: bytes
    password_hash: bytes
    reservations: list[str]


user = Operator("user", state_type=User)


def hashed(salt: bytes, password: str) -> bytes:
    """The stored hash of a password."""
    return sha256(salt + password.encode()).digest()


async def _with_password(ctx: Context, password: str) -> User | None:
    """The user that `ctx` is at, if this is the password."""
    found: User | None = await ctx.get()
    if found is None or not compare_digest(hashed(found.salt, password), found.password_hash):
        return None
    return found


@user.register
async def login(ctx: Context, password: str) -> bool:
    """Whether this is the user's password."""
    return await _with_password(ctx, password) is not None


@user.register
async def reserve(
    ctx: Context, password: str, hotel_number: int, in_date: date, out_date: date, flight_number: int
) -> str:
    """Reserves a room for the stay and a seat on the flight of its first day, both or nothing; the reservation's id.

    Raises `WrongPassword`. The hotel and the flight end the transaction if they have nothing left: none of their
    answers is needed here, so nothing waits for them.
    """
    guest = await _with_password(ctx, password)
    if guest is None:
        raise WrongPassword(f"wrong name or password for {ctx.key}")
    name = str(ctx.uuid())
    guest.reservations.append(name)
    await ctx.put(guest)
    ctx.call_async(hotel, hotels.take_room, hotel_number, (in_date, out_date))
    ctx.call_async(flight, flights.take_seat, (flight_number, in_date.isoformat()))
    wanted = Reservation(str(ctx.key), hotel_number, in_date, out_date, flight_number)
    ctx.call_async(reservation, made.store, name, (wanted,))
    return name


@user.register
async def reservations(ctx: Context) -> list[str]:
    """The ids of all that this user has reserved."""
    found: User | None = await ctx.get()
    return [] if found is None else found.reservations
