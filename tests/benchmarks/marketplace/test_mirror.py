"""The mirror follows acknowledged commits only, and several clients see one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.marketplace.driving.mirror import PRICE_MAX, Mirror, new_mirror_file
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods
from benchmarks.marketplace.record import Mirrored

SETTINGS = Settings(size=0.003, products_per_seller=10)


@pytest.fixture
def mirror() -> Mirror:
    return Mirror(SETTINGS, 0, 1)


def test_at_first_it_shows_what_was_loaded(mirror: Mirror) -> None:
    loaded = dict(goods.products(SETTINGS))
    for number in range(SETTINGS.products):
        product = loaded[goods.key_of(SETTINGS, number)]
        assert mirror.known(number) == (product.price, product.version, True)
    assert [*mirror.changed()] == []


def test_it_shows_what_it_was_told(mirror: Mirror) -> None:
    version = mirror.new_version()
    mirror.follow(12, 77_00, version)
    assert mirror.known(12) == (77_00, version, True)
    mirror.follow(12, PRICE_MAX, version, active=False)
    assert mirror.known(12) == (PRICE_MAX, version, False)
    assert [*mirror.changed()] == [Mirrored(2, 3, PRICE_MAX, version, False)]


def test_a_price_of_the_first_version_is_kept(mirror: Mirror) -> None:
    mirror.follow(0, 5_00, goods.FIRST_VERSION)
    assert mirror.known(0) == (5_00, goods.FIRST_VERSION, True)


def test_versions_are_never_given_twice() -> None:
    both = [Mirror(SETTINGS, client, 2) for client in (0, 1)]
    given = [mirror.new_version() for mirror in both for _ in range(5)]
    assert len({*given, goods.FIRST_VERSION}) == 11


def test_one_change_of_a_product_is_under_way_at_once(mirror: Mirror) -> None:
    assert mirror.take(3)
    assert not mirror.take(3)
    assert mirror.take(4)
    mirror.end(3)
    assert mirror.take(3)


def test_a_change_without_a_reply_is_not_taken_over_and_is_uncertain(mirror: Mirror) -> None:
    before = mirror.known(5)
    mirror.doubt(5)
    assert mirror.known(5) == before
    assert [each.certain for each in mirror.changed()] == [False]
    mirror.follow(5, before.price, before.version)
    assert [each.certain for each in mirror.changed()] == [True]


def test_a_version_of_an_earlier_run_is_left_alone(mirror: Mirror) -> None:
    mirror.follow(5, 1_00, "earlier-3")
    assert mirror.known(5).version == goods.FIRST_VERSION
    assert [each.certain for each in mirror.changed()] == [False]


def test_clients_see_each_others_changes_and_change_products_of_their_own() -> None:
    file = new_mirror_file(SETTINGS.products)
    try:
        shared = Settings(size=0.003, products_per_seller=10, mirror_file=str(file))
        first, second = Mirror(shared, 0, 2), Mirror(shared, 1, 2)
        owned = [[number for number in range(SETTINGS.products) if each.take(number)] for each in (first, second)]
        assert sorted(owned[0] + owned[1]) == [*range(SETTINGS.products)]
        assert {goods.key_of(SETTINGS, number)[0] for number in owned[0]} == {1, 2, 3}, "some of each seller"
        version = second.new_version()
        second.follow(owned[1][0], 42_00, version)
        assert first.known(owned[1][0]) == (42_00, version, True)
        assert [*first.changed()] == []
    finally:
        Path(file).unlink()
