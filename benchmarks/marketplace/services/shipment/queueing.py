"""The queue of all orders with packages to deliver. Each seller's orders wait behind each other, the oldest first.

The queue is one entity, because each delivery follows from all that came before it. Those that are under way at the
same time run one after the other here, and find out within one partition whom they serve.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from benchmarks.marketplace.services.shipment.rows import First, Waiting, firsts, queue, waiting
from styx import Context

SELLERS_MAX: Final = 10
"""Sellers that one delivery serves."""


@queue.register
async def wait(
    ctx: Context, shipping_date: datetime, customer_id: int, order_id: int, packages: dict[int, int]
) -> None:
    """Adds an order, with so many packages of each seller."""
    for seller_id, count in packages.items():
        new = Waiting(seller_id, shipping_date, customer_id, order_id, count)
        await ctx.rows(waiting).insert(new)
        first = await ctx.rows(firsts).get(seller_id)
        if first is None or _place(new) < _place(first):
            await ctx.rows(firsts).put(_first(new))


@queue.register(read_only=True)
async def waiting_of(ctx: Context, seller_id: int) -> list[Waiting]:
    """The seller's orders that wait, the oldest first."""
    return await ctx.rows(waiting).select(seller_id=seller_id)


async def oldest(ctx: Context[Any, Any]) -> list[First]:
    """The first orders of all sellers, the oldest ones, by (shipping date, customer, order, seller)."""
    return await ctx.rows(firsts).select(by="oldest", first=SELLERS_MAX)


async def served(ctx: Context[Any, Any], first: First) -> None:
    """The seller's first order is delivered, and the next one is first."""
    await ctx.rows(waiting).delete((first.seller_id, *_place(first)))
    following = await ctx.rows(waiting).select(seller_id=first.seller_id, first=1)
    if following:
        await ctx.rows(firsts).put(_first(following[0]))
    else:
        await ctx.rows(firsts).delete(first.seller_id)


def _place(row: Waiting | First) -> tuple[datetime, int, int]:
    return row.shipping_date, row.customer_id, row.order_id


def _first(row: Waiting) -> First:
    return First(row.seller_id, row.shipping_date, row.customer_id, row.order_id, row.packages)
