"""The places of the hotels. An entity is one cell of the map with its hotels, so that a search reads only a few
entities, however many hotels there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from benchmarks.deathstar.hotel.services.geography import Place, cells_around, metres_between, region_of
from styx import Context, Operator

RADIUS_M: Final = 10_000
"""The largest distance of a near hotel."""
NEAREST_MAX: Final = 5


class Spot(msgspec.Struct, array_like=True):
    """A hotel of a cell."""

    hotel: int
    place: Place


class Near(msgspec.Struct, array_like=True, order=True):
    """A hotel that is near, and how near; the nearest are the least, and of two at the same distance the first."""

    metres: int
    hotel: int


geo = Operator("geo", key_type=tuple[int, int], state_type=list[Spot], partition_key=region_of)


def _nearest(hotels: Iterable[Near]) -> list[Near]:
    return sorted(hotels)[:NEAREST_MAX]


@geo.register
async def nearest_here(ctx: Context, place: Place) -> list[Near]:
    """The hotels of this cell that are near, nearest first."""
    spots: list[Spot] = await ctx.get([])
    distances = (Near(metres_between(place, spot.place), spot.hotel) for spot in spots)
    return _nearest(near for near in distances if near.metres <= RADIUS_M)


@geo.register
async def nearest(ctx: Context, place: Place) -> list[Near]:
    """The hotels that are near, nearest first. Asks cell after cell, until no other can have a nearer one."""
    found: list[Near] = []
    for metres, cell in cells_around(place, RADIUS_M):
        if len(found) == NEAREST_MAX and found[-1].metres < metres:
            break
        found = _nearest([*found, *await ctx.call(geo, nearest_here, cell, (place,))])
    return found
