"""A paid order is packed: one shipment for the order, one package for each line, a place in the queue."""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace.answers import ShipmentShown
from benchmarks.marketplace.events import (
    PaymentConfirmed,
    ShipmentNotification,
    payment_confirmed,
    shipment_notification,
)
from benchmarks.marketplace.services.shipment.queueing import wait
from benchmarks.marketplace.services.shipment.rows import (
    QUEUE,
    Package,
    Shipment,
    packages,
    queue,
    shipment,
    shipments,
)
from benchmarks.marketplace.values import PackageStatus, ShipmentStatus
from styx import Context


@shipment.on(payment_confirmed, key=lambda event: event.buyer.customer_id)
async def pack(ctx: Context, event: PaymentConfirmed) -> None:
    """Makes the shipment, and tells the order, its sellers and the queue. The order and its sellers hear of the payment
    by this, too: what is paid is packed in the same transaction.
    """
    made = await _keep(ctx, event)
    ctx.emit(shipment_notification, ShipmentNotification(ctx.key, event.order_id, event.date, ShipmentStatus.APPROVED))
    ctx.call_async("order", "packed", ctx.key, (event.order_id, event.date))
    numbers: dict[int, dict[int, int]] = {}
    for each in made:
        numbers.setdefault(each.seller_id, {})[each.product_id] = each.package_id
    for seller_id in sorted(numbers):
        ctx.call_async("seller", "shipped", seller_id, (ctx.key, event.order_id, event.date, numbers[seller_id]))
    packages_of = {seller_id: len(theirs) for seller_id, theirs in sorted(numbers.items())}
    ctx.call_async(queue, wait, QUEUE, (event.date, ctx.key, event.order_id, packages_of))


async def _keep(ctx: Context[Any, Any], event: PaymentConfirmed) -> list[Package]:
    buyer = event.buyer
    await ctx.rows(shipments).insert(
        Shipment(
            event.order_id,
            len(event.lines),
            sum(each.freight_value for each in event.lines),
            event.date,
            ShipmentStatus.APPROVED,
            buyer.first_name,
            buyer.last_name,
            buyer.street,
            buyer.complement,
            buyer.zip_code,
            buyer.city,
            buyer.state,
        )
    )
    made = [
        Package(
            event.order_id,
            number,
            each.seller_id,
            each.product_id,
            each.product_name,
            each.freight_value,
            each.quantity,
            event.date,
            None,
            PackageStatus.SHIPPED,
        )
        for number, each in enumerate(event.lines, 1)
    ]
    for package in made:
        await ctx.rows(packages).insert(package)
    return made


@shipment.register(read_only=True)
async def show(ctx: Context, order_id: int) -> ShipmentShown | None:
    """The shipment of an order; None if there is none."""
    found = await ctx.rows(shipments).get(order_id)
    return None if found is None else ShipmentShown(found, await ctx.rows(packages).select(order_id=order_id))
