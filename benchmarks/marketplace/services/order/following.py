"""An order follows its payment and its shipment. It takes no step but those of `OrderStatus`, and is archived when it
has come to an end.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from benchmarks.marketplace.archive import archive
from benchmarks.marketplace.errors import UnknownOrder, WrongStep
from benchmarks.marketplace.events import (
    OrderArchived,
    PaymentFailed,
    order_archived,
    payment_failed,
)
from benchmarks.marketplace.services.order.rows import OrderHistory, order, order_history, order_items, orders
from benchmarks.marketplace.values import OrderStatus, ShipmentStatus
from styx import Context

BEFORE: Final = {
    OrderStatus.PAYMENT_PROCESSED: OrderStatus.INVOICED,
    OrderStatus.PAYMENT_FAILED: OrderStatus.INVOICED,
    OrderStatus.READY_FOR_SHIPMENT: OrderStatus.PAYMENT_PROCESSED,
    OrderStatus.IN_TRANSIT: OrderStatus.READY_FOR_SHIPMENT,
    OrderStatus.DELIVERED: OrderStatus.IN_TRANSIT,
}
"""The only status from which each one is come to."""
LAST: Final = (OrderStatus.PAYMENT_FAILED, OrderStatus.DELIVERED)
OF_SHIPMENT: Final = {
    ShipmentStatus.IN_PROGRESS: OrderStatus.IN_TRANSIT,
    ShipmentStatus.CONCLUDED: OrderStatus.DELIVERED,
}
DATED: Final = {
    ShipmentStatus.IN_PROGRESS: "delivered_carrier_date",
    ShipmentStatus.CONCLUDED: "delivered_customer_date",
}
"""The order's date of each of them."""


@order.register
async def packed(ctx: Context, order_id: int, paid_at: datetime) -> None:
    """The order is paid, and its shipment is made: two steps, of one transaction."""
    steps = [OrderStatus.PAYMENT_PROCESSED, OrderStatus.READY_FOR_SHIPMENT]
    await _take(ctx, order_id, steps, payment_date=paid_at)


@order.on(payment_failed, key=lambda event: event.buyer.customer_id)
async def payment_has_failed(ctx: Context, event: PaymentFailed) -> None:
    """The order is not paid, and ends."""
    await _take(ctx, event.order_id, [OrderStatus.PAYMENT_FAILED])


@order.register
async def follow_shipment(ctx: Context, order_id: int, steps: list[ShipmentStatus]) -> None:
    """The order's packages have come so much further."""
    dates = {DATED[status]: ctx.now() for status in steps}
    await _take(ctx, order_id, [OF_SHIPMENT[status] for status in steps], **dates)


async def _take(ctx: Context[Any, Any], order_id: int, steps: list[OrderStatus], **dates: datetime) -> None:
    """Brings the order so many steps further, one after the other. Raises `WrongStep` and `UnknownOrder`."""
    found = await ctx.rows(orders).get(order_id)
    if found is None:
        raise UnknownOrder(f"customer {ctx.key} has no order {order_id}")
    for before, status in pairwise([found.status, *steps]):
        if before != BEFORE[status]:
            raise WrongStep(f"order {order_id} of customer {ctx.key} is {before}, and cannot become {status}")
    at = max(ctx.now(), found.updated_at)  # a transaction that was carried has the time of its request
    new = await ctx.rows(orders).update(order_id, status=steps[-1], updated_at=at, **dates)
    for status in steps:
        await ctx.rows(order_history).insert(OrderHistory(order_id, at, status))
    if steps[-1] in LAST:
        lines = await ctx.rows(order_items).select(order_id=order_id)
        history = await ctx.rows(order_history).select(order_id=order_id)
        archive(ctx, order_archived, OrderArchived(ctx.key, new, lines, history))
