"""What customers do with a cart before they check it out. Nothing else sees it."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.marketplace.answers import CartContents
from benchmarks.marketplace.errors import CartClosed, CartFull, NotInCart
from benchmarks.marketplace.services.cart.rows import (
    Cart,
    CartItemRow,
    CartStatus,
    CheckoutRow,
    cart,
    checkouts,
    items,
)
from benchmarks.marketplace.values import CartItem, Cents, Id, Pieces
from styx import Context

ITEMS_MAX: Final = 100
"""Products in one cart."""


async def opened(ctx: Context[Any, Any]) -> Cart:
    """The cart, which takes changes; it is not there before its first item. Raises `CartClosed`."""
    found: Cart | None = await ctx.get()
    if found is None:
        return Cart(CartStatus.OPEN, ctx.now(), ctx.now())
    if found.status != CartStatus.OPEN:
        raise CartClosed(f"the cart of customer {ctx.key} is being checked out")
    return found


async def touched(ctx: Context[Any, Any], found: Cart) -> None:
    """Keeps the cart, as changed now."""
    found.updated_at = ctx.now()
    await ctx.put(found)


@cart.register
async def add_item(ctx: Context, item: CartItem) -> CartItemRow:
    """Puts a product in the cart. If it is there, what was there is replaced. Raises `CartClosed` and `CartFull`."""
    found, rows = await opened(ctx), ctx.rows(items)
    key = {"seller_id": item.seller_id, "product_id": item.product_id}
    if await rows.count() >= ITEMS_MAX and not await rows.exists(key):
        raise CartFull(f"the cart of customer {ctx.key} has {ITEMS_MAX} products, which is the most")
    row = CartItemRow(
        item.seller_id,
        item.product_id,
        item.product_name,
        item.unit_price,
        item.freight_value,
        item.quantity,
        item.voucher,
        item.version,
        item.unit_price,
    )
    await rows.put(row)
    await touched(ctx, found)
    return row


@cart.register
async def update_item(
    ctx: Context, seller_id: Id, product_id: Id, quantity: Pieces | None = None, voucher: Cents | None = None
) -> CartItemRow:
    """Changes what is given. Raises `NotInCart` and `CartClosed`."""
    found, rows = await opened(ctx), ctx.rows(items)
    row = await rows.get((seller_id, product_id))
    if row is None:
        raise NotInCart(_missing(ctx.key, seller_id, product_id))
    if quantity is not None:
        row.quantity = quantity
    if voucher is not None:
        row.voucher = voucher
    await rows.put(row)
    await touched(ctx, found)
    return row


@cart.register
async def remove_item(ctx: Context, seller_id: Id, product_id: Id) -> None:
    """Takes a product out of the cart. Raises `NotInCart` and `CartClosed`."""
    found = await opened(ctx)
    if not await ctx.rows(items).delete((seller_id, product_id)):
        raise NotInCart(_missing(ctx.key, seller_id, product_id))
    await touched(ctx, found)


@cart.register
async def seal(ctx: Context) -> int:
    """Empties the cart without a checkout, and gives the number of products that were in it. Raises `CartClosed`."""
    found = await opened(ctx)
    dropped = await ctx.rows(items).delete_where()
    await touched(ctx, found)
    return dropped


@cart.register(read_only=True)
async def contents(ctx: Context) -> CartContents:
    """The cart as it is."""
    found: Cart | None = await ctx.get()
    return CartContents(CartStatus.OPEN if found is None else found.status, await ctx.rows(items).select())


@cart.register(read_only=True)
async def checkout_of(ctx: Context, checkout_id: str) -> CheckoutRow | None:
    """What became of a submission; None if there was none."""
    return await ctx.rows(checkouts).get(checkout_id)


def _missing(customer_id: int, seller_id: int, product_id: int) -> str:
    return f"the cart of customer {customer_id} has no product {product_id} of seller {seller_id}"
