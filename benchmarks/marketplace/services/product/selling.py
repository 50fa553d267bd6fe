"""What sellers do with a product: set its price, replace it, delete it. Each change has a number, and is told.

A price is for a version. A request for another one comes from who has not heard of a replacement, and changes nothing.
"""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace.answers import PriceOutcome, PriceResult
from benchmarks.marketplace.errors import UnknownProduct, VersionTaken
from benchmarks.marketplace.events import (
    PriceUpdated,
    ProductChanged,
    ProductUpdated,
    price_updated,
    product_changed,
    product_updated,
)
from benchmarks.marketplace.services.product.rows import Offer, Product, product
from benchmarks.marketplace.values import Cents, Version
from styx import Context


@product.register
async def set_price(ctx: Context, price: Cents, version: Version) -> PriceResult:
    """Sets the price, if `version` is the product's. Raises `UnknownProduct`."""
    found = await _active(ctx)
    if found.version != version:
        return PriceResult(PriceOutcome.STALE, found.version, found.price, found.change)
    found.price = price
    await _changed(ctx, found)
    ctx.emit(price_updated, PriceUpdated(ctx.key[0], ctx.key[1], price, version, found.change))
    return PriceResult(PriceOutcome.UPDATED, version, price, found.change)


@product.register
async def replace(ctx: Context, offer: Offer, version: Version) -> Product:
    """Puts another product, or the first one, in this place. A repeated request changes nothing.

    Raises `VersionTaken` if another product has this version.
    """
    found: Product | None = await ctx.get()
    new = Product(
        offer.name,
        offer.sku,
        offer.category,
        offer.description,
        offer.price,
        offer.freight_value,
        offer.status,
        version,
        True,
        ctx.now(),
        ctx.now(),
    )
    if found is not None and found.version == version:
        if not found.active or _offer(found) != offer:
            raise VersionTaken(
                f"product {ctx.key[1]} of seller {ctx.key[0]} has the version {version!r} already: give another one"
            )
        return found
    await _changed(ctx, new)
    ctx.emit(product_updated, ProductUpdated(ctx.key[0], ctx.key[1], new))
    return new


@product.register
async def delete(ctx: Context) -> None:
    """Takes the product off the market; it stays known. Raises `UnknownProduct`."""
    found = await _active(ctx)
    found.active = False
    await _changed(ctx, found)
    ctx.emit(product_updated, ProductUpdated(ctx.key[0], ctx.key[1], found))


@product.register
async def purge(ctx: Context) -> None:
    """Forgets a deleted product; its stock goes with it. Raises `UnknownProduct` and `StillReserved`."""
    found: Product | None = await ctx.get()
    if found is None or found.active:
        raise UnknownProduct(f"there is no deleted product {ctx.key[1]} of seller {ctx.key[0]}")
    await ctx.call("stock", "clear", ctx.key)
    await ctx.delete()


@product.register(read_only=True)
async def show(ctx: Context) -> Product | None:
    """The product, also if it is deleted."""
    found: Product | None = await ctx.get()
    return found


async def _active(ctx: Context[Any, Any]) -> Product:
    found: Product | None = await ctx.get()
    if found is None or not found.active:
        raise UnknownProduct(f"seller {ctx.key[0]} does not offer a product {ctx.key[1]}")
    return found


async def _changed(ctx: Context[Any, Any], found: Product) -> None:
    """Writes the product. Its numbers go on when it is purged and offered anew, so that copies know what is later."""
    found.change = await ctx.sequence("changes").next()
    found.updated_at = ctx.now()
    await ctx.put(found)
    ctx.emit(
        product_changed, ProductChanged(ctx.key[0], ctx.key[1], found.price, found.version, found.active, found.change)
    )


def _offer(found: Product) -> Offer:
    return Offer(
        found.name, found.sku, found.category, found.description, found.price, found.freight_value, found.status
    )
