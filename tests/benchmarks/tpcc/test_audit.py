"""The audit finds every row and every reply that is not as it must be, names it, and finds nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from benchmarks.driver.workload import Planned
from benchmarks.tpcc import reads, tables
from benchmarks.tpcc.audit import audit
from benchmarks.tpcc.tables import History, NewOrder, Order, OrderLine
from benchmarks.tpcc.violations import SHOWN_MAX
from styx.client.base import FunctionLike, KeyLike, OperatorLike
from styx.messages import Reply
from tests.benchmarks.tpcc.serial_run import SETTINGS, Change, Run, SerialClient, audited, finished, violations_after

DISTRICT = (2, 3)
CUSTOMER = (2, 3, 6)
DELIVERED = (2, 3, 5)
"""An order that was so at the start, so that its lines cost nothing."""
UNDELIVERED = (2, 3, 30)
"""An order that is not yet, and was there at the start."""


def rules_of(violations: list[str]) -> set[str]:
    return {text.partition(":")[0] for text in violations}


def test_a_sound_run_passes() -> None:
    sound = audited(finished())
    assert sound.violations == []
    assert "consistency conditions" in sound.checked[0]
    assert audited(finished(), witnessed=False).violations == []


def change(table: str, key: Any, **columns: Any) -> Change:
    return lambda run: run.change(table, key, **columns)


def gone(table: str, key: Any) -> Change:
    return lambda run: run.put(table, key, None)


def more(table: str, key: Any, column: str, by: int = 1) -> Change:
    def changing(run: Run) -> None:
        run.change(table, key, **{column: getattr(run.row(table, key), column) + by})

    return changing


def appears(table: str, key: Any, row: Any) -> Change:
    return lambda run: run.put(table, key, row)


def answers(function: Any, change: Callable[[Any], None]) -> Change:
    """An index does not agree with the rows: that function reads otherwise in the district."""

    def changing(run: Run) -> None:
        run.client.answering[function.__name__, DISTRICT] = change

    return changing


def at(*path: int, to: Any) -> Callable[[Any], None]:
    """Puts a value at that place of a result."""

    def putting(result: Any) -> None:
        *outer, last = path
        for index in outer:
            result = result[index]
        result[last] = to

    return putting


LINE = OrderLine(1, 2, None, 5, 100, "")


@pytest.mark.parametrize(
    ("changed", "rules", "said"),
    [
        (more("warehouse", 2, "ytd"), {"3.3.2.1", "3.3.2.8"}, "warehouse 2 has W_YTD"),
        (more("district", DISTRICT, "ytd"), {"3.3.2.1", "3.3.2.9"}, "district (2, 3) has D_YTD"),
        (
            more("district", DISTRICT, "next_o_id"),
            {"3.3.2.2", "order"},
            "order: (2, 3, 36) is missing: a gap in the numbers",
        ),
        (
            gone("new_order", UNDELIVERED),
            {"3.3.2.3", "3.3.2.5", "3.3.2.11"},
            "order (2, 3, 30) has O_CARRIER_ID None, but is not in NEW_ORDER",
        ),
        (
            appears("new_order", DELIVERED, NewOrder()),
            {"3.3.2.3", "3.3.2.5", "3.3.2.11", "serial order"},
            "order (2, 3, 5) has O_CARRIER_ID",
        ),
        (
            gone("order_line", (*DELIVERED, 2)),
            {"3.3.2.4", "3.3.2.6", "order line"},
            "order line: (2, 3, 5, 2) is missing",
        ),
        (change("order", DELIVERED, carrier_id=None), {"3.3.2.5", "3.3.2.7", "order"}, "(2, 3, 5) has carrier_id None"),
        (
            change("order_line", (*DELIVERED, 1), delivery_d=None),
            {"3.3.2.7", "order line"},
            "order (2, 3, 5) has O_CARRIER_ID",
        ),
        (
            more("customer", CUSTOMER, "balance"),
            {"3.3.2.10", "3.3.2.12", "customer"},
            "customer (2, 3, 6) has C_BALANCE -999 rather than -1000",
        ),
        (
            more("customer", CUSTOMER, "ytd_payment"),
            {"3.3.2.12", "customer"},
            "customer: (2, 3, 6) has ytd_payment 1001",
        ),
        (
            more("history", (*CUSTOMER, 1), "amount"),
            {"3.3.2.8", "3.3.2.9", "3.3.2.10", "payment"},
            "payment: (2, 3, 6, 1) has amount 1001 rather than 1000",
        ),
        (change("history", (*CUSTOMER, 1), d_id=4), {"3.3.2.9", "payment"}, "district (2, 4) has D_YTD"),
    ],
)
def test_rows_that_violate_a_condition(changed: Change, rules: set[str], said: str) -> None:
    violations = violations_after(changed)
    assert rules_of(violations) == rules, violations
    assert said in "\n".join(violations)


@pytest.mark.parametrize(
    ("changed", "violations"),
    [
        (change("customer", CUSTOMER, phone="1"), ["customer: (2, 3, 6) has phone '1' rather than"]),
        (more("customer", CUSTOMER, "delivery_cnt"), ["customer: (2, 3, 6) has delivery_cnt 1 rather than 0"]),
        (change("order", DELIVERED, entry_d=7), ["order: (2, 3, 5) has entry_d 7 rather than 1735689600000000"]),
        (change("order_line", (*DELIVERED, 2), i_id=41), ["order line: (2, 3, 5, 2) has i_id 41 rather than"]),
        (change("district", DISTRICT, name="d"), ["district: (2, 3) has name 'd' rather than"]),
        (more("warehouse", 2, "tax"), ["warehouse: 2 has tax 1438 rather than 1437"]),
        (more("item", (1, 6), "price"), ["item: (1, 6) has price 9966 rather than 9965"]),
        (gone("item", (1, 6)), ["item: (1, 6) is missing"]),
        (appears("item", (1, 41), None), []),
        (lambda run: run.put("item", (1, 41), run.row("item", (1, 40))), ["item: (1, 41) stands, but there are 40"]),
        (lambda run: run.put("stock", (1, 41), run.row("stock", (1, 40))), ["stock: (1, 41) stands, but there are 40"]),
        (gone("stock", (1, 6)), ["stock: (1, 6) is missing"]),
        (more("stock", (1, 6), "quantity"), ["stock: (1, 6) has quantity"]),
        (more("stock", (1, 6), "ytd"), ["stock: (1, 6) has ytd"]),
        (more("stock", (1, 6), "order_cnt"), ["stock: (1, 6) has order_cnt"]),
        (more("stock", (1, 6), "remote_cnt"), ["stock: (1, 6) has remote_cnt"]),
        (change("stock", (1, 6), data="d"), ["stock: (1, 6) has data 'd' rather than"]),
        (
            answers(reads.audit_customers, at(5, 2, to=4)),
            ["index of last orders: customer (2, 3, 6) has 4 rather than"],
        ),
        (
            answers(reads.audit_customers, at(5, 2, to=None)),
            ["index of last orders: customer (2, 3, 6) has None rather than"],
        ),
        (
            answers(reads.audit_customers, at(5, 3, to=[6])),
            ["index of names: BARBARESE of (2, 3, 6) has [6] rather than"],
        ),
        (
            answers(reads.audit_found, at(1, to=28)),
            ["index of undelivered orders: district (2, 3) has 28 rather than 27"],
        ),
        (
            lambda run: run.put("customer", (2, 3, 31), replace(run.row("customer", CUSTOMER), last_name="X")),
            ["customer: (2, 3, 31) stands, but there are 30 in each district"],
        ),
        (
            appears("order", (*DISTRICT, 36), Order(6, 0, None, 0, 1)),
            [
                "3.3.2.5: order (2, 3, 36) has O_CARRIER_ID None, but is not in NEW_ORDER",
                "order: (2, 3, 36) stands, but D_NEXT_O_ID is 36",
                "order: (2, 3, 36) of customer 6 stands, and nobody has asked for it",
                "3.3.2.2: district (2, 3) has D_NEXT_O_ID 36, but its last order is 36",
                "3.3.2.11: district (2, 3) has 36 orders and 9 rows of NEW_ORDER, 27 fewer, but 26 were delivered",
            ],
        ),
        (
            appears("order_line", (*DISTRICT, 36, 1), LINE),
            ["3.3.2.6: order (2, 3, 36) has O_OL_CNT 0, but 1", "3.3.2.4: district (2, 3)"],
        ),
        (
            appears("history", (*CUSTOMER, 2), History(2, 3, 0, 0, "")),
            [
                "payment: (2, 3, 6, 2) stands in HISTORY, but C_PAYMENT_CNT is 1",
                "customer: (2, 3, 6) has payment_cnt 1 rather than 2",
            ],
        ),
    ],
)
def test_rows_that_are_not_as_they_must_be(changed: Change, violations: list[str]) -> None:
    found = violations_after(changed)
    assert len(found) == len(violations), found
    for text, said in zip(found, violations, strict=True):
        assert text.startswith(said)


def test_a_customer_who_has_paid_often_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MORE_PAYMENTS_READ", 2)

    def pays(run: Run) -> None:
        for _ in range(reads.PAYMENTS_READ):
            run.send(Planned("payment", tables.warehouse, 2, "payment", (3, *CUSTOMER, 100)))

    def changing(run: Run) -> None:
        pays(run)
        run.change("history", (*CUSTOMER, reads.PAYMENTS_READ), data="d")

    assert violations_after(pays) == []
    (violation,) = violations_after(changing)
    assert violation.startswith("payment: (2, 3, 6, 20) has data 'd' rather than ")


def test_all_rows_are_read_in_however_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = audited(finished())
    for name in ("ORDERS_READ", "CUSTOMERS_READ", "ITEMS_READ"):
        monkeypatch.setattr(reads, name, 3)
    assert audited(finished()) == whole
    changed = violations_after(change("customer", (1, 10, 30), phone="1"))
    assert [text.partition(" has ")[0] for text in changed] == ["customer: (1, 10, 30)"]


def test_only_a_few_violations_of_each_rule_are_told() -> None:
    def changing(run: Run) -> None:
        for i_id in range(1, SHOWN_MAX + 4):
            run.change("stock", (1, i_id), data="d")

    told = violations_after(changing)
    assert len(told) == SHOWN_MAX + 1
    assert told[-1] == "stock: and 3 more"


@pytest.mark.parametrize("table", ["warehouse", "district", "customer"])
def test_what_is_gone_altogether_is_told(table: str) -> None:
    key: dict[str, Any] = {"warehouse": 2, "district": DISTRICT, "customer": CUSTOMER}
    violations = violations_after(gone(table, key[table]))
    assert any(text.startswith(f"{table}: {key[table]} is missing") for text in violations), violations


def test_a_customer_whom_the_index_of_names_does_not_have_is_told() -> None:
    (violation,) = violations_after(answers(reads.audit_customers, at(0, 3, to=[])))
    assert violation.startswith("index of names: BARBARBAR of (2, 3, 1) has []")


class Unsettled(SerialClient):
    """Somebody else pays at each reading of a warehouse's row, the first time, or every time."""

    def __init__(self, run: Run, times: int) -> None:
        super().__init__()
        self.reference = run.client.reference
        self._run = run
        self._times = times

    def submit(
        self, operator: OperatorLike, key: KeyLike, function: FunctionLike, *args: Any, **options: Any
    ) -> Awaitable[Reply]:
        answer = super().submit(operator, key, function, *args, **options)
        if operator is tables.warehouse and self._times:
            self._times -= 1
            self.run(tables.warehouse, 1, "payment", 1, 1, 1, 5, 100)
        return answer


def test_what_is_still_in_the_log_settles_before_the_rows_are_read() -> None:
    assert asyncio.run(audit(Unsettled(finished(), 5), SETTINGS, [])).violations == []


def test_what_writes_while_the_audit_reads_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.tpcc.auditor.SETTLING_READS_MAX", 3)
    violations = asyncio.run(audit(Unsettled(finished(), 1000), SETTINGS, [])).violations
    assert violations[-1] == "unsettled: something has written while the audit was reading; audit again"


class Unanswering(Unsettled):
    """Reads no stock."""

    def submit(
        self, operator: OperatorLike, key: KeyLike, function: FunctionLike, *args: Any, **options: Any
    ) -> Awaitable[Reply]:
        if args and function is reads.audit_stocks:
            raise_later: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            raise_later.set_exception(TimeoutError("no reply"))
            return raise_later
        return super().submit(operator, key, function, *args, **options)


def test_rows_that_cannot_be_read_end_the_audit() -> None:
    violations = asyncio.run(audit(Unanswering(finished(), 0), SETTINGS, [])).violations
    assert violations == ["unread: the audit ended early, at stock (1, 1): could not be read: no reply"]
