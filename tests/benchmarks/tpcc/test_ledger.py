"""What clients were told is held against the rows, both ways: nothing told is missing, and nothing stands unasked for.

What a request without an answer may have done is allowed, once, as a whole, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from benchmarks.driver.workload import Planned
from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import Wanted
from benchmarks.tpcc.arithmetic import total_of
from tests.benchmarks.tpcc.serial_run import Change, Outcome, Run, violations_after

AHEAD = (2, 3)
"""A district of warehouse 2, whose last order of the run is customer 3's, number 35."""


def told(
    kind: str, change: Callable[[Any], Any], where: Callable[[Planned, Any], bool] = lambda _p, _r: True
) -> Change:
    """Clients were told something else by the first such answer."""

    def changing(run: Run) -> None:
        at = run.first(kind, where)
        reply = run.outcomes[at].reply
        assert reply is not None
        result = msgspec.msgpack.decode(msgspec.msgpack.encode(reply.result))
        changed = change(result)
        run.tell(at, result if changed is None else changed)

    return changing


def put(*path: int, to: Any) -> Callable[[Any], None]:
    """Puts a value at that place of an answer."""

    def putting(result: Any) -> None:
        *outer, last = path
        for index in outer:
            result = result[index]
        result[last] = to

    return putting


def rules_of(violations: list[str]) -> set[str]:
    return {text.partition(":")[0] for text in violations}


def check(changed: Change, rules: set[str], *said: str) -> None:
    violations = violations_after(changed)
    assert rules_of(violations) == rules, violations
    for text in said:
        assert text in "\n".join(violations)


def again(kind: str) -> Change:
    """Another client got the same answer."""
    return lambda run: run.outcomes.append(run.outcomes[run.first(kind)])


def unasked(planned: Planned) -> Change:
    """A request that no client knows of."""
    return lambda run: run.client.run(planned.operator, planned.key, planned.function, *planned.arguments) and None


AN_ORDER = Planned("new-order", tables.district, AHEAD, "new_order", (5, [Wanted(7, 2, 3), Wanted(9, 1, 2)]))
A_PAYMENT = Planned("payment", tables.warehouse, 1, "payment", (2, 2, 3, "BARBARBAR", 10_00))
A_DELIVERY = Planned("delivery", tables.warehouse, 2, "delivery", (8,))


@pytest.mark.parametrize("planned", [AN_ORDER, A_PAYMENT, A_DELIVERY], ids=lambda planned: planned.kind)
class TestWithoutAnAnswer:
    """A request without an answer may have happened or not; twice, or another one, it may not."""

    def test_it_may_have_happened_or_not(self, planned: Planned) -> None:
        def lost(run: Run) -> None:
            run.outcomes.append(Outcome(planned, None))

        def happened(run: Run) -> None:
            lost(run)
            unasked(planned)(run)

        assert violations_after(lost) == []
        assert violations_after(happened) == []

    def test_it_did_not_happen_twice(self, planned: Planned) -> None:
        def twice(run: Run) -> None:
            run.outcomes.append(Outcome(planned, None))
            unasked(planned)(run)
            unasked(planned)(run)

        (violation, *more) = violations_after(twice)
        assert more == [] or planned is A_DELIVERY
        assert "nobody" in violation or "fewer" in violation

    def test_it_cannot_have_been_another_one(self, planned: Planned) -> None:
        other = {
            "new-order": planned._replace(arguments=(5, [Wanted(7, 2, 3), Wanted(9, 1, 3)])),
            "payment": planned._replace(arguments=(2, 2, 3, "BARBARBAR", 10_01)),
            "delivery": planned._replace(arguments=(9,)),
        }[planned.kind]

        def changing(run: Run) -> None:
            run.outcomes.append(Outcome(other, None))
            unasked(planned)(run)

        (violation,) = violations_after(changing)
        assert "nobody" in violation

    def test_nobody_has_asked_for_it(self, planned: Planned) -> None:
        violations = violations_after(unasked(planned))
        assert any("nobody" in text for text in violations), violations

    def test_an_answer_that_did_not_arrive_is_no_violation(self, planned: Planned) -> None:
        def forgotten(run: Run) -> None:
            for at, outcome in enumerate(run.outcomes):
                if outcome.planned.kind == planned.kind and at % 3 == 0:
                    run.forget(at)

        assert violations_after(forgotten) == []


