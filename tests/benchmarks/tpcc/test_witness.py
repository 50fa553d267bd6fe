"""A witness notes at once what no serial order of transactions could answer, and keeps what the audit needs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmarks.driver.workload import Planned
from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import OrderStatusAnswer, StatusLine, Wanted
from benchmarks.tpcc.constant import Buyer, Good, Payer, of_goods, of_payment, of_terms
from benchmarks.tpcc.records import (
    BLOCK,
    AskedDelivery,
    AskedOrder,
    AskedPayment,
    Delivered,
    Ordered,
    Paid,
    Records,
    Shown,
    unpacked,
)
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.told import Told
from benchmarks.tpcc.witness import VIOLATIONS_KEPT_MAX, Witness
from styx.messages import Reply, ReplyError

SETTINGS = Settings(items=100, customers=30)
LINES = [Wanted(7, 1, 3), Wanted(9, 1, 2)]
SOLD = [["a", 60, "G", 20_00, 60_00], ["b", 100, "B", 20_00, 40_00]]
ORDERED = [3001, 10**15, "BARBARBAR", "GC", 1000, 500, 1500, 108_00, SOLD]
PAID = ["w", "d", 10**15, [5, "f", "OE", "BARBARBAR", "GC", 0, -20_00, 2, ""]]
BAD = ["w", "d", 10**15, [5, "f", "OE", "BARBARBAR", "BC", 0, -20_00, 2, "5 3 1 2 1 10.01 | ".ljust(200, "x")]]
SHOWN = [5, "f", "OE", "BARBARBAR", -10_00, 8, 10**15, 3, [[7, 1, 5, 0, 10**15]]]
TERMS = of_terms(Buyer("BARBARBAR", "GC", 1000), 500, 1500)
GOODS = of_goods([Good("a", 20_00, "G"), Good("b", 20_00, "B")])
NAMES = of_payment("w", "d", Payer("f", "OE", "BARBARBAR", "GC", 0))

NEW_ORDER = Planned("new-order", tables.district, (1, 2), "new_order", (5, LINES))
UNUSED_ITEM = NEW_ORDER._replace(arguments=(5, [LINES[0], Wanted(101, 1, 2)]))
PAYMENT = Planned("payment", tables.warehouse, 1, "payment", (2, 1, 3, 5, 10_00))
BY_NAME = PAYMENT._replace(arguments=(2, 1, 3, "BARBARBAR", 10_00))
ORDER_STATUS = Planned("order-status", tables.district, (1, 2), "order_status", (5,))
STATUS_BY_NAME = Planned("order-status", tables.district, (1, 2), "order_status", ("BARBARBAR",))
DELIVERY = Planned("delivery", tables.warehouse, 1, "delivery", (4,))
STOCK_LEVEL = Planned("stock-level", tables.district, (1, 2), "stock_level", (15,))


def committed(result: Any) -> Reply:
    return Reply(result, None, 30, 10, 1, "r")


def aborted(kind: str, code: str = "aborted") -> Reply:
    return Reply(None, ReplyError(kind, "because", code), 30, 10, 1, "r")


def changed(row: list[Any], *path: int, to: Any) -> list[Any]:
    """The row with another value at that place."""
    copy: list[Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(row))
    *outer, last = path
    place = copy
    for index in outer:
        place = place[index]
    place[last] = to
    return copy


def told_of(*outcomes: tuple[Planned, Reply | None]) -> Told:
    """What the audit gets, from another process."""
    witness = Witness(SETTINGS)
    for planned, reply in outcomes:
        if reply is None:
            witness.unknown(planned)
        else:
            witness.answered(planned, reply)
    return Told([msgspec.msgpack.decode(msgspec.msgpack.encode(witness.report()))])


def test_what_is_answered_is_kept_where_its_rows_are() -> None:
    told = told_of(
        (NEW_ORDER, committed(ORDERED)),
        (PAYMENT, committed(PAID)),
        (BY_NAME, committed(PAID)),
        (ORDER_STATUS, committed(SHOWN)),
        (STATUS_BY_NAME, committed(SHOWN)),
        (DELIVERY, committed([5, None, *range(1, 9)])),
        (STOCK_LEVEL, committed(17)),
        (UNUSED_ITEM, aborted("ItemNotFound")),
        (NEW_ORDER, aborted("RequestRejected", "overloaded")),
    )
    assert told.noted == []
    place = (10, 1, 30)
    assert list(told.about(Ordered, 1, 2)) == [
        Ordered(1, 2, 5, LINES, 3001, 10**15, 10_800, [60, 100], TERMS, GOODS, place)
    ]
    paid = Paid(1, 2, 1, 3, 5, False, 10_00, 10**15, 2, -20_00, NAMES, place)
    assert list(told.about(Paid, 1, 3)) == [paid, msgspec.structs.replace(paid, by_name=True)]
    status = OrderStatusAnswer(5, "f", "OE", "BARBARBAR", -10_00, 8, 10**15, 3, [StatusLine(7, 1, 5, 0, 10**15)])
    assert list(told.about(Shown, 1, 2)) == [Shown(1, 2, False, status, place), Shown(1, 2, True, status, place)]
    assert list(told.about(Delivered, 1)) == [Delivered(1, 4, [5, None, *range(1, 9)], place)]
    assert list(told.about(Ordered, 1, 3)) == []
    assert told.counts == {
        "new-order": 1,
        "payment": 2,
        "order-status": 2,
        "delivery": 1,
        "stock-level": 1,
        "rolled back": 1,
        "not run": 1,
    }


def test_what_is_not_answered_is_kept_if_it_can_have_happened_and_writes() -> None:
    told = told_of(*((planned, None) for planned in (NEW_ORDER, UNUSED_ITEM, BY_NAME, DELIVERY, ORDER_STATUS)))
    assert list(told.about(AskedOrder, 1, 2)) == [AskedOrder(1, 2, 5, LINES)]
    assert list(told.about(AskedPayment, 1, 3)) == [AskedPayment(1, 2, 1, 3, "BARBARBAR", 10_00)]
    assert list(told.about(AskedDelivery, 1)) == [AskedDelivery(1, 4)]
    assert told.counts["unknown new-order"] == 2
    assert told.counts["unknown order-status"] == 1


@pytest.mark.parametrize(
    ("planned", "reply", "said"),
    [
        (NEW_ORDER, committed(None), "Expected `array`"),
        (NEW_ORDER, committed(changed(ORDERED, 7, to=10_801)), "a total of 10801 rather than 10800"),
        (
            NEW_ORDER,
            committed(changed(ORDERED, 8, 1, 3, to=20_01)),
            "4000 as the amount of line 2, its price being 2001",
        ),
        (NEW_ORDER, committed(changed(ORDERED, 8, 0, 1, to=9)), "left 9 of item 7"),
        (NEW_ORDER, committed(changed(ORDERED, 8, 0, 2, to="X")), "'X' as line 1's brand or generic"),
        (NEW_ORDER, committed(changed(ORDERED, 8, to=SOLD[:1])), "gave 1 lines"),
        (NEW_ORDER, aborted("ItemNotFound"), "was rolled back, but all of its items are there"),
        (NEW_ORDER, aborted("NoSuchRow"), "was aborted by NoSuchRow: because"),
        (UNUSED_ITEM, aborted("NoSuchRow"), "was aborted by NoSuchRow: because"),
        (UNUSED_ITEM, committed(ORDERED), "committed as order 3001, with an item that is not there"),
        (PAYMENT, aborted("ItemNotFound"), "was aborted by ItemNotFound"),
        (PAYMENT, committed(changed(PAID, 3, 0, to=6)), "was of customer 6, BARBARBAR"),
        (BY_NAME, committed(changed(PAID, 3, 3, to="BAROUGHT")), "was of customer 5, BAROUGHT"),
        (PAYMENT, committed(changed(PAID, 3, 8, to="secret")), "credit 'GC' and data 'secret'"),
        (PAYMENT, committed(changed(PAID, 3, 4, to="BC")), "credit 'BC' and data ''"),
        (PAYMENT, committed(changed(changed(PAID, 3, 4, to="BC"), 3, 8, to="x" * 501)), "501 characters of C_DATA"),
        (PAYMENT, committed(BAD), "200 that begin with '5 3 1 2 1 10.00 | '"),
        (ORDER_STATUS, committed(changed(SHOWN, 0, to=6)), "was of customer 6"),
        (STATUS_BY_NAME, committed(changed(SHOWN, 3, to="BAROUGHT")), "was of customer 5, BAROUGHT"),
        (ORDER_STATUS, committed(changed(SHOWN, 7, to=None)), "order 8 delivered in part"),
        (DELIVERY, committed([1, 2, 3]), "not a number for each district"),
        (STOCK_LEVEL, committed(-1), "gave -1"),
        (STOCK_LEVEL, committed(101), "gave 101, which cannot be more than 100"),
        (STOCK_LEVEL._replace(arguments=(10,)), committed(1), "gave 1, which cannot be more than 0"),
    ],
)
def test_a_reply_that_no_serial_order_gives_is_noted(planned: Planned, reply: Reply, said: str) -> None:
    (noted,) = told_of((planned, reply)).noted
    assert said in noted
    assert noted.startswith(f"{planned.function}{planned.arguments} of {planned.operator.name} {planned.key} ")
    many = told_of(*[(planned, reply)] * (VIOLATIONS_KEPT_MAX + 3))
    assert len(many.noted) == VIOLATIONS_KEPT_MAX
    assert many.counts["violations"] == VIOLATIONS_KEPT_MAX + 3


def test_bad_credit_shows_the_first_of_its_notes() -> None:
    shown = "5 3 1 2 1 10.00 | ".ljust(200, "x")
    assert told_of((PAYMENT, committed(changed(BAD, 3, 8, to=shown)))).noted == []


def test_more_transactions_than_can_be_kept_are_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.tpcc.witness.RECORDS_MAX", 2)
    told = told_of(*[(NEW_ORDER, committed(ORDERED))] * 3, (PAYMENT, None))
    assert len(list(told.about(Ordered, 1, 2))) == 2
    assert told.noted == ["a client saw more than the 2 transactions that can be audited: use more clients"]


@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * BLOCK + 1])
def test_records_come_back_as_they_were(count: int) -> None:
    records: Records[AskedDelivery] = Records()
    for number in range(count):
        records.append(AskedDelivery(number, 4))
    assert len(records) == count
    assert [record.w_id for record in unpacked(records.blocks(), AskedDelivery)] == list(range(count))
