"""Update Delivery: of the ten sellers with the oldest undelivered order, deliver that seller's packages of it.

All of it is one transaction, over all partitions. Each package is told to its customer. What an order has come to is
told to the order and to its sellers, in one call each: two calls that change one row would wait for each other.
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
from benchmarks.marketplace.services.shipment.queueing import oldest, served
from benchmarks.marketplace.services.shipment.rows import Package, packages, queue, shipment, shipments
from benchmarks.marketplace.values import PackageStatus, ShipmentStatus
from styx import Context


@queue.register
async def update_delivery(ctx: Context, tid: str) -> DeliveryResult:
    """Delivers; `tid` is only given back."""
    found = await oldest(ctx)
    sellers: dict[tuple[int, int], list[int]] = {}
    for first in found:
        await served(ctx, first)
        sellers.setdefault((first.customer_id, first.order_id), []).append(first.seller_id)
    for (customer_id, order_id), those in sellers.items():
        ctx.call_async(shipment, deliver, customer_id, (order_id, those))
    return DeliveryResult(
        tid,
        [
            Delivered(first.seller_id, first.customer_id, first.order_id, first.shipping_date, first.packages)
            for first in found
        ],
    )


@shipment.register
async def deliver(ctx: Context, order_id: int, seller_ids: list[int]) -> None:
    """Delivers the packages that these sellers have of an order."""
    open_ones = await ctx.rows(packages).select(order_id=order_id, status=PackageStatus.SHIPPED)
    theirs = [each for each in open_ones if each.seller_id in seller_ids]
    missing = set(seller_ids) - {each.seller_id for each in theirs}
    if missing:
        raise LookupError(f"sellers {sorted(missing)} have no package to deliver of order {order_id} of {ctx.key}")
    for each in theirs:
        await _hand_over(ctx, each)
    await _tell(ctx, order_id, theirs, await _steps(ctx, order_id, last=len(theirs) == len(open_ones)))


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


async def _steps(ctx: Context[Any, Any], order_id: int, *, last: bool) -> list[ShipmentStatus]:
    """Brings the shipment as far as it comes with the packages that are handed over; gives the steps."""
    found = await ctx.rows(shipments).get(order_id)
    if found is None:
        raise LookupError(f"there is no shipment of order {order_id} of customer {ctx.key}")
    steps = [ShipmentStatus.IN_PROGRESS] if found.status == ShipmentStatus.APPROVED else []
    if last:
        steps.append(ShipmentStatus.CONCLUDED)
    if steps:
        found = await ctx.rows(shipments).update(order_id, status=steps[-1])
    for status in steps:
        ctx.emit(shipment_notification, ShipmentNotification(ctx.key, order_id, ctx.now(), status))
    if last:
        everything = await ctx.rows(packages).select(order_id=order_id)
        archive(ctx, shipment_archived, ShipmentArchived(ctx.key, found, everything))
    return steps


async def _tell(ctx: Context[Any, Any], order_id: int, delivered: list[Package], steps: list[ShipmentStatus]) -> None:
    """The order and all its sellers hear of the steps, and those who have delivered, of their packages."""
    products: dict[int, list[int]] = {}
    for each in delivered:
        products.setdefault(each.seller_id, []).append(each.product_id)
    if steps:
        ctx.call_async("order", "follow_shipment", ctx.key, (order_id, steps))
        for each in await ctx.rows(packages).select(order_id=order_id):
            products.setdefault(each.seller_id, [])
    for seller_id in sorted(products):
        ctx.call_async(
            "seller", "follow_shipment", seller_id, (ctx.key, order_id, products[seller_id], steps, ctx.now())
        )
