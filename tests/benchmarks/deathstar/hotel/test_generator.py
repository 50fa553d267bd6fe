"""Requests come in the shares of their mix, and are those that the site takes."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date

import pytest

from benchmarks.deathstar.hotel.data import WRONG_PASSWORD, DataSet, user_name, user_password
from benchmarks.deathstar.hotel.generator import BLOCK, HotelGenerator
from benchmarks.deathstar.hotel.services.geography import cell_of
from benchmarks.deathstar.hotel.settings import KINDS, MIXES, RESERVE_HEAVY, Settings
from benchmarks.driver.workload import Planned


def drawn(settings: Settings, count: int, seed: int = 1) -> list[Planned]:
    generator = HotelGenerator(settings, DataSet(settings), random.Random(seed))
    return [generator.next() for _ in range(count)]


@pytest.mark.parametrize("mix", MIXES)
def test_the_shares_are_exact(mix: str) -> None:
    kinds = Counter(planned.kind for planned in drawn(Settings(mix=mix), 20 * BLOCK))
    for kind in KINDS:
        assert kinds[kind] == pytest.approx(20 * BLOCK * MIXES[mix].get(kind, 0), abs=2)


def test_every_request_fits_the_data() -> None:
    settings = Settings(mix=RESERVE_HEAVY, hotels=30, flights=8, users=12, places=40, wrong_password=0.25)
    places = set(DataSet(settings).places)
    wrong = Counter[bool]()
    for planned in drawn(settings, 2_000):
        if planned.kind in ("search", "recommend"):
            place = planned.arguments[0]
            assert place in places
            assert planned.key == cell_of(place)
        if planned.kind == "search":
            _, in_date, out_date = planned.arguments
            assert "2015-04-09" <= in_date < out_date <= "2015-04-24"
        if planned.kind in ("login", "reserve"):
            number = int(planned.key.removeprefix("Cornell_"))
            assert 0 <= number < 12
            assert planned.key == user_name(number)
            assert planned.arguments[0] in (WRONG_PASSWORD, user_password(number))
            wrong[planned.arguments[0] == WRONG_PASSWORD] += 1
        if planned.kind == "reserve":
            _, hotel, in_date, out_date, flight = planned.arguments
            assert 0 <= hotel < 30
            assert 1 <= flight <= 8
            assert "2015-04-09" <= in_date <= "2015-04-23"
            assert 1 <= (date.fromisoformat(out_date) - date.fromisoformat(in_date)).days <= 5
        assert set(planned.operator.functions) >= {planned.function}
    assert wrong[True] == pytest.approx(wrong.total() / 4, abs=BLOCK)


def test_the_seed_decides_and_popularity_follows_the_exponent() -> None:
    settings = Settings(mix="reserve", zipf=0.9)
    assert drawn(settings, 50) == drawn(settings, 50) != drawn(settings, 50, seed=2)
    hotels = Counter(planned.arguments[1] for planned in drawn(settings, 2_000))
    assert hotels[0] > 5 * hotels[50]
