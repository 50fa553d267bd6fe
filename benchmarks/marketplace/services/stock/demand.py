"""Query 3: products of which too little is left. A week's share of what was asked for in the last 28 days, refused
pieces too, is more than the pieces that are neither sold nor reserved. The window slides by the hour.

A product is told to its seller once when that begins to be so, and once when it ends: by a request, or by time alone,
because the oldest hour leaves the window. The sum is kept in the stock's row, so no request adds hours up. The oldest
and the latest hour are kept there, too, so most requests read no hour either: they add to the latest one.
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
    item.demand += quantity
    if hour == item.latest_hour:
        await rows.add(hour, quantity=quantity)
        return
    # Another hour: the next one, or an earlier one if the transaction was carried, which has the time of its request.
    found = await rows.get(hour)
    await rows.put(Demand(hour, quantity if found is None else found.quantity + quantity))
    item.oldest_hour = min(hour, item.oldest_hour or hour)
    item.latest_hour = max(hour, item.latest_hour or hour)


async def judge(ctx: Context[Any, Any], item: StockItem, *, timer_is_gone: bool = False) -> None:
    """Brings `item`, which the caller writes, to this time, and tells the seller if that changes the answer."""
    await _age(ctx, item)
    level, was_low = item.qty_available - item.qty_reserved, item.low
    item.low = item.demand > WEEKS * level
    if item.low != was_low:
        _tell(ctx, item)
    if item.low and (timer_is_gone or not was_low):
        assert item.oldest_hour is not None, "without demand nothing is low"
        ctx.after(item.oldest_hour + WINDOW - ctx.now(), stock, look_again, ctx.key, name=_TIMER)
    elif was_low and not item.low:
        await ctx.cancel(_TIMER)


async def _age(ctx: Context[Any, Any], item: StockItem) -> None:
    """Forgets the hours that have left the window."""
    end = ctx.now() - WINDOW
    if item.oldest_hour is None or item.oldest_hour > end:
        return
    rows = ctx.rows(demand)
    gone = await rows.select(hour=at_most(end))
    item.demand -= sum(hour.quantity for hour in gone)
    await rows.delete_where(hour=at_most(end))
    oldest = await rows.keys(first=1)
    item.oldest_hour = oldest[0] if oldest else None
    item.latest_hour = item.latest_hour if oldest else None


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
