"""One client's witness: the outcomes of its requests, as far as rows depend on them.

A reply that no serial order of transactions could give, whatever the rows are, is noted as a violation at once: one
that contradicts itself or its request, or an abort that the request is no cause of.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec

from benchmarks.driver.workload import Planned
from benchmarks.tpcc.answers import NewOrderAnswer, OrderStatusAnswer, PaymentAnswer, Wanted
from benchmarks.tpcc.arithmetic import (
    BAD_CREDIT,
    CUSTOMER_DATA_SHOWN,
    QUANTITY_MAX,
    QUANTITY_MIN,
    data_after,
    total_of,
)
from benchmarks.tpcc.constant import Buyer, Good, Payer, of_goods, of_payment, of_terms
from benchmarks.tpcc.mixes import DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL
from benchmarks.tpcc.records import (
    AskedDelivery,
    AskedOrder,
    AskedPayment,
    Delivered,
    Levelled,
    Ordered,
    Paid,
    Records,
    Shown,
)
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.tables import DISTRICTS
from styx.messages import Reply, ReplyError

RECORDS_MAX: Final = 2_000_000
"""Transactions that a witness keeps, 200 MB of NewOrders. With more the audit fails, and says why."""
VIOLATIONS_KEPT_MAX: Final = 20
"""Violations that a witness describes; further ones are counted."""
ITEM_NOT_FOUND: Final = "ItemNotFound"
"""The type of the one abort that a workload asks for."""

STOCK_LEVEL_LINES_MAX: Final = 20 * 15
"""Order lines that StockLevel looks at: 15 of each of 20 orders."""


class Witness:
    """Takes one outcome after the other; `report` is plain data for `Told`."""

    def __init__(self, settings: Settings) -> None:
        self._items = settings.items
        self._ordered: Records[Ordered] = Records()
        self._paid: Records[Paid] = Records()
        self._delivered: Records[Delivered] = Records()
        self._shown: Records[Shown] = Records()
        self._levelled: Records[Levelled] = Records()
        self._asked_orders: Records[AskedOrder] = Records()
        self._asked_payments: Records[AskedPayment] = Records()
        self._asked_deliveries: Records[AskedDelivery] = Records()
        self._counts: Counter[str] = Counter()
        self._violations: list[str] = []
        self._kept = 0
        self._committed: Final = {
            NEW_ORDER: self._new_order,
            PAYMENT: self._payment,
            ORDER_STATUS: self._order_status,
            DELIVERY: self._delivery,
            STOCK_LEVEL: self._stock_level,
        }

    def answered(self, planned: Planned, reply: Reply) -> None:
        """Takes a reply, committed or not."""
        if reply.error is not None:
            self._not_committed(planned, reply.error)
            return
        self._counts[planned.kind] += 1
        if self._has_room():
            try:
                self._committed[planned.kind](planned, reply)
            except msgspec.ValidationError as error:
                self._violated(planned, f"gave {reply.result!r}: {error}")

    def unknown(self, planned: Planned) -> None:
        """Takes a request without a reply."""
        self._counts[f"unknown {planned.kind}"] += 1
        if not self._has_room():
            return
        key, arguments = planned.key, planned.arguments
        if planned.kind == NEW_ORDER:
            (w_id, d_id), lines = key, _wanted(planned)
            # One with an item that is not there cannot have happened.
            if self._all_items_exist(lines):
                self._asked_orders.append(AskedOrder(w_id, d_id, arguments[0], lines))
        elif planned.kind == PAYMENT:
            self._asked_payments.append(AskedPayment(key, *arguments))
        elif planned.kind == DELIVERY:
            self._asked_deliveries.append(AskedDelivery(key, *arguments))

    def report(self) -> dict[str, Any]:
        """The whole witness. Under a record's name are blocks of such records."""
        return {
            Ordered.__name__: self._ordered.blocks(),
            Paid.__name__: self._paid.blocks(),
            Delivered.__name__: self._delivered.blocks(),
            Shown.__name__: self._shown.blocks(),
            Levelled.__name__: self._levelled.blocks(),
            AskedOrder.__name__: self._asked_orders.blocks(),
            AskedPayment.__name__: self._asked_payments.blocks(),
            AskedDelivery.__name__: self._asked_deliveries.blocks(),
            "counts": {**self._counts},
            "violations": self._violations,
        }

    def _not_committed(self, planned: Planned, error: ReplyError) -> None:
        if error.code != "aborted":
            self._counts["not run"] += 1
            return
        self._counts["rolled back"] += 1
        if planned.kind != NEW_ORDER or error.type != ITEM_NOT_FOUND:
            self._violated(planned, f"was aborted by {error.type}: {error.message}")
        elif self._all_items_exist(_wanted(planned)):
            self._violated(planned, "was rolled back, but all of its items are there")

    def _new_order(self, planned: Planned, reply: Reply) -> None:
        (w_id, d_id), c_id, lines = planned.key, planned.arguments[0], _wanted(planned)
        answer = msgspec.convert(reply.result, NewOrderAnswer)
        self._ordered.append(
            Ordered(
                w_id,
                d_id,
                c_id,
                lines,
                answer.o_id,
                answer.entry_d,
                answer.total,
                [line.stock if QUANTITY_MIN <= line.stock <= QUANTITY_MAX else 0 for line in answer.lines],
                of_terms(Buyer(answer.c_last, answer.c_credit, answer.c_discount), answer.w_tax, answer.d_tax),
                of_goods([Good(line.i_name, line.price, line.brand_generic) for line in answer.lines]),
                _place(reply),
            )
        )
        if not self._all_items_exist(lines):
            self._violated(planned, f"committed as order {answer.o_id}, with an item that is not there")
        for fault in order_faults(lines, answer):
            self._violated(planned, fault)

    def _payment(self, planned: Planned, reply: Reply) -> None:
        d_id, c_w_id, c_d_id, who, amount = planned.arguments
        answer = msgspec.convert(reply.result, PaymentAnswer)
        found = answer.customer
        by_name = isinstance(who, str)
        payer = Payer(found.first, found.middle, found.last, found.credit, found.discount)
        self._paid.append(
            Paid(
                planned.key,
                d_id,
                c_w_id,
                c_d_id,
                found.c_id,
                by_name,
                amount,
                answer.date,
                found.payment_cnt,
                found.balance,
                of_payment(answer.w_name, answer.d_name, payer),
                _place(reply),
            )
        )
        if who != (found.last if by_name else found.c_id):
            self._violated(planned, f"was of customer {found.c_id}, {found.last}")
        if (found.data != "") != (found.credit == BAD_CREDIT):
            self._violated(planned, f"gave credit {found.credit!r} and data {found.data!r}")
        elif found.data:
            note = data_after("", (c_w_id, c_d_id, found.c_id), planned.key, d_id, amount)
            if len(found.data) != CUSTOMER_DATA_SHOWN or not found.data.startswith(note):
                self._violated(
                    planned,
                    f"gave {len(found.data)} characters of C_DATA, {found.data!r}, "
                    f"rather than {CUSTOMER_DATA_SHOWN} that begin with {note!r}",
                )

    def _order_status(self, planned: Planned, reply: Reply) -> None:
        (w_id, d_id), (who,) = planned.key, planned.arguments
        status = msgspec.convert(reply.result, OrderStatusAnswer)
        by_name = isinstance(who, str)
        self._shown.append(Shown(w_id, d_id, by_name, status, _place(reply)))
        if who != (status.last if by_name else status.c_id):
            self._violated(planned, f"was of customer {status.c_id}, {status.last}")
        if any((line.delivery_d is None) != (status.carrier_id is None) for line in status.lines):
            self._violated(planned, f"showed order {status.o_id} delivered in part")

    def _delivery(self, planned: Planned, reply: Reply) -> None:
        o_ids = msgspec.convert(reply.result, list[int | None])
        if len(o_ids) != DISTRICTS:
            self._violated(planned, f"gave {o_ids}: not a number for each district")
            return
        self._delivered.append(Delivered(planned.key, planned.arguments[0], o_ids, _place(reply)))

    def _stock_level(self, planned: Planned, reply: Reply) -> None:
        low = msgspec.convert(reply.result, int)
        (threshold,) = planned.arguments
        w_id, d_id = planned.key
        self._levelled.append(Levelled(w_id, d_id, threshold, low, _place(reply)))
        most = min(STOCK_LEVEL_LINES_MAX, self._items) if threshold > QUANTITY_MIN else 0
        if not 0 <= low <= most:
            self._violated(planned, f"gave {low}, which cannot be more than {most}")

    def _all_items_exist(self, lines: list[Wanted]) -> bool:
        return all(1 <= line.i_id <= self._items for line in lines)

    def _has_room(self) -> bool:
        self._kept += 1
        if self._kept <= RECORDS_MAX:
            return True
        if self._kept == RECORDS_MAX + 1:
            self._note(f"a client saw more than the {RECORDS_MAX} transactions that can be audited: use more clients")
        return False

    def _violated(self, planned: Planned, text: str) -> None:
        self._note(f"{planned.function}{planned.arguments} of {planned.operator.name} {planned.key} {text}")

    def _note(self, text: str) -> None:
        self._counts["violations"] += 1
        if len(self._violations) < VIOLATIONS_KEPT_MAX:
            self._violations.append(text)


