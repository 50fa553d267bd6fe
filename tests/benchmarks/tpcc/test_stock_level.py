"""Stock-Level: different items of the last twenty orders, by the stock of the home warehouse."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.tpcc.answers import Wanted
from benchmarks.tpcc.stock_level import ORDERS
from tests.benchmarks.tpcc.hand_made import HOME, REMOTE, changes, state_of, wholesaler


@pytest.mark.parametrize(("threshold", "short"), [(20, 0), (21, 3)])
def test_items_of_a_few_orders_count_once(threshold: int, short: int) -> None:
    async def run() -> int:
        async with wholesaler() as client:
            before = state_of(client)
            level: int = await client.call("district", (HOME, 1), "stock_level", threshold)
            assert changes(before, state_of(client)) == {}
            return level

    assert asyncio.run(run()) == short


def test_a_district_without_orders_has_none_short() -> None:
    async def run() -> None:
        async with wholesaler() as client:
            assert await client.call("district", (HOME, 9), "stock_level", 100) == 0

    asyncio.run(run())


def test_orders_before_the_last_twenty_do_not_count_and_other_warehouses_stock_neither() -> None:
    async def run() -> None:
        async with wholesaler() as client:
            for i_id, supplier in [(1, HOME), *[(2, HOME)] * (ORDERS - 1), (3, REMOTE)]:
                await client.call("district", (HOME, 9), "new_order", 1, [Wanted(i_id, supplier, 1)])
            # Item 1 was ordered 21 orders ago, 2 was filled up to 92 once, and 3 was taken elsewhere.
            left = [state_of(client)["stock", (HOME, i_id)].quantity for i_id in (1, 2, 3)]
            assert left == [19, 92, 20]
            counts = [await client.call("district", (HOME, 9), "stock_level", t) for t in (20, 21, 93)]
            assert counts == [0, 1, 2]

    asyncio.run(run())
