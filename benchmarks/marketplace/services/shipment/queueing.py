"""The queue of a seller: its orders with packages to deliver, the oldest first. The first one is also a row of its own,
which is the only thing that a delivery reads of queues that it does not serve.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from benchmarks.marketplace.services.shipment.rows import First, Waiting, firsts, queue, waiting
from styx import Context, PartitionContext

SELLERS_MAX: Final = 10
"""Sellers that one delivery serves."""


@queue.register
async def wait(ctx: Context, shipping_date: datetime, customer_id: int, order_id: int, count: int) -> None:
    """Adds an order with `count` packages."""
    new = Waiting(shipping_date, customer_id, order_id, count)
    await ctx.rows(waiting).insert(new)
    first = await ctx.rows(firsts).get(ctx.key)
    if first is None or _place(new) < _place(first):
        await ctx.rows(firsts).put(_first(ctx.key, new))


@queue.register
async def serve(ctx: Context) -> None:
    """The first order is delivered, and the next one is first."""
    first = await ctx.rows(firsts).get(ctx.key)
    if first is None:
        raise LookupError(f"seller {ctx.key} has no order that waits")
    await ctx.rows(waiting).delete(_place(first))
    following = await ctx.rows(waiting).select(first=1)
    if following:
        await ctx.rows(firsts).put(_first(ctx.key, following[0]))
    else:
        await ctx.rows(firsts).delete(ctx.key)


@queue.register_partition(read_only=True)
async def oldest_here(ctx: PartitionContext) -> list[First]:
    """The first orders of this partition's sellers, the oldest ones, as many as a delivery serves."""
    return [row for _, row in await ctx.rows(firsts).select(by="oldest", first=SELLERS_MAX)]


async def oldest(ctx: Context[Any, Any]) -> list[First]:
    """The first orders of all sellers, the oldest ones, by (shipping date, customer, order, seller)."""
    parts: list[list[First]] = await ctx.call_all(queue, oldest_here)
    found = [first for part in parts for first in part]
    return sorted(found, key=lambda first: (*_place(first), first.seller_id))[:SELLERS_MAX]


def _place(row: Waiting | First) -> tuple[datetime, int, int]:
    return row.shipping_date, row.customer_id, row.order_id


def _first(seller_id: int, row: Waiting) -> First:
    return First(seller_id, row.shipping_date, row.customer_id, row.order_id, row.packages)
