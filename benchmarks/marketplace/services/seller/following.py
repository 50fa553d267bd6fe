"""A seller's entries follow their orders: they come with the invoice, and go, archived, when the order has ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from benchmarks.marketplace.archive import archive
from benchmarks.marketplace.errors import AlreadyThere
from benchmarks.marketplace.events import (
    EntriesArchived,
    InvoiceIssued,
    entries_archived,
    invoice_issued,
)
from benchmarks.marketplace.services.seller.rows import (
    EntryDetails,
    OrderEntry,
    Seller,
    entry_details,
    order_entries,
    seller,
)
from benchmarks.marketplace.values import Buyer, OrderLine, OrderStatus, PackageStatus, ShipmentStatus
from styx import Context


@seller.register
async def register(ctx: Context, profile: Seller) -> None:
    """A new seller. Raises `AlreadyThere`."""
    if await ctx.get() is not None:
        raise AlreadyThere(f"there is a seller {ctx.key} already")
    await ctx.put(profile)


@seller.on(invoice_issued, key=lambda event: event.seller_id)
async def invoiced(ctx: Context, event: InvoiceIssued) -> None:
    """An order with lines of this seller."""
    invoice = event.invoice
    await ctx.rows(entry_details).insert(_details(invoice.buyer, invoice.order_id))
    for line in invoice.lines:
        await ctx.rows(order_entries).insert(_entry(invoice.buyer.customer_id, invoice.order_id, line))


@seller.register
async def payment_has_failed(ctx: Context, customer_id: int, order_id: int) -> None:
    """The order is not paid, and ends."""
    await _end(ctx, customer_id, order_id, order_status=OrderStatus.PAYMENT_FAILED)


@seller.register
async def shipped(ctx: Context, customer_id: int, order_id: int, date: datetime, numbers: dict[int, int]) -> None:
    """The order is paid, and the lines are packed: the package's number by product."""
    for product_id, package_id in numbers.items():
        await ctx.rows(order_entries).update(
            (customer_id, order_id, product_id),
            order_status=OrderStatus.READY_FOR_SHIPMENT,
            shipment_date=date,
            package_id=package_id,
            delivery_status=PackageStatus.SHIPPED,
        )


@seller.register
async def follow_shipment(
    ctx: Context, customer_id: int, order_id: int, delivered: bool, steps: list[ShipmentStatus], at: datetime
) -> None:
    """The seller's packages of an order have come to their customer, if `delivered`; and the order's shipment has come
    further, with packages of this or of another seller, if there are `steps`.
    """
    changes: dict[str, Any] = {"delivery_date": at, "delivery_status": PackageStatus.DELIVERED} if delivered else {}
    if ShipmentStatus.CONCLUDED in steps:
        await _end(ctx, customer_id, order_id, order_status=OrderStatus.DELIVERED, **changes)
        return
    if steps:
        changes["order_status"] = OrderStatus.IN_TRANSIT
    await ctx.rows(order_entries).update_where(changes, customer_id=customer_id, order_id=order_id)


async def _end(ctx: Context[Any, Any], customer_id: int, order_id: int, **changes: Any) -> None:
    """The seller's part of the order goes, and is archived with the last changes, which nobody reads here any more."""
    details = await ctx.rows(entry_details).get((customer_id, order_id))
    if details is None:
        raise LookupError(f"seller {ctx.key} has no open order {order_id} of customer {customer_id}")
    entries = await ctx.rows(order_entries).select(customer_id=customer_id, order_id=order_id)
    ended = [msgspec.structs.replace(entry, **changes) for entry in entries]
    archive(ctx, entries_archived, EntriesArchived(ctx.key, details, ended))
    await ctx.rows(entry_details).delete((customer_id, order_id))  # and its entries


def _details(buyer: Buyer, order_id: int) -> EntryDetails:
    return EntryDetails(
        buyer.customer_id,
        order_id,
        buyer.first_name,
        buyer.last_name,
        buyer.street,
        buyer.complement,
        buyer.zip_code,
        buyer.city,
        buyer.state,
        buyer.card_brand,
        buyer.installments,
    )


def _entry(customer_id: int, order_id: int, line: OrderLine) -> OrderEntry:
    return OrderEntry(
        customer_id=customer_id,
        order_id=order_id,
        product_id=line.product_id,
        natural_key=f"{customer_id}|{order_id}",
        package_id=None,
        product_name=line.product_name,
        product_category=None,
        unit_price=line.unit_price,
        quantity=line.quantity,
        total_items=line.total_items,
        total_amount=line.total_amount,
        total_incentive=line.total_incentive,
        freight_value=line.freight_value,
        total_invoice=line.total_amount + line.freight_value,
        shipment_date=None,
        delivery_date=None,
        order_status=OrderStatus.INVOICED,
        delivery_status=None,
    )
