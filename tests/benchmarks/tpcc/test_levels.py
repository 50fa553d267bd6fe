"""A StockLevel counts the short items of the last twenty orders at its place in the serial order, each item once."""

from __future__ import annotations

import pytest

from benchmarks.tpcc.ledger.levels import LevelsLedger
from benchmarks.tpcc.ledger.orders import Made
from benchmarks.tpcc.records import Levelled, Place
from benchmarks.tpcc.settings import Settings

SETTINGS = Settings(items=10, customers=30)
ITEMS = {o_id: [1, 1] for o_id in range(11, 31)} | {11: [1, 2], 31: [3]}
"""Order 31 is made at place 5: then item 2's order is none of the last any more. All items begin with 15."""


def at(number: int) -> Place:
    return 1, 1, number


def violations(place: int, threshold: int, short: int, order_place: Place | None = (1, 1, 5)) -> list[str]:
    ledger = LevelsLedger(SETTINGS)
    level = Levelled(1, 1, threshold, short, at(place))
    ledger.district(iter([level]), {31: Made(1, order_place)}, ITEMS)
    for i_id in range(1, 11):
        ledger.stock(i_id, 15, [(at(5), 12)] if i_id == 3 else [])
    return list(ledger.violations())


@pytest.mark.parametrize(("place", "threshold", "short"), [(4, 15, 0), (4, 16, 2), (6, 15, 1), (6, 16, 2), (6, 12, 0)])
def test_it_is_what_its_place_gives(place: int, threshold: int, short: int) -> None:
    assert violations(place, threshold, short) == []
    (violation,) = violations(place, threshold, short + 1)
    assert violation.endswith(f"found {short + 1} items below {threshold} rather than {short}")


def test_nothing_is_said_of_a_district_with_an_order_without_an_answer() -> None:
    assert violations(6, 15, 9, order_place=None) == []


def test_nothing_is_said_of_stock_that_an_order_without_an_answer_took() -> None:
    ledger = LevelsLedger(SETTINGS)
    ledger.district(iter([Levelled(1, 1, 15, 9, at(4))]), {}, ITEMS)
    ledger.stock(1, 15, None)
    ledger.stock(2, 15, [])
    assert list(ledger.violations()) == []
