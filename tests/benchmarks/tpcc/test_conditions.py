"""Each of the twelve conditions holds where it should, and says what violates it where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.tpcc import conditions
from benchmarks.tpcc.conditions import OrdersTally
from benchmarks.tpcc.tables import Address, Customer, NewOrder, Order, OrderLine

DISTRICT = (1, 2)
ORDER = (1, 2, 7)
CUSTOMER = (1, 2, 3)
ADDRESS = Address("", "", "", "", "")


def an_order(carrier_id: int | None, ol_cnt: int = 2) -> Order:
    return Order(3, 0, carrier_id, ol_cnt, 1)


def some_lines(*delivered: int | None) -> list[OrderLine]:
    return [OrderLine(1, 1, delivery_d, 5, 100, "") for delivery_d in delivered]


def a_customer(balance: int, ytd_payment: int) -> Customer:
    return Customer("", "", "", ADDRESS, "", 0, "GC", 0, 0, balance, ytd_payment, 1, 0, "")


def tally(orders: int = 5, **changed: int) -> OrdersTally:
    """Of orders with two lines, the first two of which are delivered."""
    made = OrdersTally()
    for o_id in range(1, orders + 1):
        new = o_id > 2
        made.add(o_id, an_order(None if new else 4), NewOrder() if new else None, some_lines(None, None))
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def test_conditions_hold() -> None:
    held = [
        conditions.condition_1(1, 30, [10, 20]),
        conditions.condition_2(DISTRICT, 6, tally()),
        conditions.condition_2(DISTRICT, 6, tally(new_orders=0, last_new=0)),
        conditions.condition_3(DISTRICT, tally()),
        conditions.condition_3(DISTRICT, tally(new_orders=0, first_new=0, last_new=0)),
        conditions.condition_4(DISTRICT, tally()),
        conditions.condition_5(ORDER, None, None),
        conditions.condition_5(ORDER, an_order(None), NewOrder()),
        conditions.condition_5(ORDER, an_order(4), None),
        conditions.condition_6(ORDER, an_order(4), some_lines(1, 1)),
        conditions.condition_6(ORDER, None, []),
        conditions.condition_7(ORDER, an_order(4), some_lines(1, 1)),
        conditions.condition_7(ORDER, an_order(None), some_lines(None, None)),
        conditions.condition_8(1, 30, 30),
        conditions.condition_9(DISTRICT, 30, 30),
        conditions.condition_10(CUSTOMER, a_customer(50, 0), 80, 30),
        conditions.condition_11(DISTRICT, tally(), 2, 2),
        conditions.condition_11(DISTRICT, tally(), 1, 3),
        conditions.condition_12(CUSTOMER, a_customer(50, 30), 80),
    ]
    assert [text for condition in held for text in condition] == []


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (conditions.condition_1(1, 31, [10, 20]), "1: warehouse 1 has W_YTD 31, but its districts' D_YTD make 30"),
        (
            conditions.condition_2(DISTRICT, 7, tally(last_new=6)),
            "2: district (1, 2) has D_NEXT_O_ID 7, but its last order is 5",
        ),
        (
            conditions.condition_2(DISTRICT, 6, tally(last_new=4)),
            "2: district (1, 2) has D_NEXT_O_ID 6, but its last row of NEW_ORDER is 4",
        ),
        (
            conditions.condition_3(DISTRICT, tally(new_orders=2)),
            "3: district (1, 2) has 2 rows of NEW_ORDER rather than the 3 from 3 to 5",
        ),
        (
            conditions.condition_4(DISTRICT, tally(lines=9)),
            "4: district (1, 2) has 9 order lines, but its orders' O_OL_CNT make 10",
        ),
        (conditions.condition_5(ORDER, None, NewOrder()), "5: order (1, 2, 7) is in NEW_ORDER, but not in ORDER"),
        (
            conditions.condition_5(ORDER, an_order(4), NewOrder()),
            "5: order (1, 2, 7) has O_CARRIER_ID 4, but is in NEW_ORDER",
        ),
        (
            conditions.condition_5(ORDER, an_order(None), None),
            "5: order (1, 2, 7) has O_CARRIER_ID None, but is not in NEW_ORDER",
        ),
        (
            conditions.condition_6(ORDER, an_order(4), some_lines(1, 1, 1)),
            "6: order (1, 2, 7) has O_OL_CNT 2, but 3 order lines",
        ),
        (conditions.condition_6(ORDER, None, some_lines(1)), "6: order (1, 2, 7) has O_OL_CNT 0, but 1 order lines"),
        (
            conditions.condition_7(ORDER, an_order(4), some_lines(9, None)),
            "7: order (1, 2, 7) has O_CARRIER_ID 4, but in 1 lines OL_DELIVERY_D None",
        ),
        (
            conditions.condition_7(ORDER, an_order(None), some_lines(9, 9)),
            "7: order (1, 2, 7) has O_CARRIER_ID None, but in 2 lines OL_DELIVERY_D 9",
        ),
        (conditions.condition_8(1, 31, 30), "8: warehouse 1 has W_YTD 31, but the H_AMOUNT paid there make 30"),
        (
            conditions.condition_9(DISTRICT, 31, 30),
            "9: district (1, 2) has D_YTD 31, but the H_AMOUNT paid there make 30",
        ),
        (
            conditions.condition_10(CUSTOMER, a_customer(51, 0), 80, 30),
            "10: customer (1, 2, 3) has C_BALANCE 51 rather than 50: delivered OL_AMOUNT 80, paid H_AMOUNT 30",
        ),
        (
            conditions.condition_11(DISTRICT, tally(), 3, 3),
            "11: district (1, 2) has 5 orders and 3 rows of NEW_ORDER, 2 fewer, but 3 were delivered",
        ),
        (
            conditions.condition_11(DISTRICT, tally(), 3, 4),
            "11: district (1, 2) has 5 orders and 3 rows of NEW_ORDER, 2 fewer, but 3 to 4 were delivered",
        ),
        (
            conditions.condition_12(CUSTOMER, a_customer(50, 31), 80),
            "12: customer (1, 2, 3) has C_BALANCE 50 and C_YTD_PAYMENT 31, together 81, but delivered OL_AMOUNT 80",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_condition_is_violated(broken: Iterator[str], said: str) -> None:
    assert list(broken) == [f"3.3.2.{said}"]


def test_a_tally_counts_what_has_no_order() -> None:
    made: Any = tally(2)
    made.add(3, None, NewOrder(), some_lines(None))
    assert (made.orders, made.last_o_id, made.ol_cnt, made.lines) == (2, 2, 4, 5)
    assert (made.new_orders, made.first_new, made.last_new) == (1, 3, 3)
