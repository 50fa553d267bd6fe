"""Places on the earth, distances between them, and the grid of cells that hotels are looked up by.

A cell is a tenth of a degree high and wide, 11 km from south to north. Cells of the same degree are one region, and all
of a region is in one partition: a search looks at the cells around its place, and most of them are on its own slot.
"""

from __future__ import annotations

from math import asin, cos, degrees, floor, pi, radians, sin, sqrt
from typing import Annotated, Final

import msgspec

EARTH_RADIUS_M: Final = 6_371_000
CELLS_A_DEGREE: Final = 10
COLUMNS: Final = 360 * CELLS_A_DEGREE

Cell = tuple[int, int]
"""Row and column: the south-west corner's latitude and longitude, in tenths of a degree."""


class Place(msgspec.Struct, array_like=True, frozen=True):
    """In degrees. The grid ends 10 degrees from the poles."""

    lat: Annotated[float, msgspec.Meta(ge=-80, le=80)]
    lon: Annotated[float, msgspec.Meta(ge=-180, le=180)]


def metres_between(one: Place, other: Place) -> int:
    """Along the great circle, by the haversine formula."""
    lat_1, lat_2 = radians(one.lat), radians(other.lat)
    half_lat, half_lon = (lat_2 - lat_1) / 2, radians(other.lon - one.lon) / 2
    haversine = sin(half_lat) ** 2 + cos(lat_1) * cos(lat_2) * sin(half_lon) ** 2
    return round(2 * EARTH_RADIUS_M * asin(sqrt(haversine)))


def cell_of(place: Place) -> Cell:
    """The cell that this place is in."""
    return floor(place.lat * CELLS_A_DEGREE), _column(floor(place.lon * CELLS_A_DEGREE))


def region_of(cell: Cell) -> Cell:
    """The partition key of all that is kept by cell."""
    row, column = cell
    return row // CELLS_A_DEGREE, column // CELLS_A_DEGREE


def cells_around(place: Place, radius_m: int) -> list[tuple[int, Cell]]:
    """The cells with any point within the radius, and how far from `place` their points are at least, nearest first."""
    reach = (radius_m + 0.5) / EARTH_RADIUS_M  # Distances are in whole metres: what is at most so far is rounded down.
    high = degrees(reach) * CELLS_A_DEGREE
    wide = degrees(asin(sin(reach) / cos(radians(place.lat)))) * CELLS_A_DEGREE
    y, x = place.lat * CELLS_A_DEGREE, place.lon * CELLS_A_DEGREE
    return sorted(
        (max(_metres_north(y, row), _metres_east(place.lat, x, column)), (row, _column(column)))
        for row in range(floor(y - high), floor(y + high) + 1)
        for column in range(floor(x - wide), floor(x + wide) + 1)
    )


def _metres_north(y: float, row: int) -> int:
    """From the parallel `y`, in cells, to the nearest one of the row."""
    return round(EARTH_RADIUS_M * radians(_gap(y, row) / CELLS_A_DEGREE))


def _metres_east(lat: float, x: float, column: int) -> int:
    """From the point at `lat` and `x`, in cells, to the nearest meridian of the column."""
    angle = min(radians(_gap(x, column) / CELLS_A_DEGREE), pi / 2)
    return round(EARTH_RADIUS_M * asin(cos(radians(lat)) * sin(angle)))


def _gap(at: float, cell: int) -> float:
    """From `at` to the nearest point of the interval from `cell` to the next one."""
    return max(cell - at, at - (cell + 1), 0.0)


def _column(number: int) -> int:
    """West of the date line it goes on in the east."""
    return (number + COLUMNS // 2) % COLUMNS - COLUMNS // 2
