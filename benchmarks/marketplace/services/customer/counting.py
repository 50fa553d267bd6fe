"""What customers have done, counted. All counts are additions, so deliveries and checkouts do not wait for them."""

from __future__ import annotations

from benchmarks.marketplace.errors import AlreadyThere
from benchmarks.marketplace.events import (
    CartAbandoned,
    PaymentConfirmed,
    PaymentFailed,
    ReserveStockFailed,
    cart_abandoned,
    payment_confirmed,
    payment_failed,
    reserve_stock_failed,
)
from benchmarks.marketplace.services.customer.rows import Customer, CustomerCounts, counts, customer
from styx import Context


@customer.register
async def register(ctx: Context, profile: Customer) -> None:
    """A new customer. Raises `AlreadyThere`."""
    if await ctx.get() is not None:
        raise AlreadyThere(f"there is a customer {ctx.key} already")
    await ctx.put(profile)
    await ctx.rows(counts).insert(CustomerCounts(ctx.key))


@customer.register(read_only=True)
async def known(ctx: Context) -> bool:
    """Whether there is this customer."""
    return await ctx.rows(counts).exists(customer_id=ctx.key)


@customer.register(read_only=True)
async def show(ctx: Context) -> CustomerCounts | None:
    """The counts; None if there is no such customer."""
    return await ctx.rows(counts).get(ctx.key)


@customer.on(payment_confirmed, key=lambda event: event.buyer.customer_id)
async def payment_succeeded(ctx: Context, event: PaymentConfirmed) -> None:
    """One order more is paid."""
    await ctx.rows(counts).add(ctx.key, success_payment_count=1)


@customer.on(payment_failed, key=lambda event: event.buyer.customer_id)
async def payment_has_failed(ctx: Context, event: PaymentFailed) -> None:
    """One order more is not paid."""
    await ctx.rows(counts).add(ctx.key, failed_payment_count=1)


@customer.on(reserve_stock_failed, key=lambda event: event.buyer.customer_id)
async def reservation_failed(ctx: Context, event: ReserveStockFailed) -> None:
    """One checkout more found nothing in stock."""
    await ctx.rows(counts).add(ctx.key, failed_reservation_count=1)


@customer.register
async def packages_delivered(ctx: Context, number: int) -> None:
    """So many packages more have come. The shipment that tells each of them as an event calls this once for all."""
    await ctx.rows(counts).add(ctx.key, delivery_count=number)


@customer.on(cart_abandoned, key=lambda event: event.customer_id)
async def cart_given_up(ctx: Context, event: CartAbandoned) -> None:
    """One cart more is abandoned."""
    await ctx.rows(counts).add(ctx.key, abandoned_cart_count=1)
