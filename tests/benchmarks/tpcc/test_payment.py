"""Payment: at home and at another warehouse, by number and by name, with good credit and with bad."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import styx
from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import PaidCustomer, PaymentAnswer
from benchmarks.tpcc.payment import DATA_MAX, DATA_SHOWN
from styx.client.embedded import EmbeddedClient
from tests.benchmarks.tpcc.hand_made import HOME, LAST, REMOTE, State, changes, state_of, wholesaler


async def pay(client: EmbeddedClient, c_w_id: int, c_d_id: int, who: int | str, amount: int) -> PaymentAnswer:
    """Pays at district 4 of the home warehouse."""
    answer = await client.call("warehouse", HOME, "payment", 4, c_w_id, c_d_id, who, amount)
    return msgspec.convert(answer, PaymentAnswer)


def paid(c_w_id: int, c_d_id: int, who: int | str, amount: int = 1234) -> tuple[PaymentAnswer, State]:
    """The answer to a payment, and the rows that it changed."""

    async def run() -> tuple[PaymentAnswer, State]:
        async with wholesaler() as client:
            before = state_of(client)
            answer = await pay(client, c_w_id, c_d_id, who, amount)
            return answer, changes(before, state_of(client))

    return asyncio.run(run())


def test_a_payment_is_on_four_rows_and_answers_what_a_terminal_shows() -> None:
    answer, changed = paid(HOME, 4, 5)
    assert answer == PaymentAnswer(
        "W1", "D4", answer.date, PaidCustomer(5, "Emil", "OE", "OUGHTOUGHT", "GC", 2500, -2234, 2, "")
    )
    assert changed.pop(("warehouse", HOME)).ytd == 30_001_234
    assert changed.pop(("district", (HOME, 4))).ytd == 3_001_234
    customer = changed.pop(("customer", (HOME, 4, 5)))
    assert (customer.balance, customer.ytd_payment, customer.payment_cnt) == (-2234, 2234, 2)
    assert customer.data == "old data"
    assert changed == {("history", (HOME, 4, 5, 2)): tables.History(HOME, 4, answer.date, 1234, "W1    D4")}


def test_a_customer_of_another_warehouse_has_the_history_there() -> None:
    answer, changed = paid(REMOTE, 7, 1)
    assert (answer.w_name, answer.customer.first, answer.customer.balance) == ("W1", "Dora", -2234)
    assert changed["history", (REMOTE, 7, 1, 2)] == tables.History(HOME, 4, answer.date, 1234, "W1    D4")
    assert set(changed) == {
        ("warehouse", HOME),
        ("district", (HOME, 4)),
        ("customer", (REMOTE, 7, 1)),
        ("history", (REMOTE, 7, 1, 2)),
    }


@pytest.mark.parametrize("c_w_id", [HOME, REMOTE])
def test_a_name_means_the_middle_one_by_first_name_rounded_up(c_w_id: int) -> None:
    # Anne, Bert, Carl, Dora: the second of four.
    answer, changed = paid(c_w_id, 4, LAST)
    assert (answer.customer.c_id, answer.customer.first) == (2, "Bert")
    assert ("history", (c_w_id, 4, 2, 2)) in changed
    assert paid(c_w_id, 4, "OUGHTOUGHT")[0].customer.c_id == 5


def test_bad_credit_is_noted_in_the_customers_data() -> None:
    async def run() -> None:
        async with wholesaler() as client:
            first = await pay(client, REMOTE, 6, 3, 500_000)
            assert first.customer.data == "3 6 2 4 1 5000.00 | old data"
            for _ in range(40):
                await pay(client, REMOTE, 6, 3, 101)
            last = await pay(client, REMOTE, 6, 3, 101)
            data = state_of(client)["customer", (REMOTE, 6, 3)].data
            assert len(data) == DATA_MAX
            assert data.startswith("3 6 2 4 1 1.01 | 3 6 2 4 1 1.01 | ")
            assert last.customer.data == data[:DATA_SHOWN]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("who", "message"),
    [(6, "there is no customer (2, 4, 6)"), ("NOBODY", "there is no customer named (2, 4, 'NOBODY')")],
)
def test_who_is_not_there_cannot_pay(who: int | str, message: str) -> None:
    async def run() -> None:
        async with wholesaler() as client:
            before = state_of(client)
            with pytest.raises(styx.TransactionAborted) as aborted:
                await pay(client, REMOTE, 4, who, 100)
            assert (aborted.value.type, aborted.value.message) == ("NoSuchRow", message)
            assert changes(before, state_of(client)) == {}

    asyncio.run(run())
