"""Query 3: products of which too little is left. A week's share of what was asked for in the last 28 days, refused
pieces too, is more than the pieces that are neither sold nor reserved. The window slides by the hour.

A product is told to its seller once when that begins to be so, and once when it ends: by a request, or by time alone,
because the oldest hour leaves the window. The sum is kept in the stock's row, so no request adds hours up.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from benchmarks.marketplace.events import LowStockWarning, low_stock_warning
from benchmarks.marketplace.services.stock.rows import Demand, StockItem, demand, stock, stock_items
from styx import Context, at_most

WEEKS: Final = 4
WINDOW: Final = timedelta(weeks=WEEKS)
_TIMER: Final = "oldest hour"


def hour_of(time: datetime) -> datetime:
    """The beginning of the hour."""
    return time.replace(minute=0, second=0, microsecond=0)


async def asked(ctx: Context[Any, Any], item: StockItem, quantity: int) -> None:
    """Counts what was asked for, in this hour and in `item`, which the caller writes."""
    hour, rows = hour_of(ctx.now()), ctx.rows(demand)
    found = await rows.get(hour)
    await rows.put(Demand(hour, quantity if found is None else found.quantity + quantity))
    item.demand += quantity


async def judge(ctx: Context[Any, Any], item: StockItem, *, timer_is_gone: bool = False) -> None:
    """Brings `item`, which the caller writes, to this time, and tells the seller if that changes the answer."""
    await _age(ctx, item)
    level, was_low = item.qty_available - item.qty_reserved, item.low
    item.low = item.demand > WEEKS * level
    if item.low != was_low:
        _tell(ctx, item)
    if item.low and (timer_is_gone or not was_low):
        (oldest,) = await ctx.rows(demand).select(first=1)
        ctx.after(oldest.hour + WINDOW - ctx.now(), stock, look_again, ctx.key, name=_TIMER)
    elif was_low and not item.low:
        await ctx.cancel(_TIMER)


async def _age(ctx: Context[Any, Any], item: StockItem) -> None:
    """Forgets the hours that have left the window."""
    rows, last = ctx.rows(demand), at_most(ctx.now() - WINDOW)
    gone = await rows.select(hour=last)
    if gone:
        item.demand -= sum(hour.quantity for hour in gone)
        await rows.delete_where(hour=last)


@stock.register
async def look_again(ctx: Context) -> None:
    """The oldest hour has left the window of a product of which too little was left."""
    item = await ctx.rows(stock_items).get(ctx.key)
    if item is not None:
        await judge(ctx, item, timer_is_gone=True)
        await ctx.rows(stock_items).put(item)


async def forgotten(ctx: Context[Any, Any], item: StockItem) -> None:
    """The row goes: nothing is asked for any more, and a warning is taken back."""
    await ctx.rows(demand).delete_where()
    if item.low:
        await ctx.cancel(_TIMER)
        item.low, item.demand = False, 0
        _tell(ctx, item)


def _tell(ctx: Context[Any, Any], item: StockItem) -> None:
    level = item.qty_available - item.qty_reserved
    warning = LowStockWarning(item.seller_id, item.product_id, item.low, level, item.demand, ctx.now())
    ctx.emit(low_stock_warning, warning)
