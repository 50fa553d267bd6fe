"""What NewOrders were told that they left of a stock is what their serial order leaves of it."""

from __future__ import annotations

from benchmarks.tpcc.answers import Wanted
from benchmarks.tpcc.ledger.remainders import Remainders
from benchmarks.tpcc.records import Ordered
from benchmarks.tpcc.settings import Settings

ITEM = (2, 7)
BEGAN = 20


def order(number: int, *lines: tuple[int, int]) -> Ordered:
    """At that place in the serial order: of the item so many, and so many left."""
    wanted = [Wanted(ITEM[1], ITEM[0], quantity) for quantity, _ in lines]
    return Ordered(1, 1, 1, wanted, number, 0, 0, [left for _, left in lines], 0, 0, (1, 1, number))


def violations(*orders: Ordered, taken: int) -> list[str]:
    remainders = Remainders(Settings(items=10))
    for each in orders:
        remainders.add(each)
    assert list(remainders.violations(1, ITEM[1], BEGAN, 0)) == []
    assert list(remainders.violations(ITEM[0], 8, BEGAN, 0)) == []
    return list(remainders.violations(*ITEM, BEGAN, taken))


def test_each_leaves_what_those_before_it_left_without_its_own() -> None:
    later, earlier = order(2, (3, 12), (4, 99)), order(1, (5, 15))
    assert violations(later, earlier, taken=12) == []


def test_orders_that_saw_the_same_stock_are_found() -> None:
    (violation,) = violations(order(1, (5, 15)), order(2, (3, 17)), taken=8)
    assert violation == "serial order: an order that took 3 of stock (2, 7) was told that 17 are left rather than 12"


def test_orders_in_another_order_than_they_claim_are_found() -> None:
    assert violations(order(2, (5, 15)), order(1, (3, 12)), taken=8) != []


def test_nothing_is_said_where_an_order_without_an_answer_took_some() -> None:
    assert violations(order(2, (3, 10)), taken=5) == []
