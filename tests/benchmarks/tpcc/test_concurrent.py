"""All five transactions at once on one district and one warehouse: nothing is lost, doubled or left over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import Wanted
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply
from tests.benchmarks.tpcc.hand_made import HOME, ITEMS, LAST, REMOTE, changes, state_of, wholesaler

DISTRICT = (HOME, 4)
ROUNDS = 40


def _invalid(round_: int) -> bool:
    return round_ % 7 == 3


def _lines(round_: int) -> list[Wanted]:
    supplier = REMOTE if round_ % 4 == 0 else HOME
    last = ITEMS + 1 if _invalid(round_) else 1
    return [Wanted(1 + round_ % ITEMS, supplier, 1 + round_ % 10), Wanted(2, HOME, 3), Wanted(last, HOME, 1)]


async def _at_once(client: EmbeddedClient, elsewhere: bool) -> tuple[list[Reply], list[Reply], list[Reply]]:
    orders, payments, others = [], [], []
    for n in range(ROUNDS):
        who: int | str = LAST if n % 2 else 1 + n % 5
        customer_of = REMOTE if elsewhere and n % 3 == 0 else HOME
        orders.append(client.submit("district", DISTRICT, "new_order", 1 + n % 5, _lines(n)))
        payments.append(client.submit("warehouse", HOME, "payment", 4, customer_of, 4, who, 100 + n))
        if n % 10 == 9:
            others.append(client.submit("warehouse", HOME, "delivery", 3))
            others.append(client.submit("district", DISTRICT, "stock_level", 15))
            others.append(client.submit("district", (HOME, 1), "order_status", 2))
    return await asyncio.gather(*orders), await asyncio.gather(*payments), await asyncio.gather(*others)


def _balanced(state: dict[tuple[str, Any], Any], changed: dict[tuple[str, Any], Any]) -> None:
    """Stock and districts have what the lines and the history rows say."""
    ordered: dict[tuple[int, int], int] = {}
    for (table, key), row in changed.items():
        if table == "order_line" and key[:2] == DISTRICT:
            entity = row.supply_w_id, row.i_id
            ordered[entity] = ordered.get(entity, 0) + row.quantity
    taken = {key: row.ytd for (table, key), row in state.items() if table == "stock" and row.ytd}
    assert taken == ordered
    paid = sum(row.amount for (table, _), row in changed.items() if table == "history")
    assert paid == sum(100 + n for n in range(ROUNDS))
    assert state["warehouse", HOME].ytd == 30_000_000 + paid
    assert state["district", DISTRICT].ytd == 3_000_000 + paid
    customers = [row for (table, _), row in changed.items() if table == "customer"]
    assert sum(row.ytd_payment - 1000 for row in customers) == paid


async def _run(elsewhere: bool) -> None:
    async with wholesaler() as client:
        before = state_of(client)
        orders, payments, others = await _at_once(client, elsewhere)
        state = state_of(client)

    numbers = []
    for n, reply in enumerate(orders):
        if _invalid(n):
            assert reply.error is not None
            assert reply.error.type == "ItemNotFound"
        else:
            assert reply.error is None, reply.error
            numbers.append(reply.result[0])
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert {reply.error for reply in payments + others} == {None}
    assert any(reply.phase == 2 for reply in orders)

    changed = changes(before, state)
    assert state["district", DISTRICT].next_o_id == len(numbers) + 1
    made = {key[2]: row for (table, key), row in state.items() if table == "order" and key[:2] == DISTRICT}
    assert sorted(made) == sorted(numbers)
    for reply, n in ((reply, n) for n, reply in enumerate(orders) if not _invalid(n)):
        order: tables.Order = made[reply.result[0]]
        assert (order.c_id, order.ol_cnt) == (1 + n % 5, 3)
        lines = [state["order_line", (*DISTRICT, reply.result[0], k)] for k in (1, 2, 3)]
        assert [Wanted(line.i_id, line.supply_w_id, line.quantity) for line in lines] == _lines(n)
    _balanced(state, changed)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["customers of the district", "a third from elsewhere"])
def test_at_once_each_transaction_happens_as_if_alone(elsewhere: bool) -> None:
    asyncio.run(_run(elsewhere))
