"""The search for a room near a place. Its entities have no state: they are the cells of the map, and a request goes to
the cell of its place. So most of its calls to `geo` stay on one slot, and searches of different regions are on
different slots.
"""

from __future__ import annotations

from datetime import date

import msgspec

from benchmarks.deathstar.hotel.services import geo as places
from benchmarks.deathstar.hotel.services import hotel as hotels
from benchmarks.deathstar.hotel.services.geo import Near, geo
from benchmarks.deathstar.hotel.services.geography import Place, region_of
from benchmarks.deathstar.hotel.services.hotel import Offer, hotel
from styx import Context, Operator


class Found(msgspec.Struct):
    """A hotel near the place with a room for the stay; `price` of the stay in cents, `rating` in tenths of a star."""

    hotel: int
    name: str
    metres: int
    rating: int
    price: int


search = Operator("search", key_type=tuple[int, int], partition_key=region_of)


@search.register
async def nearby(ctx: Context, place: Place, in_date: date, out_date: date) -> list[Found]:
    """Among the hotels nearest to the place, those with a room for the whole stay, nearest first."""
    near: list[Near] = await ctx.call(geo, places.nearest, ctx.key, (place,))
    found = []
    for one in near:
        offer: Offer | None = await ctx.call(hotel, hotels.offer, one.hotel, (in_date, out_date))
        if offer is not None:
            found.append(Found(one.hotel, offer.name, one.metres, offer.rating, offer.price))
    return found
