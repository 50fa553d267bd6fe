"""What a workload can be made with, what it cannot, and how a smaller warehouse shrinks."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.tpcc.mixes import MIXES
from benchmarks.tpcc.settings import CUSTOMERS, ITEMS, Settings
from styx import ConfigurationError


def test_a_full_warehouse_is_that_of_the_standard() -> None:
    full = Settings(items=ITEMS, customers=CUSTOMERS)
    assert (full.items, full.customers, full.orders, full.last_names) == (100_000, 3_000, 3_000, 1_000)
    assert (full.delivered, full.undelivered) == (2_100, 900)
    assert (full.district_ytd, full.warehouse_ytd) == (30_000_00, 300_000_00)


@pytest.mark.parametrize("customers", [30, 31, 299, 600, 3_000])
def test_a_smaller_warehouse_adds_up(customers: int) -> None:
    settings = Settings(customers=customers)
    assert settings.delivered + settings.undelivered == settings.orders == settings.customers
    assert settings.undelivered >= 1
    assert 1 <= settings.last_names <= settings.customers
    assert settings.warehouse_ytd == 10 * settings.district_ytd == 10 * 10_00 * customers


def test_every_mix_adds_up_and_the_standards_has_the_shares_of_the_standard() -> None:
    for shares in MIXES.values():
        assert round(sum(shares.values()), 9) == 1
    standard = MIXES["standard"]
    assert standard["payment"] == 0.43
    assert [standard[kind] for kind in ("order-status", "delivery", "stock-level")] == [0.04] * 3
    assert {name for name, shares in MIXES.items() if shares == {name: 1.0}} == set(standard)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"warehouses": 0}, "at least 1 warehouse"),
        ({"items": 0}, "from 1 to 100000"),
        ({"items": 100_001}, "from 1 to 100000"),
        ({"customers": 29}, "from 30 to 3000"),
        ({"customers": 3_001}, "from 30 to 3000"),
        ({"mix": "mixed"}, "no mix 'mixed'; there are standard, new-order-payment, new-order,"),
        ({"remote_item": 1.1}, "--remote-item is from 0 to 1"),
        ({"rollback": -0.1}, "--rollback is from 0 to 1"),
        ({"remote_customer": float("nan")}, "--remote-customer is from 0 to 1"),
        ({"by_name": 60}, "--by-name is from 0 to 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Settings(**options)
