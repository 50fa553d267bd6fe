"""NURand is the standard's formula with the standard's constants, and keeps its shape where there are fewer rows."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from benchmarks.tpcc.nurand import (
    A_CUSTOMER,
    A_ITEM,
    A_LAST_NAME,
    LAST_NAME_DELTAS,
    a_of,
    constants,
    customers_asked_for,
    items_asked_for,
    names_asked_for,
    names_loaded,
    nurand,
)
from benchmarks.tpcc.settings import CUSTOMERS, ITEMS, LAST_NAMES, Settings

FULL = Settings(items=ITEMS, customers=CUSTOMERS)


def test_it_is_the_formula() -> None:
    draw = nurand(255, 10, 99, 7, random.Random(1))
    uniform = random.Random(1).random
    for _ in range(100):
        first, second = int(uniform() * 256), 10 + int(uniform() * 90)
        assert draw() == ((first | second) + 7) % 90 + 10


def test_it_is_as_skewed_as_the_formula_says_exactly() -> None:
    expected = Counter(((a | x) + 3) % 20 for a in range(8) for x in range(20))
    draw = nurand(7, 0, 19, 3, random.Random(1))
    drawn = Counter(draw() for _ in range(16_000))
    assert set(drawn) == set(expected)
    assert max(expected.values()) > 3 * min(expected.values())
    for value, weight in expected.items():
        assert abs(drawn[value] / 100 - weight) < 0.35 * weight + 0.5


@pytest.mark.parametrize("seed", range(50))
def test_the_constants_are_in_their_ranges_and_those_of_names_as_far_apart_as_they_must_be(seed: int) -> None:
    found = constants(Settings(items=ITEMS, customers=CUSTOMERS, data_seed=seed))
    assert 0 <= found.loaded_name <= A_LAST_NAME
    assert 0 <= found.name <= A_LAST_NAME
    assert 0 <= found.customer <= A_CUSTOMER
    assert 0 <= found.item <= A_ITEM
    delta = abs(found.name - found.loaded_name)
    assert 65 <= delta <= 119
    assert delta not in (96, 112)


def test_the_constants_are_those_of_the_seed() -> None:
    assert constants(FULL) == constants(FULL) != constants(Settings(items=ITEMS, customers=CUSTOMERS, data_seed=2))


def test_the_standards_own_ranges_have_the_standards_a() -> None:
    assert a_of(A_LAST_NAME, LAST_NAMES, LAST_NAMES) == 255
    assert a_of(A_CUSTOMER, CUSTOMERS, CUSTOMERS) == 1_023
    assert a_of(A_ITEM, ITEMS, ITEMS) == 8_191
    assert {65, 119} <= set(LAST_NAME_DELTAS)
    assert len(LAST_NAME_DELTAS) == 53


@pytest.mark.parametrize(("size", "a"), [(100_000, 8_191), (99_999, 4_095), (10_000, 511), (100, 7), (12, 0), (1, 0)])
def test_smaller_ranges_have_a_smaller_a(size: int, a: int) -> None:
    assert a_of(A_ITEM, size, ITEMS) == a


@pytest.mark.parametrize("settings", [FULL, Settings(), Settings(items=1, customers=30)])
def test_what_is_drawn_is_there(settings: Settings) -> None:
    rng = random.Random(1)
    for draw, values in [
        (items_asked_for(settings, rng), range(1, settings.items + 1)),
        (customers_asked_for(settings, rng), range(1, settings.customers + 1)),
        (names_asked_for(settings, rng), range(settings.last_names)),
        (names_loaded(settings, rng), range(settings.last_names)),
    ]:
        drawn = {draw() for _ in range(2_000)}
        assert drawn <= set(values)
        assert len(drawn) > min(len(values), 2_000) // 4


def test_names_are_drawn_by_another_constant_in_the_data_than_in_requests() -> None:
    asked, loaded = names_asked_for(FULL, random.Random(1)), names_loaded(FULL, random.Random(1))
    apart = constants(FULL).name - constants(FULL).loaded_name
    assert all((loaded() + apart) % LAST_NAMES == asked() for _ in range(100))
