"""Query 2: carts that were abandoned. A checkout that fails is abandoned if its customer does not submit another one
within ten minutes; one at exactly ten minutes is in time. Each failure is told once, by a call for later.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from benchmarks.marketplace.events import (
    CartAbandoned,
    PaymentFailed,
    ReserveStockFailed,
    cart_abandoned,
    payment_failed,
    reserve_stock_failed,
)
from benchmarks.marketplace.services.cart.rows import OpenFailure, cart, checkouts, failures
from styx import Context

WINDOW: Final = timedelta(minutes=10)
_BEHIND: Final = timedelta(microseconds=1)
"""How long after the window a failure is told: what comes at its end is still in it."""


@cart.on(reserve_stock_failed, key=lambda event: event.buyer.customer_id)
async def reservation_failed(ctx: Context, event: ReserveStockFailed) -> None:
    """Nothing could be reserved."""
    await _failed(ctx, event.buyer.checkout_id, "NOT_RESERVED")


@cart.on(payment_failed, key=lambda event: event.buyer.customer_id)
async def payment_has_failed(ctx: Context, event: PaymentFailed) -> None:
    """The order is not paid."""
    await _failed(ctx, event.buyer.checkout_id, f"PAYMENT_{event.status.upper()}")


async def _failed(ctx: Context[Any, Any], checkout_id: str, cause: str) -> None:
    await ctx.rows(checkouts).update(checkout_id, failed_at=ctx.now(), cause=cause)
    await ctx.rows(failures).insert(OpenFailure(checkout_id, ctx.now(), cause))
    ctx.after(WINDOW + _BEHIND, cart, abandon, ctx.key, (checkout_id,), name=_timer(checkout_id))


async def retried(ctx: Context[Any, Any]) -> None:
    """Another submission is on its way: what failed within its window before is not abandoned. What failed earlier is,
    even if its call for later is late.
    """
    for failure in await ctx.rows(failures).select():
        if ctx.now() <= failure.failed_at + WINDOW:
            await ctx.cancel(_timer(failure.checkout_id))
            await ctx.rows(failures).delete(failure.checkout_id)


@cart.register
async def abandon(ctx: Context, checkout_id: str) -> None:
    """Tells that nobody has tried again, unless somebody has."""
    failure = await ctx.rows(failures).get(checkout_id)
    if failure is not None:
        await ctx.rows(failures).delete(checkout_id)
        at = failure.failed_at
        ctx.emit(cart_abandoned, CartAbandoned(checkout_id, ctx.key, failure.cause, at, at + WINDOW))


@cart.on(cart_abandoned, key=lambda event: event.customer_id)
async def mark_abandoned(ctx: Context, event: CartAbandoned) -> None:
    """Keeps with the submission that it was abandoned."""
    await ctx.rows(checkouts).update(event.checkout_id, abandoned_at=event.abandoned_at)


def _timer(checkout_id: str) -> str:
    return f"abandonment of {checkout_id}"
