"""Stock-Level (clause 2.8): how many of the items in a district's last 20 orders are short. Declared as
read-only."""

from __future__ import annotations

from typing import Final

from benchmarks.tpcc import tables
from benchmarks.tpcc.rows import there
from styx import Context

ORDERS: Final = 20
"""The district's last ones, whose items are looked at."""


@tables.district.register(read_only=True)
async def stock_level(ctx: Context, threshold: int) -> int:
    """How many different items of this district's last orders have a stock in this warehouse below `threshold`."""
    w_id, d_id = ctx.key
    district: tables.District = there(ctx, "district", await ctx.get())
    items: set[int] = set()
    for o_id in range(max(1, district.next_o_id - ORDERS), district.next_o_id):
        items.update(await ctx.call(tables.order, items_ordered, (w_id, d_id, o_id)))
    short = 0
    for i_id in sorted(items):
        short += await ctx.call(tables.stock, is_below, (w_id, i_id), (threshold,))
    return short


@tables.order.register(read_only=True)
async def items_ordered(ctx: Context) -> list[int]:
    """The items of this order."""
    order: tables.Order = there(ctx, "order", await ctx.get())
    key = ctx.key
    return [await ctx.call(tables.order_line, item_ordered, (*key, n)) for n in range(1, order.ol_cnt + 1)]


@tables.order_line.register(read_only=True)
async def item_ordered(ctx: Context) -> int:
    """The item of this line."""
    line: tables.OrderLine = there(ctx, "order line", await ctx.get())
    return line.i_id


@tables.stock.register(read_only=True)
async def is_below(ctx: Context, threshold: int) -> bool:
    """Whether fewer than `threshold` are left."""
    stock: tables.Stock = there(ctx, "stock", await ctx.get())
    return stock.quantity < threshold
