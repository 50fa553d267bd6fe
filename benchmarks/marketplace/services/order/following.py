"""An order follows its payment and its shipment. It takes no step but those of `OrderStatus`, and is archived when it
has come to an end.
"""

from __future__ import annotations

from datetime import datetime
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
    ShipmentStatus.APPROVED: OrderStatus.READY_FOR_SHIPMENT,
    ShipmentStatus.IN_PROGRESS: OrderStatus.IN_TRANSIT,
    ShipmentStatus.CONCLUDED: OrderStatus.DELIVERED,
}


@order.register
async def payment_succeeded(ctx: Context, order_id: int, at: datetime) -> None:
    """The order is paid. The payment calls this, and then tells everybody: the next step is in the same transaction."""
    await _step(ctx, order_id, OrderStatus.PAYMENT_PROCESSED, payment_date=at)


@order.on(payment_failed, key=lambda event: event.buyer.customer_id)
async def payment_has_failed(ctx: Context, event: PaymentFailed) -> None:
    """The order is not paid, and ends."""
    await _step(ctx, event.order_id, OrderStatus.PAYMENT_FAILED)


@order.register
async def follow_shipment(ctx: Context, order_id: int, steps: list[ShipmentStatus]) -> None:
    """The order's shipment has come so much further."""
    for status in steps:
        dates = {}
        if status == ShipmentStatus.IN_PROGRESS:
            dates["delivered_carrier_date"] = ctx.now()
        elif status == ShipmentStatus.CONCLUDED:
            dates["delivered_customer_date"] = ctx.now()
        await _step(ctx, order_id, OF_SHIPMENT[status], **dates)


async def _step(ctx: Context[Any, Any], order_id: int, status: OrderStatus, **dates: Any) -> None:
    """Brings the order to `status`. Raises `WrongStep` and `UnknownOrder`."""
    found = await ctx.rows(orders).get(order_id)
    if found is None:
        raise UnknownOrder(f"customer {ctx.key} has no order {order_id}")
    if found.status != BEFORE[status]:
        raise WrongStep(f"order {order_id} of customer {ctx.key} is {found.status}, and cannot become {status}")
    at = max(ctx.now(), found.updated_at)  # a transaction that was carried has the time of its request
    new = await ctx.rows(orders).update(order_id, status=status, updated_at=at, **dates)
    await ctx.rows(order_history).insert(OrderHistory(order_id, at, status))
    if status in LAST:
        lines = await ctx.rows(order_items).select(order_id=order_id)
        history = await ctx.rows(order_history).select(order_id=order_id)
        archive(ctx, order_archived, OrderArchived(ctx.key, new, lines, history))
