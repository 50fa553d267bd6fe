"""Query 1: a seller's dashboard, the sums over its open entries and these entries. The sums are views, which the engine
keeps; sums and entries are read by one transaction, and so agree. And the warnings of query 3.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from benchmarks.marketplace.answers import Board, Dashboard
from benchmarks.marketplace.events import LowStockWarning, low_stock_warning
from benchmarks.marketplace.services.seller.rows import (
    LowStock,
    board,
    entry_details,
    low_stock,
    open_orders,
    open_products,
    order_entries,
    seller,
)
from styx import Context

Most = Annotated[int, Meta(ge=0, le=5_000)]
"""How many entries a dashboard may have."""


@seller.register(read_only=True)
async def dashboard(ctx: Context, first: Most = 1_000) -> Dashboard:
    """The board, and the first of the entries that it sums up."""
    sums = await _board(ctx)
    entries = await ctx.rows(order_entries).select(first=first) if first else []
    # Each order has entries, and both tables are in the order of (customer, order).
    orders = len({(entry.customer_id, entry.order_id) for entry in entries})
    details = await ctx.rows(entry_details).select(first=orders) if orders else []
    return Dashboard(sums, entries, details, len(entries) == sums.count_lines)


async def _board(ctx: Context[Any, Any]) -> Board:
    sums, orders = await ctx.rows(board).get(()), await ctx.rows(open_orders).get(())
    return Board(
        ctx.key,
        orders.count,
        await ctx.rows(open_products).count(),
        sums.count,
        sums.total_amount,
        sums.freight_value,
        sums.total_incentive,
        sums.total_invoice,
        sums.total_items,
    )


@seller.on(low_stock_warning, key=lambda event: event.seller_id)
async def warned(ctx: Context, event: LowStockWarning) -> None:
    """Too little is left of a product, or no longer."""
    if event.low:
        await ctx.rows(low_stock).put(LowStock(event.product_id, event.level, event.demand, event.at))
    else:
        await ctx.rows(low_stock).delete(event.product_id)


@seller.register(read_only=True)
async def low_stocks(ctx: Context) -> list[LowStock]:
    """The products of which too little is left, those with the least first."""
    return await ctx.rows(low_stock).select(by="by_level")
