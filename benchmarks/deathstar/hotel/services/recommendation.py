"""The best hotels around a place: the nearest ones, the best rated or the cheapest.

As in DeathStarBench, it has its own copy of the data, with an entity for each cell of the map. A cell returns only the
best of its hotels: a hotel that is not among these is not among the best of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from benchmarks.deathstar.hotel.services import profile as profiles
from benchmarks.deathstar.hotel.services.geo import RADIUS_M
from benchmarks.deathstar.hotel.services.geography import Place, cells_around, metres_between, region_of
from benchmarks.deathstar.hotel.services.profile import Profile, profile
from styx import Context, Operator

BEST_MAX: Final = 3

Criterion = Literal["distance", "rating", "price"]


class Known(msgspec.Struct, array_like=True):
    """A hotel of a cell; `rating` in tenths of a star, `price` of its cheapest night in cents."""

    hotel: int
    place: Place
    rating: int
    price: int


class Candidate(msgspec.Struct, array_like=True):
    """A hotel within the radius."""

    hotel: int
    metres: int
    rating: int
    price: int


class Recommended(msgspec.Struct):
    """See `Candidate`, for people."""

    hotel: int
    name: str
    metres: int
    rating: int
    price: int


RANKS: Final[dict[Criterion, Callable[[Candidate], tuple[int, int, int]]]] = {
    "distance": lambda hotel: (hotel.metres, 0, hotel.hotel),
    "rating": lambda hotel: (-hotel.rating, hotel.metres, hotel.hotel),
    "price": lambda hotel: (hotel.price, hotel.metres, hotel.hotel),
}
"""The best has the lowest; of two that are as good, it is the nearer one."""

recommendation = Operator("recommendation", key_type=tuple[int, int], state_type=list[Known], partition_key=region_of)


def _best(hotels: Iterable[Candidate], by: Criterion) -> list[Candidate]:
    return sorted(hotels, key=RANKS[by])[:BEST_MAX]


@recommendation.register
async def best_here(ctx: Context, place: Place, by: Criterion) -> list[Candidate]:
    """The best of this cell within the radius, the very best first."""
    known: list[Known] = await ctx.get([])
    candidates = (Candidate(one.hotel, metres_between(place, one.place), one.rating, one.price) for one in known)
    return _best((hotel for hotel in candidates if hotel.metres <= RADIUS_M), by)


@recommendation.register
async def recommend(ctx: Context, place: Place, by: Criterion) -> list[Recommended]:
    """The best hotels within the radius around the place, the very best first."""
    best: list[Candidate] = []
    for _, cell in cells_around(place, RADIUS_M):
        best = _best([*best, *await ctx.call(recommendation, best_here, cell, (place, by))], by)
    recommended = []
    for hotel in best:
        described: Profile = await ctx.call(profile, profiles.read, hotel.hotel)
        recommended.append(Recommended(hotel.hotel, described.name, hotel.metres, hotel.rating, hotel.price))
    return recommended
