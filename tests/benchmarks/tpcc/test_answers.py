"""Answers whose order is not the one that they claim are found; what has no answer forbids nothing by itself."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.tpcc.answers import OrderStatusAnswer
from benchmarks.tpcc.ledger.answers import AnswersLedger, Happened
from benchmarks.tpcc.ledger.orders import HandedOver, Made
from benchmarks.tpcc.records import Delivered, Paid, Place, Shown
from benchmarks.tpcc.settings import Settings

SETTINGS = Settings(items=10, customers=30)
KEY = (1, 1)
ORDERED_AT = {31: 10, 32: 30, 33: 50}
"""Customer 1's orders of the run; its first one was 30."""


def at(number: int) -> Place:
    return number, 1, 0


def delivered(o_id: int | None, number: int) -> Delivered:
    return Delivered(1, 4, [o_id] + [None] * 9, at(number))


def paid(payment_cnt: int, balance: int, number: int) -> Paid:
    return Paid(1, 1, 1, 1, 1, False, 100, 0, payment_cnt, balance, 0, at(number))


def shown(o_id: int, number: int, carrier_id: int | None = None, balance: int = -1000) -> Shown:
    return Shown(1, 1, False, OrderStatusAnswer(1, "", "", "", balance, o_id, 0, carrier_id, []), at(number))


def violations(**changed: Any) -> list[str]:
    """Orders 22 to 31 were delivered before order 33 was made; customer 1 has paid twice."""
    made = {o_id: Made(1, at(number)) for o_id, number in ORDERED_AT.items()}
    handed_over = {o_id: HandedOver(1 if o_id > 29 else 2, 500, 4, 0) for o_id in range(22, 32)}
    whole: dict[str, Any] = {
        "made": made,
        "handed_over": handed_over,
        "oldest": 32,
        "paid": {(1, 2): paid(2, -1100, 5), (1, 3): paid(3, -700, 38)},
        "untold": set(),
        "deliveries": [*(delivered(o_id, o_id - 10) for o_id in range(22, 31)), delivered(31, 40)],
        "shown": [shown(30, 4), shown(30, 6, None, -1100), shown(31, 12, None, -1100), shown(33, 60, None, -200)],
    }
    first_orders = {1: 30, 2: 29}
    return list(AnswersLedger(KEY, SETTINGS, first_orders, Happened(**whole | changed)).violations())


def test_the_order_that_they_claim() -> None:
    assert violations() == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"made": {31: Made(1, at(30)), 32: Made(1, at(10)), 33: Made(1, at(50))}},
            "order 32 of district (1, 1) was made before order 31",
        ),
        (
            {"deliveries": [delivered(23, 12), delivered(22, 13)]},
            "order 23 of district (1, 1) was delivered before order 22",
        ),
        ({"deliveries": [delivered(31, 9)]}, "order 31 of district (1, 1) was delivered before it was made"),
        ({"deliveries": [delivered(32, 35)]}, "order 32 of district (1, 1) was delivered before order 32"),
        ({"deliveries": [delivered(None, 3), delivered(22, 12)]}, "found no order in district (1, 1), but 22 was not"),
        ({"deliveries": [delivered(None, 35)]}, "found no order in district (1, 1), but 32 was not"),
        (
            {"paid": {(1, 2): paid(2, -700, 38), (1, 3): paid(3, -1100, 5)}},
            "payment 3 of customer (1, 1, 1) was made before payment 2",
        ),
        ({"paid": {(1, 2): paid(2, -1101, 5)}}, "customer (1, 1, 1) was told of a balance of -1101 rather than -1100"),
        (
            {"shown": [shown(31, 12, None, -1000)]},
            "customer (1, 1, 1) was told of a balance of -1000 rather than -1100",
        ),
        ({"shown": [shown(30, 12, None, -1100)]}, "was shown order 30 when the last one was 31"),
        ({"shown": [shown(31, 6, None, -1100)]}, "was shown order 31 when the last one was 30"),
        ({"shown": [shown(31, 12, 4, -1100)]}, "was shown order 31 with carrier 4, before it was delivered"),
        (
            {"made": {31: Made(1, at(10))}, "shown": [shown(31, 60, None, -200)]},
            "order 31 with carrier None, after it was delivered",
        ),
        ({"shown": [shown(33, 60, 4, -200)]}, "order 33 with carrier 4, before it was delivered"),
    ],
)
def test_another_order(changed: dict[str, Any], said: str) -> None:
    found = violations(**changed)
    assert any(said in text for text in found), found
    assert all(text.startswith("serial order: ") for text in found)


def test_what_has_no_answer_has_no_place() -> None:
    made = {31: Made(1, at(10)), 32: Made(1, None), 33: Made(1, at(50))}
    # Order 32 may have been there from the start to the end of what lies between its neighbours.
    assert violations(made=made, shown=[shown(31, 39, None, -700), shown(32, 39, None, -700)]) == []
    assert "when the last one was 33" in violations(made=made, shown=[shown(32, 60, None, -200)])[0]
    # Nobody was told when order 31 was delivered, so customer 1 may have been charged for it at any time.
    deliveries = [delivered(o_id, o_id - 10) for o_id in range(22, 31)]
    assert violations(deliveries=deliveries, shown=[shown(31, 12, 4, 0), shown(31, 12, None, -1100)]) == []
    assert violations(untold={1}, shown=[shown(31, 12, None, 7)]) == []
