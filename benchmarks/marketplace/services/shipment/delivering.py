"""Update Delivery: of the ten sellers with the oldest undelivered order, deliver that seller's packages of it.

All of it is one transaction, over all partitions. An order's packages are read once. Its customer, the order itself and
each of its sellers hear in one call of all that happened to it: two calls that change one row would wait for each
other.
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


@queue.register(contended=True)
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
    before = await ctx.rows(packages).select(order_id=order_id)
    theirs = [each for each in before if each.seller_id in seller_ids and each.status == PackageStatus.SHIPPED]
    missing = set(seller_ids) - {each.seller_id for each in theirs}
    if missing:
        raise LookupError(f"sellers {sorted(missing)} have no package to deliver of order {order_id} of {ctx.key}")
    handed_over = {each.package_id: await _hand_over(ctx, each) for each in theirs}
    steps = _steps(before, theirs)
    await _go_on(ctx, order_id, steps, [handed_over.get(each.package_id, each) for each in before])
    _tell(ctx, before, theirs, steps)


def _steps(before: list[Package], delivered: list[Package]) -> list[ShipmentStatus]:
    """What a shipment with the packages `before` comes to when these of them are delivered."""
    waiting = sum(each.status == PackageStatus.SHIPPED for each in before)
    steps = [ShipmentStatus.IN_PROGRESS] if waiting == len(before) else []
    return [*steps, ShipmentStatus.CONCLUDED] if waiting == len(delivered) else steps


async def _hand_over(ctx: Context[Any, Any], each: Package) -> Package:
    """Gives the package as it is then."""
    status = PackageStatus.DELIVERED
    key = (each.order_id, each.package_id)
    delivered = await ctx.rows(packages).update(key, status=status, delivery_date=ctx.now())
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
    return delivered


async def _go_on(ctx: Context[Any, Any], order_id: int, steps: list[ShipmentStatus], everything: list[Package]) -> None:
    """Brings the shipment further. `everything`: its packages, as they are now."""
    if not steps:
        return
    found = await ctx.rows(shipments).update(order_id, status=steps[-1])
    for status in steps:
        ctx.emit(shipment_notification, ShipmentNotification(ctx.key, order_id, ctx.now(), status))
    if steps[-1] == ShipmentStatus.CONCLUDED:
        archive(ctx, shipment_archived, ShipmentArchived(ctx.key, found, everything))


def _tell(
    ctx: Context[Any, Any], everything: list[Package], delivered: list[Package], steps: list[ShipmentStatus]
) -> None:
    """The customer hears of the packages, the order of the steps. Of the sellers all hear of the steps, and those who
    have delivered, of that.
    """
    order_id = delivered[0].order_id
    ctx.call_async("customer", "packages_delivered", ctx.key, (len(delivered),))
    if steps:
        ctx.call_async("order", "follow_shipment", ctx.key, (order_id, steps))
    sellers = {each.seller_id for each in delivered}
    for seller_id in sorted({each.seller_id for each in everything} if steps else sellers):
        ctx.call_async(
            "seller", "follow_shipment", seller_id, (ctx.key, order_id, seller_id in sellers, steps, ctx.now())
        )
