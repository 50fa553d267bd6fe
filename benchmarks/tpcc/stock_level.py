"""Stock-Level (clause 2.8): how many of the items in a district's last 20 orders are short. Declared as
read-only."""

from __future__ import annotations

from typing import Final

from benchmarks.tpcc import tables
from benchmarks.tpcc.rows import there
from styx import Context, at_least

ORDERS: Final = 20
"""The district's last ones, whose items are looked at."""


@tables.district.register(read_only=True)
async def stock_level(ctx: Context, threshold: int) -> int:
    """How many different items of this district's last orders have a stock in this warehouse below `threshold`."""
    w_id, _ = ctx.key
    district: tables.District = there(ctx, "district", await ctx.get())
    lines = await ctx.rows(tables.order_line).select(o_id=at_least(district.next_o_id - ORDERS))
    short: int = await ctx.call(tables.warehouse, items_below, w_id, (sorted({line.i_id for line in lines}), threshold))
    return short


@tables.warehouse.register(read_only=True)
async def items_below(ctx: Context, i_ids: list[int], threshold: int) -> int:
    """Of how many of these items fewer than `threshold` are left."""
    rows = ctx.rows(tables.stock)
    short = 0
    for i_id in i_ids:
        short += there(ctx, "stock", await rows.get(i_id), i_id).quantity < threshold
    return short
