"""Mixes are files with the shares of the specification; others are read by their path, and wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.marketplace.driving.mixes import NAMES, TRANSACTIONS, read_mix
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.record import Kind
from styx.errors import ConfigurationError

SHARES = {
    "a": (30, 60, 5, 3, 2),
    "b": (12.5, 25, 2.5, 30, 30),
    "c": (16, 32, 48, 2, 2),
    "vmodb": (70, 0, 10, 10, 10),
    "checkout-only": (100, 0, 0, 0, 0),
    "checkout-price": (80, 0, 0, 20, 0),
}
ORDER = (Kind.CHECKOUT, Kind.DELIVERY, Kind.DASHBOARD, Kind.PRICE, Kind.REPLACE)


@pytest.mark.parametrize("name", SHARES)
def test_the_shares_are_those_of_the_specification(name: str) -> None:
    planned = read_mix(name).planned
    assert [planned.get(kind, 0) for kind in ORDER] == pytest.approx([share / 100 for share in SHARES[name]])
    assert sum(planned.values()) == pytest.approx(1)


def test_there_are_no_others() -> None:
    assert {*NAMES} == {*SHARES}


def test_a_scenario_is_skewed_as_the_specification_says() -> None:
    assert read_mix("a").skew == read_mix("vmodb").skew
    assert read_mix("a").skew.sellers == read_mix("c").skew.sellers == 0
    assert read_mix("b").skew.sellers > 0 < read_mix("b").skew.products


def test_the_vmodb_mix_has_one_seller_in_a_cart_and_no_vouchers() -> None:
    carts = read_mix("vmodb").carts
    assert carts.one_seller
    assert not carts.voucher
    assert read_mix("a").carts.voucher == 0.05


def written(folder: Path, text: str) -> str:
    file = folder / "own.toml"
    file.write_text('title = "own"\n' + text)
    return str(file)


def test_a_file_of_ones_own_has_any_weights(tmp_path: Path) -> None:
    mix = read_mix(written(tmp_path, "[shares]\ncheckout = 3\nwithdraw = 1\nrestock = 0"))
    assert mix.planned == {Kind.CHECKOUT: 0.75, Kind.WITHDRAW: 0.25}
    assert mix.carts.products == (1, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[shares]\nchekout = 3", "is no mix: .*chekout"),
        ("[shares]\nadd = 3", "add is no transaction; shares are of " + ", ".join(TRANSACTIONS)),
        ("[shares]\ncheckout = -1", "is no mix: "),
        ("[shares]\ncheckout = 0", "all shares are 0"),
        ("[shares]\ncheckout = 1\n[carts]\nvouchers = 1", "vouchers"),
        ("[shares]\ncheckout = 1\n[carts]\npieces = [5, 2]", "pieces goes from 5 to 2; the least comes first"),
        ("[shares]\ncheckout = 1\n[carts]\nproducts = [1, 101]", "a cart takes 100 products at most, got 101"),
        ("[shares]\ncheckout = 1\n[skew]\nsellers = 9", "is no mix: "),
        ("shares", "is no mix: "),
    ],
)
def test_a_wrong_file_is_refused_by_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_mix(written(tmp_path, text))


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ConfigurationError, match="there is no mix d: give a file, or a, b, c, checkout-only, checkout-price, vmodb"
    ):
        read_mix("d")


def test_options_stand_above_the_file() -> None:
    mix = Settings(mix="b", seller_zipf=1.2, abandoned=0.25).mixed
    assert (mix.skew.sellers, mix.skew.products, mix.carts.abandoned) == (1.2, 0.6, 0.25)
    assert Settings(mix="b", product_zipf=0.0).mixed.skew.products == 0


def test_a_kind_is_left_out_and_the_others_have_its_share() -> None:
    assert Settings(mix="vmodb", without="dashboard").mixed.planned == pytest.approx(
        {"checkout": 7 / 9, "price": 1 / 9, "replace": 1 / 9}
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 0.0}, "the size factor is from 0.0001, which is one customer, to 1000, got 0.0"),
        ({"products_per_seller": 0}, "at least 1 product"),
        ({"pieces": 0}, "--pieces is from 1 to"),
        ({"orders": -1}, "--orders is from 0 to"),
        ({"undelivered": 1.5}, "--undelivered"),
        ({"seller_zipf": 4.0}, "--seller-zipf is an exponent from 0 to 3, got 4.0"),
        ({"epoch": float("nan")}, "--epoch is a number of seconds above 0"),
        ({"mix": "nowhere"}, "there is no mix nowhere"),
        ({"mix": "vmodb", "without": "delivery"}, "--without leaves .* vmodb has checkout, dashboard, price, replace"),
        ({"mix": "checkout-only", "without": "checkout"}, "--without leaves one of several kinds out"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Settings(**wrong)  # type: ignore[arg-type]


def test_the_last_seller_may_have_fewer_products() -> None:
    settings = Settings(size=0.0025, products_per_seller=10)
    assert (settings.customers, settings.products, settings.sellers) == (25, 25, 3)
    assert [settings.products_of(each) for each in (1, 2, 3)] == [10, 10, 5]


def test_a_result_shows_what_was_planned_and_how_the_application_ran() -> None:
    shown = Settings().shown()
    assert shown["planned"]["delivery"] == 0.6
    assert shown["application"]["replication"] == "together"
    assert "run" not in shown
