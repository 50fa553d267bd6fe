"""Update Delivery: of the ten sellers with the oldest undelivered order, deliver that seller's packages of it.

All of it is one transaction, over all partitions. Each package is told to its seller and its customer, and each step of
a shipment to its order and all its sellers: all packages of a step first, then the step.
"""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace.answers import Delivered, DeliveryResult
from benchmarks.marketplace.archive import archive
from benchmarks.marketplace.events import (
    DeliveryNotification,
    ShipmentArchived,
    ShipmentNotification,
    delivery_notification,
    shipment_archived,
    shipment_notification,
)
from benchmarks.marketplace.services.shipment.queueing import oldest, serve
from benchmarks.marketplace.services.shipment.rows import Package, packages, queue, shipment, shipments
from benchmarks.marketplace.values import PackageStatus, ShipmentStatus
from styx import Context


@shipment.register
async def update_delivery(ctx: Context, tid: str) -> DeliveryResult:
    """Delivers. The entity on which it runs does not matter; `tid` is only given back."""
    found = await oldest(ctx)
    for first in found:
        ctx.call_async(queue, serve, first.seller_id)
        ctx.call_async(shipment, deliver, first.customer_id, (first.order_id, first.seller_id))
    return DeliveryResult(
        tid,
        [
            Delivered(first.seller_id, first.customer_id, first.order_id, first.shipping_date, first.packages)
            for first in found
        ],
    )


@shipment.register
async def deliver(ctx: Context, order_id: int, seller_id: int) -> None:
    """Delivers a seller's packages of an order."""
    open_ones = await ctx.rows(packages).select(order_id=order_id, status=PackageStatus.SHIPPED)
    theirs = [each for each in open_ones if each.seller_id == seller_id]
    found = await ctx.rows(shipments).get(order_id)
    if found is None or not theirs:
        raise LookupError(f"seller {seller_id} has no package to deliver of order {order_id} of customer {ctx.key}")
    for each in theirs:
        await _hand_over(ctx, each)
    if found.status == ShipmentStatus.APPROVED:
        await _step(ctx, order_id, ShipmentStatus.IN_PROGRESS)
    if len(theirs) == len(open_ones):
        await _step(ctx, order_id, ShipmentStatus.CONCLUDED)


async def _hand_over(ctx: Context[Any, Any], each: Package) -> None:
    status = PackageStatus.DELIVERED
    await ctx.rows(packages).update((each.order_id, each.package_id), status=status, delivery_date=ctx.now())
    ctx.emit(
        delivery_notification,
        DeliveryNotification(
            ctx.key,
            each.order_id,
            each.package_id,
            each.seller_id,
            each.product_id,
            each.product_name,
            status,
            ctx.now(),
        ),
    )


async def _step(ctx: Context[Any, Any], order_id: int, status: ShipmentStatus) -> None:
    """The shipment comes to `status`, and the order and all its sellers hear of it."""
    found = await ctx.rows(shipments).update(order_id, status=status)
    everything = await ctx.rows(packages).select(order_id=order_id)
    ctx.emit(shipment_notification, ShipmentNotification(ctx.key, order_id, ctx.now(), status))
    for seller_id in sorted({each.seller_id for each in everything}):
        ctx.call_async("seller", "follow_shipment", seller_id, (ctx.key, order_id, status))
    if status == ShipmentStatus.CONCLUDED:
        archive(ctx, shipment_archived, ShipmentArchived(ctx.key, found, everything))