def test_an_order_that_was_rolled_back_and_stands_is_found() -> None:
    """Whatever did not come with an answer: its request names an item that is not there."""

    def changing(run: Run) -> None:
        cannot = AN_ORDER._replace(arguments=(5, [Wanted(7, 2, 3), Wanted(41, 2, 1)]))
        run.outcomes.append(Outcome(cannot, None))
        unasked(AN_ORDER._replace(arguments=(5, [Wanted(7, 2, 3)])))(run)

    assert violations_after(changing) == ["order: (2, 3, 36) of customer 5 stands, and nobody has asked for it"]


O_ID, ENTRY_D, TOTAL = 0, 1, 7
"""Of a NewOrder's answer."""


def test_an_order_is_what_was_told() -> None:
    check(told("new-order", put(ENTRY_D, to=5)), {"order"}, "has entry_d 1760000000003000 rather than 5")
    check(
        told("new-order", put(O_ID, to=99)),
        {"order"},
        "(2, 4, 99) does not stand, but customer 9 was told of it",
        "(2, 4, 31) of customer 9 stands, and nobody has asked for it",
    )
    check(again("new-order"), {"order"}, "(2, 4, 31) was told of twice")


def first_line(**columns: Any) -> Change:
    """Of an order that an OrderStatus has shown."""
    return lambda run: run.change("order_line", (2, 4, 31, 1), **columns)


def test_an_orders_rows_are_what_was_asked_for() -> None:
    taken = {"order line", "order status", "stock"}
    check(first_line(amount=0), {"order line", "order status"}, "(2, 4, 31, 1) has amount 0 rather than 46962")
    check(first_line(quantity=1), taken, "(2, 4, 31, 1) has quantity 1 rather than 6")
    check(first_line(dist_info="d"), {"order line"}, "(2, 4, 31, 1) has dist_info 'd', which is another stock's")
    check(first_line(i_id=1), taken, "(2, 4, 31, 1) has i_id 1 rather than 18")
    check(first_line(i_id=41), taken, "(2, 4, 31, 1) has i_id 41 rather than 18")
    check(first_line(supply_w_id=1), taken, "(2, 4, 31, 1) has supply_w_id 1 rather than 2")
    check(lambda run: run.change("order", (2, 4, 31), all_local=1), {"order"}, "has all_local 1 rather than 0")
    check(
        lambda run: run.change("order", (2, 4, 31), c_id=8),
        {"order", "order status"},
        "(2, 4, 31) has c_id 8 rather than 9",
    )


def test_an_orders_total_is_that_of_its_rows() -> None:
    """An answer that agrees with itself, but not with what the customer pays."""

    def cheaper(result: Any) -> None:
        for line in result[8]:
            line[3] = line[4] = 0
        result[TOTAL] = 0

    check(told("new-order", cheaper), {"order"}, "(2, 4, 31) has a total of", "but 0 was told")


def test_a_line_that_an_order_lacks_or_has_too_many_is_found() -> None:
    count = {"3.3.2.4", "3.3.2.6", "order status", "stock"}
    check(lambda run: run.put("order_line", (2, 4, 31, 1), None), {*count, "order line"}, "(2, 4, 31, 1) is missing")

    def one_more(run: Run) -> None:
        ol_cnt = run.row("order", (2, 4, 31)).ol_cnt
        run.put("order_line", (2, 4, 31, ol_cnt + 1), run.row("order_line", (2, 4, 31, 1)))

    check(one_more, count, "has O_OL_CNT 13, but 14 order lines")


