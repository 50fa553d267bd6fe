"""The data set is the settings' alone, of the sizes asked for, and in the right cells."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.deathstar.hotel.data import DataSet, user_name, user_password
from benchmarks.deathstar.hotel.expected import Expected
from benchmarks.deathstar.hotel.services.geo import RADIUS_M
from benchmarks.deathstar.hotel.services.geography import cell_of, metres_between
from benchmarks.deathstar.hotel.services.user import hashed
from benchmarks.deathstar.hotel.settings import RESERVE_HEAVY, Settings
from styx import ConfigurationError


def loaded(settings: Settings) -> dict[str, dict[Any, Any]]:
    return {loading.operator.name: dict(loading.pairs) for loading in DataSet(settings).initial()}


def test_sizes_are_those_of_the_settings_and_those_of_the_progress_line() -> None:
    settings = Settings(hotels=45, hotels_per_city=10, flights=7, users=9, rooms=3, seats=4)
    assert settings.cities == 5
    for loading in DataSet(settings).initial():
        assert loading.size == len(list(loading.pairs))
    state = loaded(settings)
    assert {name: len(pairs) for name, pairs in state.items() if name not in ("geo", "recommendation")} == {
        "profile": 45,
        "rate": 45,
        "hotel": 45,
        "flight": 7 * 15,
        "user": 9,
    }
    assert state["hotel"][44].rooms == 3
    assert state["flight"][7, "2015-04-23"].seats == 4


def test_the_same_settings_give_the_same_data() -> None:
    settings = Settings()
    assert loaded(settings) == loaded(settings)
    assert DataSet(settings).places == DataSet(settings).places


def test_each_hotel_is_in_the_cell_of_its_place_once() -> None:
    state = loaded(Settings(hotels=200))
    for operator in ("geo", "recommendation"):
        here = [(cell, each) for cell, hotels in state[operator].items() for each in hotels]
        assert sorted(each.hotel for _, each in here) == list(range(200))
        assert all(cell_of(each.place) == cell for cell, each in here)


def test_passwords_are_salted() -> None:
    users = loaded(Settings(users=20))["user"]
    first = users[user_name(3)]
    assert first.password_hash == hashed(first.salt, user_password(3))
    assert len({each.salt for each in users.values()}) == 20
    assert hashed(b"one", "password") != hashed(b"other", "password")


def test_most_places_have_hotels_around_and_the_expected_ones_are_the_nearest() -> None:
    data = DataSet(Settings(hotels=300, places=50))
    expected = Expected(data)
    full = 0
    for place in data.places:
        found = expected.nearest(place)
        full += len(found) == 5
        distances = sorted(metres_between(place, hotel.place) for hotel in data.hotels)
        assert [metres for metres, _ in found] == [metres for metres in distances if metres <= RADIUS_M][:5]
    assert full > 40


def test_cells_stay_small_however_many_hotels_there_are() -> None:
    data = DataSet(Settings(hotels=20_000))
    sizes = [len(here) for here in data._cells().values()]
    assert max(sizes) < 50


def test_many_reservations_are_to_fail_in_the_mix_for_it_if_nothing_else_is_said() -> None:
    assert Settings().capacity == (200, 200)
    assert Settings(mix=RESERVE_HEAVY).capacity == (10, 6)
    assert Settings(mix=RESERVE_HEAVY, rooms=1, seats=2).capacity == (1, 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mix": "all"}, "the mix is one of standard, reserve-heavy, search"),
        ({"hotels": 0}, "--hotels is 1 or more, got 0"),
        ({"hotels_per_city": 0}, "--hotels-per-city is 1 or more"),
        ({"rooms": 0}, "--rooms is 1 or more"),
        ({"zipf": 1.0}, "the Zipf exponent is from 0"),
        ({"wrong_password": float("nan")}, "such as 0.05 for 5 %"),
        ({"audit_sample": -1}, "sample is 0 entities or more"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Settings(**wrong)