def order_faults(lines: list[Wanted], answer: NewOrderAnswer) -> list[str]:
    """The faults in a NewOrder's answer, compared only with its request."""
    faults = []
    if len(answer.lines) != len(lines):
        return [f"gave {len(answer.lines)} lines"]
    amounts = 0
    for number, (line, ordered) in enumerate(zip(lines, answer.lines, strict=True), 1):
        amounts += ordered.amount
        if ordered.amount != ordered.price * line.quantity:
            faults.append(f"gave {ordered.amount} as the amount of line {number}, its price being {ordered.price}")
        if not QUANTITY_MIN <= ordered.stock <= QUANTITY_MAX:
            faults.append(f"left {ordered.stock} of item {line.i_id}")
        if ordered.brand_generic not in ("B", "G"):
            faults.append(f"gave {ordered.brand_generic!r} as line {number}'s brand or generic")
    total = total_of(amounts, answer.c_discount, answer.w_tax + answer.d_tax)
    if answer.total != total:
        faults.append(f"gave a total of {answer.total} rather than {total}")
    return faults


def _wanted(planned: Planned) -> list[Wanted]:
    return msgspec.convert(planned.arguments[1], list[Wanted])


def _place(reply: Reply) -> tuple[int, int, int]:
    return reply.epoch, reply.phase, reply.tid
