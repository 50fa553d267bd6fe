"""Distances are those of the earth, and no place within a radius is outside of the cells around its middle."""

from __future__ import annotations

import random
from math import cos, degrees, radians

import pytest

from benchmarks.deathstar.hotel.services.geography import (
    EARTH_RADIUS_M,
    Place,
    cell_of,
    cells_around,
    metres_between,
    region_of,
)

LONDON, PARIS = Place(51.5074, -0.1278), Place(48.8566, 2.3522)
RADIUS_M = 10_000


def test_distances_are_along_the_great_circle() -> None:
    assert metres_between(LONDON, PARIS) == pytest.approx(343_556, abs=100)
    assert metres_between(PARIS, PARIS) == 0
    assert metres_between(Place(0, 179.99), Place(0, -179.99)) == pytest.approx(2_224, abs=1)


@pytest.mark.parametrize("middle", [LONDON, Place(0.0, 0.0), Place(-33.95, -179.97), Place(64.05, 179.999)])
def test_what_is_near_is_in_the_cells_around(middle: Place) -> None:
    rng = random.Random(1)
    cells = {cell: metres for metres, cell in cells_around(middle, RADIUS_M)}
    assert cells[cell_of(middle)] == 0
    near = 0
    for _ in range(3_000):
        lon = middle.lon + rng.uniform(-0.15, 0.15) / cos(radians(middle.lat))
        place = Place(middle.lat + rng.uniform(-0.15, 0.15), (lon + 180) % 360 - 180)
        metres = metres_between(middle, place)
        if metres <= RADIUS_M:
            near += 1
            assert cells[cell_of(place)] <= metres
    assert near > 500


def test_what_is_near_by_the_rounded_distance_only_is_in_the_cells_around() -> None:
    place = Place(40.0, 5.05)
    for bearing in (-1, 1):
        middle = Place(40.0 + bearing * degrees((RADIUS_M + 0.3) / EARTH_RADIUS_M), 5.05)
        beyond = Place(place.lat - bearing * 1e-9, 5.05)
        assert metres_between(middle, beyond) == RADIUS_M
        assert cell_of(beyond) in {cell for _, cell in cells_around(middle, RADIUS_M)}


def test_the_cells_around_are_few_and_nearest_first() -> None:
    cells = cells_around(LONDON, RADIUS_M)
    assert cells == sorted(cells)
    # Two rows of 11 km, and at this latitude four columns of 7 km.
    assert 6 <= len(cells) <= 12
    assert all(metres <= RADIUS_M for metres, _ in cells)


def test_cells_are_tenths_of_degrees_and_regions_are_degrees() -> None:
    assert cell_of(LONDON) == (515, -2)
    assert region_of(cell_of(LONDON)) == (51, -1)
    assert cell_of(Place(10.0, 180.0)) == cell_of(Place(10.0, -180.0)) == (100, -1800)