@pytest.mark.parametrize("column", [2, 3, 4, 5, 6], ids=["c_last", "c_credit", "c_discount", "w_tax", "d_tax"])
def test_an_order_shows_its_customer_and_taxes(column: int) -> None:
    """Where the answer agrees with itself."""

    def other(result: Any) -> None:
        result[column] = "x" if column < 4 else result[column] + 1
        amounts = sum(line[4] for line in result[8])
        result[TOTAL] = total_of(amounts, result[4], result[5] + result[6])

    check(told("new-order", other), {"order"}, "(2, 4, 31) is of Buyer(", "but others were told")


@pytest.mark.parametrize(("column", "to"), [(0, "x"), (2, "B")], ids=["i_name", "brand"])
def test_an_order_shows_its_items(column: int, to: str) -> None:
    check(told("new-order", put(8, 0, column, to=to)), {"order"}, "but other names, prices, brands or generics")


def test_an_order_shows_what_it_left_of_its_items() -> None:
    check(told("new-order", put(8, 0, 1, to=10)), {"serial order"}, "was told that 10 are left rather than ")


def test_a_stock_level_is_that_of_its_place() -> None:
    check(told("stock-level", lambda low: low + 1), {"serial order"}, "a StockLevel of district")


PAID = (1, 8, 27, 2)
"""The only payment of a customer who was found by name."""


def told_payment(change: Callable[[Any], None]) -> Change:
    return told("payment", change, lambda planned, _: planned.arguments[3] == "BARBAROUGHT")


def test_a_payment_is_what_was_told() -> None:
    check(told_payment(put(2, to=5)), {"payment"}, "(1, 8, 27, 2) has date 1760000000012000 rather than 5")
    check(
        told_payment(put(3, 7, to=9)),
        {"payment"},
        "(1, 8, 27, 9) was told of, but does not stand in HISTORY",
        "(1, 8, 27, 2) of 190235 at (1, 8) stands, and nobody has asked for it",
    )
    check(again("payment"), {"payment"}, "(1, 9, 20, 2) was told of twice")
    check(
        told_payment(put(3, 0, to=26)),
        {"payment"},
        "customer (1, 8, 26) was found by name, but another one is in the middle",
    )


@pytest.mark.parametrize("path", [(0,), (1,), (3, 1), (3, 2)], ids=["w_name", "d_name", "c_first", "c_middle"])
def test_a_payment_shows_its_customer_and_district(path: tuple[int, ...]) -> None:
    check(told_payment(put(*path, to="x")), {"payment"}, "(1, 8, 27, 2) is of Payer(", "but others were told")


def test_rows_of_history_are_what_was_told() -> None:
    check(lambda run: run.change("history", PAID, data="d"), {"payment"}, "(1, 8, 27, 2) has data 'd' rather than")
    check(
        lambda run: run.change("history", PAID, amount=1),
        {"payment", "customer", "3.3.2.8", "3.3.2.9", "3.3.2.10"},
        "(1, 8, 27, 2) has amount 1 rather than 190235",
    )
    check(
        lambda run: run.change("history", PAID, w_id=2),
        {"payment", "3.3.2.8", "3.3.2.9"},
        "(1, 8, 27, 2) has w_id 2 rather than 1",
    )
    check(
        lambda run: run.put("history", PAID, None),
        {"payment", "customer", "3.3.2.8", "3.3.2.9", "3.3.2.10"},
        "(1, 8, 27, 2) is missing in HISTORY, but C_PAYMENT_CNT is 2",
    )


def test_bad_credit_leaves_its_notes() -> None:
    def changing(run: Run) -> None:
        run.change("customer", (2, 8, 30), data=run.row("customer", (2, 8, 30)).data[1:])

    check(changing, {"customer"}, "(2, 8, 30) has data '0 8 2 4 1 1635.52 |")
    check(lambda run: run.change("customer", (1, 9, 20), data="d"), {"customer"}, "(1, 9, 20) has data 'd' rather than")


def delivered_otherwise(*o_ids: int | None) -> Change:
    """The first Delivery, which delivered order 22 of each district, told that of the first districts."""

    def change(result: Any) -> None:
        result[: len(o_ids)] = o_ids

    return told("delivery", change)


