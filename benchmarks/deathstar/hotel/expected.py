"""The right answers to searches and recommendations, from the data set alone. It checks every hotel that could be near,
instead of cells of a map, and keeps its answers, because there are fewer places than requests.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache
from math import degrees
from typing import Any, Final

from benchmarks.deathstar.hotel.data import DataSet, hotel_name
from benchmarks.deathstar.hotel.seen import nights_between
from benchmarks.deathstar.hotel.services.geo import NEAREST_MAX, RADIUS_M
from benchmarks.deathstar.hotel.services.geography import EARTH_RADIUS_M, Place, metres_between
from benchmarks.deathstar.hotel.services.recommendation import BEST_MAX

_NORTH: Final = degrees((RADIUS_M + 1) / EARTH_RADIUS_M)


class Expected:
    """The right answers, as plain data."""

    def __init__(self, data: DataSet) -> None:
        self._hotels = data.hotels
        self._from_south = sorted(range(len(data.hotels)), key=lambda number: data.hotels[number].place.lat)
        self._lats = [data.hotels[number].place.lat for number in self._from_south]
        self.nearest = cache(self._nearest)
        self.best = cache(self._best)
        self.price = cache(self._price)

    def offers(self, place: Place, in_date: str, out_date: str) -> list[dict[str, Any]]:
        """The answer to a search if each of the hotels has a room."""
        return [
            {
                "hotel": number,
                "name": hotel_name(number),
                "metres": metres,
                "rating": self._hotels[number].rating,
                "price": self.price(number, in_date, out_date),
            }
            for metres, number in self.nearest(place)
        ]

    def _within_reach(self, place: Place) -> list[tuple[int, int]]:
        """Metres and number of each hotel in the radius."""
        first, last = bisect_left(self._lats, place.lat - _NORTH), bisect_right(self._lats, place.lat + _NORTH)
        each = ((metres_between(place, self._hotels[number].place), number) for number in self._from_south[first:last])
        return [(metres, number) for metres, number in each if metres <= RADIUS_M]

    def _nearest(self, place: Place) -> list[tuple[int, int]]:
        return sorted(self._within_reach(place))[:NEAREST_MAX]

    def _best(self, place: Place, by: str) -> list[dict[str, Any]]:
        best = []
        for metres, number in self._within_reach(place):
            hotel = self._hotels[number]
            price = min(hotel.nightly)
            first = {"distance": metres, "rating": -hotel.rating, "price": price}[by]
            recommended = {
                "hotel": number,
                "name": hotel_name(number),
                "metres": metres,
                "rating": hotel.rating,
                "price": price,
            }
            best.append(((first, metres, number), recommended))
        return [recommended for _, recommended in sorted(best, key=lambda each: each[0])[:BEST_MAX]]

    def _price(self, number: int, in_date: str, out_date: str) -> int:
        nightly = self._hotels[number].nightly
        return sum(nightly[night.weekday()] for night in nights_between(in_date, out_date))
