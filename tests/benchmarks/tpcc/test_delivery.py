"""Delivery: the oldest order of each district that has one, with all that this changes."""

from __future__ import annotations

import asyncio

from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import Wanted
from tests.benchmarks.tpcc.hand_made import HOME, ORDERED, changes, state_of, wholesaler

CARRIER = 8


async def _deliver_all() -> None:
    async with wholesaler() as client:
        before = state_of(client)
        assert await client.call("warehouse", HOME, "delivery", CARRIER) == [2, 2, 2] + [None] * 7
        changed = changes(before, state_of(client))
        for d in range(1, ORDERED + 1):
            assert changed.pop(("new_order", (HOME, d, 2))) is None
            assert changed.pop(("order", (HOME, d, 2))) == tables.Order(2, 20, CARRIER, 2, 1)
            lines = [changed.pop(("order_line", (HOME, d, 2, n))) for n in (1, 2)]
            assert lines[0].delivery_d == lines[1].delivery_d
            assert lines[0].delivery_d is not None
            assert [line.amount for line in lines] == [111, 222]
            customer = changed.pop(("customer", (HOME, d, 2)))
            assert (customer.balance, customer.delivery_cnt) == (-667, 1)
        assert changed == {}


async def _deliver_in_order() -> None:
    async with wholesaler() as client:
        for _ in range(2):
            await client.call("district", (HOME, 4), "new_order", 5, [Wanted(1, HOME, 1)])
        delivered = [await client.call("warehouse", HOME, "delivery", CARRIER) for _ in range(3)]
        assert delivered == [[2, 2, 2, 1] + [None] * 6, [None] * 3 + [2] + [None] * 6, [None] * 10]
        before = state_of(client)
        assert await client.call("warehouse", HOME, "delivery", CARRIER) == [None] * 10
        assert changes(before, state_of(client)) == {}


def test_a_delivery_is_of_one_order_of_each_district_that_has_one() -> None:
    asyncio.run(_deliver_all())


def test_orders_are_delivered_in_their_order_and_an_empty_district_is_skipped() -> None:
    asyncio.run(_deliver_in_order())
