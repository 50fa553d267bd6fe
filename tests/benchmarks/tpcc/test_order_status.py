"""Order-Status: a customer's balance and last order, by number and by name."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import styx
from benchmarks.tpcc.answers import OrderStatusAnswer, StatusLine, Wanted
from tests.benchmarks.tpcc.hand_made import HOME, LAST, changes, state_of, wholesaler


def status(w_id: int, d_id: int, who: int | str) -> OrderStatusAnswer:
    """The answer; nothing changes."""

    async def run() -> OrderStatusAnswer:
        async with wholesaler() as client:
            before = state_of(client)
            answer = msgspec.convert(
                await client.call("district", (w_id, d_id), "order_status", who), OrderStatusAnswer
            )
            assert changes(before, state_of(client)) == {}
            return answer

    return asyncio.run(run())


UNDELIVERED = OrderStatusAnswer(
    2, "Bert", "OE", LAST, -1000, 2, 20, None, [StatusLine(2, HOME, 5, 111, None), StatusLine(3, HOME, 5, 222, None)]
)


def test_a_customer_sees_the_last_order_with_its_lines() -> None:
    assert status(HOME, 1, 2) == UNDELIVERED


def test_a_name_means_the_middle_one_by_first_name() -> None:
    assert status(HOME, 1, LAST) == UNDELIVERED


def test_an_order_just_made_is_the_last_one() -> None:
    async def run() -> None:
        async with wholesaler() as client:
            made: Any = await client.call("district", (HOME, 1), "new_order", 5, [Wanted(1, HOME, 2)])
            answer = await client.call("district", (HOME, 1), "order_status", "OUGHTOUGHT")
            assert msgspec.convert(answer, OrderStatusAnswer) == OrderStatusAnswer(
                5, "Emil", "OE", "OUGHTOUGHT", -1000, 3, made[1], None, [StatusLine(1, HOME, 2, 200, None)]
            )

    asyncio.run(run())


@pytest.mark.parametrize(
    ("who", "message"),
    [
        (9, "there is no customer (1, 1, 9)"),
        (1, "there is no order of customer (1, 1, 1)"),
        ("NOBODY", "there is no customer named (1, 1, 'NOBODY')"),
    ],
)
def test_what_is_not_there_is_named(who: int | str, message: str) -> None:
    with pytest.raises(styx.TransactionAborted) as aborted:
        status(HOME, 1, who)
    assert (aborted.value.type, aborted.value.message) == ("NoSuchRow", message)