def test_deliveries_are_what_was_told() -> None:
    check(delivered_otherwise(23), {"delivery", "serial order"}, "order (2, 1, 23) was delivered twice")
    check(delivered_otherwise(31), {"delivery", "serial order"}, "order (2, 1, 31) is not delivered, but carrier 10")
    check(delivered_otherwise(None), {"3.3.2.11", "delivery", "serial order"}, "a Delivery found no order in district")
    check(again("delivery"), {"delivery", "3.3.2.11", "serial order"}, "order (2, 1, 22) was delivered twice")


def test_a_delivery_is_of_one_carrier_at_one_time() -> None:
    check(
        lambda run: run.change("order", (2, 3, 22), carrier_id=1),
        {"delivery"},
        "order (2, 3, 22) has carrier 1 rather than 10",
    )

    def later(run: Run) -> None:
        for number in range(1, run.row("order", (2, 3, 22)).ol_cnt + 1):
            run.change("order_line", (2, 3, 22, number), delivery_d=9)

    check(later, {"delivery"}, "of warehouse 2 were delivered at once, at")


def test_the_lines_of_an_order_are_delivered_at_once() -> None:
    key = (2, 3, 22, 2)
    check(lambda run: run.change("order_line", key, delivery_d=9), {"order"}, "(2, 3, 22) was delivered at once, but")


def undone(run: Run, district: tuple[int, int], o_id: int) -> None:
    """What a Delivery did to one district, its last one there, is as before."""
    key = (*district, o_id)
    order = run.row("order", key)
    run.change("order", key, carrier_id=None)
    amount = 0
    for number in range(1, order.ol_cnt + 1):
        amount += run.row("order_line", (*key, number)).amount
        run.change("order_line", (*key, number), delivery_d=None)
    run.put("new_order", key, tables.NewOrder())
    customer = (*district, order.c_id)
    row = run.row("customer", customer)
    run.change("customer", customer, balance=row.balance - amount, delivery_cnt=row.delivery_cnt - 1)


def test_a_delivery_without_an_answer_that_happened_by_half_is_found() -> None:
    def changing(run: Run) -> None:
        run.outcomes.append(Outcome(A_DELIVERY, None))
        unasked(A_DELIVERY)(run)
        undone(run, AHEAD, 27)

    (violation,) = violations_after(changing)
    assert "took 0 of district 3, which still has order 27" in violation


def test_a_delivery_that_was_lost_in_one_district_is_found() -> None:
    def changing(run: Run) -> None:
        undone(run, AHEAD, 26)

    check(
        changing, {"delivery", "3.3.2.11", "serial order"}, "order (2, 3, 26) is not delivered, but carrier 7 was told"
    )


def a_status(result: Any) -> bool:
    return result[7] is None


def test_a_shown_order_is_one_that_stands() -> None:
    last = told("order-status", put(5, to=77))
    check(last, {"order"}, "does not stand, but an OrderStatus showed it")
    check(
        told("order-status", put(6, to=1)), {"order status"}, "customer 30 of district (1, 3) was shown order 2 entered"
    )
    check(told("order-status", put(8, 0, 0, to=40)), {"order status"}, "with the lines")
    check(told("order-status", put(8, 0, 4, to=40)), {"order status"}, "with another time of delivery")
    check(told("order-status", put(7, to=6)), {"order status"}, "with carrier 6, but it has 5")
    check(told("order-status", put(1, to="x")), {"order status"}, "was shown as ('x', 'OE', ")
    check(told("order-status", put(4, to=6)), {"serial order"}, "was told of a balance of 6 rather than -1000")


def test_a_customer_found_by_name_is_the_one_in_the_middle() -> None:
    def changing(run: Run) -> None:
        at = run.first("order-status")
        planned, reply = run.outcomes[at]
        assert reply is not None
        run.outcomes[at] = Outcome(planned._replace(arguments=(reply.result[3],)), reply)

    check(changing, {"order status"}, "customer (1, 3, 30) was found by name, but another one is in the middle")
