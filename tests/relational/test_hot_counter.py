"""Rows that many transactions add to at once, in a real engine: no conflicts, right sums, the same after a replay."""

from __future__ import annotations

import asyncio
from collections import Counter
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from styx import App, Context, Operator
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio
HOT = 100


class Total(msgspec.Struct):
    product: int
    sold: int = 0
    amount: Decimal = Decimal(0)
    weight: float = 0.0


class Sale(msgspec.Struct):
    product: int
    id: str = ""


shop = Operator("shop", key_type=str)
totals = shop.table("totals", Total, key="product")
sales = shop.table("sales", Sale, key="id", auto="unique")


@shop.register
async def open_all(ctx: Context) -> None:
    for product in range(HOT):
        await ctx.rows(totals).insert(Total(product))


@shop.register
async def sell(ctx: Context, product: int) -> None:
    await ctx.rows(totals).add(product, sold=1, amount=Decimal("9.99"), weight=product / 7)
    await ctx.rows(sales).append(Sale(product))


@shop.register
async def report(ctx: Context, product: int) -> int:
    await ctx.rows(totals).add(product, sold=1)
    row = await ctx.rows(totals).get(product)
    assert row is not None
    return row.sold


@shop.register(local=True)
async def sell_here(ctx: Context, product: int) -> None:
    await ctx.rows(totals).add(product, sold=1, amount=Decimal("9.99"))


@shop.register(read_only=True)
async def all_totals(ctx: Context) -> list[Total]:
    return await ctx.rows(totals).select()


async def test_hot_rows_that_are_only_added_to_never_go_to_the_lock_phase() -> None:
    async with embedded_cluster(App("shop", [shop])) as cluster:
        await cluster.call(shop, "s", open_all)
        replies = await asyncio.gather(*[cluster.submit(shop, "s", sell, number % HOT) for number in range(1_000)])
        assert Counter(reply.phase for reply in replies) == {1: 1_000}
        assert max(Counter(reply.epoch for reply in replies).values()) > HOT, "they were in epochs together"
        rows = await cluster.call(shop, "s", all_totals)
        assert [(row.sold, row.amount) for row in rows] == [(10, Decimal("99.90"))] * HOT


async def test_adds_beside_readers_and_local_functions_are_serial_also_after_a_crash(tmp_path: Path) -> None:
    async with embedded_cluster(App("shop", [shop]), tmp_path / "data") as cluster:
        await cluster.call(shop, "s", open_all)
        functions = [sell, sell, report, sell_here]
        await asyncio.gather(*[cluster.call(shop, "s", functions[number % 4], number % 3) for number in range(400)])
        before = await cluster.call(shop, "s", all_totals)
        assert sum(row.sold for row in before) == 400
        await cluster.crash_and_recover()
        assert await cluster.call(shop, "s", all_totals) == before
